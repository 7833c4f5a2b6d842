"""An edit is exact or refused, and a refusal says what is wrong without quoting the file."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crux_workspace.errors import EditError, InvalidInputError
from crux_workspace.model import edits as module
from crux_workspace.model.edits import Edit, apply_edits


def overlapping(text: str, find: str) -> list[int]:
    return [at for at in range(len(text)) if text.startswith(find, at)]


@given(st.text("ab\n", max_size=20), st.text("ab\n", min_size=1, max_size=3), st.text("abc"))
def test_exactly_one_hit_or_refused(text: str, find: str, replace: str) -> None:
    hits = overlapping(text, find)
    if len(hits) == 1:
        expected = text[: hits[0]] + replace + text[hits[0] + len(find) :]
        assert apply_edits(text, [Edit(find, replace)]) == expected
        return
    with pytest.raises(EditError) as caught:
        apply_edits(text, [Edit(find, replace)])
    assert caught.value.code == ("EDIT_AMBIGUOUS" if hits else "EDIT_NOT_FOUND")
    assert caught.value.details["hits"] == len(hits)
    assert caught.value.details["lines"] == [text.count("\n", 0, at) + 1 for at in hits]


@given(
    st.text("ab", max_size=30),
    st.text("ab", min_size=1, max_size=4),
    st.integers(1, 9),
    st.booleans(),
)
def test_occurrence_counts_overlapping_hits(
    text: str, find: str, occurrence: int, is_long: bool
) -> None:
    hits = overlapping(text, find)
    with pytest.MonkeyPatch.context() as patch:
        if is_long:
            patch.setattr(module, "_PLAIN_SEARCH_CHARACTERS", 0)
        if occurrence <= len(hits):
            at = hits[occurrence - 1]
            expected = text[:at] + "X" + text[at + len(find) :]
            assert apply_edits(text, [Edit(find, "X", occurrence=occurrence)]) == expected
            return
        with pytest.raises(EditError) as caught:
            apply_edits(text, [Edit(find, "X", occurrence=occurrence)])
    assert caught.value.code == "EDIT_NOT_FOUND"
    assert caught.value.details["hits"] == len(hits)


def test_replace_all_goes_left_to_right_without_overlap() -> None:
    assert apply_edits("aaaaa", [Edit("aa", "b", replace_all=True)]) == "bba"
    assert apply_edits("aaaa", [Edit("a", "aa", replace_all=True)]) == "a" * 8


def test_replacement_is_literal() -> None:
    assert apply_edits("a.c abc", [Edit("a.c", r"\1 $& \g<0>")]) == r"\1 $& \g<0> abc"
    assert apply_edits("abc", [Edit("b", "")]) == "ac"
    assert apply_edits("abc", [Edit("b", "b")]) == "abc"


def test_edits_follow_one_another_all_or_none() -> None:
    assert apply_edits("one", [Edit("one", "two"), Edit("two", "three")]) == "three"
    with pytest.raises(EditError, match="in edit 2") as caught:
        apply_edits("one", [Edit("one", "two"), Edit("one", "three")])
    assert caught.value.details["edit"] == 2


@pytest.mark.parametrize(
    "edits",
    [
        [],
        [Edit("", "x")],
        [Edit("a", "x", occurrence=0)],
        [Edit("a", "x", occurrence=-1)],
        [Edit("a", "x", occurrence=True)],
        [Edit("a", "x", occurrence=1, replace_all=True)],
        [Edit(None, "x")],  # type: ignore[arg-type]
        [Edit("a", None)],  # type: ignore[arg-type]
        [Edit("missing", "x"), Edit("", "x")],
    ],
)
def test_refused_arguments(edits: list[Edit]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        apply_edits("a", edits)
    assert caught.value.code == "INVALID_ARGUMENT"


def refusal(text: str, find: str) -> EditError:
    with pytest.raises(EditError) as caught:
        apply_edits(text, [Edit(find, "x")])
    assert caught.value.code == "EDIT_NOT_FOUND"
    assert set(caught.value.details) == {"hits", "lines", "nearest", "edit"}
    assert caught.value.hint is not None
    return caught.value


@pytest.mark.parametrize(
    ("text", "find", "cause"),
    [
        ("a\r\nb\r\n", "a\nb", "LF line endings where the file has CRLF"),
        ("a\nb\n", "a\r\nb", "CRLF line endings where the file has LF"),
        ("a\r\nb\nc\n", "a\nb\nc", "mixes CRLF and LF"),
        ("le café\n", unicodedata.normalize("NFD", "café"), "Unicode normalisation"),
        (unicodedata.normalize("NFD", "le café\n"), "café", "Unicode normalisation"),
        ("\tif x:\n\t\ty\n", "    if x:\n        y", "white space"),
        ("Some Title\n", "some title", "upper and lower case"),
    ],
)
def test_the_cause_is_told(text: str, find: str, cause: str) -> None:
    assert cause in str(refusal(text, find).hint)


def test_the_nearest_place_is_told() -> None:
    lines = [
        f"def function_{i}(argument):\n    return compute(argument, {i})\n" for i in range(200)
    ]
    text = "".join(lines)
    error = refusal(text, "def function_77(argumnt):\n    return compute(argument, 77)\n")
    assert error.details["nearest"]["line"] == 155
    assert error.details["nearest"]["similarity"] > 0.9
    assert "line 155" in str(error.hint)
    many = "filler line\n" * 50_000 + text
    error = refusal(many, "def function_77(argumnt):\n    return compute(argument, 77)\n")
    assert error.details["nearest"]["line"] == 50_155


def test_nothing_near_is_no_place() -> None:
    assert refusal("some text\n", "qqqqqqqq").details["nearest"] is None
    assert refusal("", "a").details["nearest"] is None
    assert refusal("a", "\n\n").details["nearest"] is None


def test_refusals_quote_nothing() -> None:
    text = "password = swordfish\n" * 30
    with pytest.raises(EditError) as ambiguous:
        apply_edits(text, [Edit("password", "x")])
    assert ambiguous.value.details["hits"] == 30
    assert ambiguous.value.details["lines"] == list(range(1, 21))
    for error in (ambiguous.value, refusal(text, "password = swordfsh")):
        assert "sword" not in str(error.to_dict())
    assert "sword" not in repr(Edit("swordfish", "swordfish"))


@pytest.mark.parametrize(
    ("text", "find", "occurrence"),
    [
        ("word " * 2_000_000, "wrd other", None),
        ("a line of text\n" * 700_000, "a line of txt\n" * 100, None),
        ("x" * 10_000_000, "x" * 1000 + "y", None),
        ("é" * 5_000_000, "e\u0301 e", None),
        ("a" * 3_000_000, "a" * 1_500_000, 1_000_000),
        ("a" * 10_000_000, "a", None),
        ("\n" * 3_000_000, "b\n\n", None),
    ],
    ids=["words", "lines", "near misses", "accents", "overlaps", "one character", "blank lines"],
)
def test_large_texts_take_bounded_time(text: str, find: str, occurrence: int | None) -> None:
    started = time.process_time()
    if occurrence:
        apply_edits(text, [Edit(find, "", occurrence=occurrence)])
    else:
        with pytest.raises(EditError):
            apply_edits(text, [Edit(find, "")])
    assert time.process_time() - started < 4
