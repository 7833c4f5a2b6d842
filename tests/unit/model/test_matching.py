"""Every match is found once, with its line, and no query takes more than linear time."""

from __future__ import annotations

import random
import re
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crux_workspace.errors import ErrorCode, InvalidInputError
from crux_workspace.model.matching import GrepMatch, compile_query

TEXTS = st.text("aAbé\n\r\x0c\u2028😀", max_size=30)
QUERIES = st.text("aAbé\r\x0c😀.", min_size=1, max_size=2)


def find(
    query: str,
    text: str,
    *,
    ignore_case: bool = False,
    regex: bool = False,
    limit: int = 1000,
    context_lines: int = 0,
) -> list[GrepMatch]:
    compiled = compile_query(query, ignore_case=ignore_case, regex=regex)
    return compiled.search(text, path="/a", limit=limit, context_lines=context_lines)


def places(matches: list[GrepMatch]) -> list[tuple[int, int]]:
    return [(match.line, match.column) for match in matches]


def expected(pattern: str, text: str, flags: int = 0) -> list[tuple[int, int, str]]:
    return [
        (number, match.start() + 1, line)
        for number, line in enumerate(re.split("\r?\n", text), 1)
        for match in re.finditer(pattern, line, flags)
        if match.group()
    ]


@given(QUERIES, TEXTS, st.booleans())
def test_literal(query: str, text: str, ignore_case: bool) -> None:
    found = [
        (match.line, match.column, match.text)
        for match in find(query, text, ignore_case=ignore_case)
    ]
    assert found == expected(re.escape(query), text, re.IGNORECASE if ignore_case else 0)


@given(
    st.sampled_from(
        ["a+", "^a", "b$", "a*", "[^a]+", r"\s+", r"\W", "(a|b)é", ".", "a.b", r"\x0c?"]
    ),
    TEXTS,
)
def test_regex(pattern: str, text: str) -> None:
    found = [(match.line, match.column, match.text) for match in find(pattern, text, regex=True)]
    python = pattern.replace(r"\s", r"[\t\n\x0c\r ]").replace(r"\W", "[^0-9A-Za-z_]")
    assert found == expected(python.replace("$", r"\Z"), text, re.DOTALL)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"\Ab", "a\nb\nbb", [(2, 1), (3, 1)]),
        (r"a\z", "a\nba\r\n", [(1, 1), (2, 2)]),
        ("(?-m)^b", "a\nb", [(2, 1)]),
        ("(?s)a.b", "a\nb a b", [(2, 3)]),
        (r"a\nb", "a\nb", []),
        ("x$", "x\r\nx\n", [(1, 1), (2, 1)]),
        ("^$", "\n\n", []),
        (r"\bw", "w ww", [(1, 1), (1, 3)]),
        (r"(?i)É", "é", [(1, 1)]),
        (r"\p{Greek}", "aβ", [(1, 2)]),
    ],
)
def test_lines_are_the_whole_world(pattern: str, text: str, found: list[tuple[int, int]]) -> None:
    assert places(find(pattern, text, regex=True)) == found


def test_every_match_of_a_line_is_an_entry() -> None:
    assert places(find("aa", "aaaaa\naa")) == [(1, 1), (1, 3), (2, 1)]
    assert places(find("aa", "aaaaa\naa", limit=2)) == [(1, 1), (1, 3)]
    assert find("aa", "aaaaa", limit=0) == []


def test_columns_count_code_points() -> None:
    assert places(find("x", "é😀x\n😀😀x")) == [(1, 3), (2, 3)]
    assert places(find("x", "é😀x\n😀😀x", regex=True)) == [(1, 3), (2, 3)]


def test_only_line_endings_end_lines() -> None:
    text = "a\x0cb\u2028c\x85d\re\r\nx"
    assert [(match.line, match.text) for match in find("d", text)] == [(1, "a\x0cb\u2028c\x85d\re")]
    assert places(find("x", text)) == [(2, 1)]


def test_case_is_ignored_in_every_alphabet() -> None:
    assert places(find("straße ÄΣ.", "STRAẞE äσ. straßE äΣx", ignore_case=True)) == [(1, 1)]
    assert find("a.c", "ABC", ignore_case=True) == []
    assert places(find("a.c", "ABC", ignore_case=True, regex=True)) == [(1, 1)]


def test_context() -> None:
    text = "one\r\ntwo\nthree\nfour\nfive\n"
    (match,) = find("three", text, context_lines=2)
    assert (match.before, match.after) == (("one", "two"), ("four", "five"))
    (match,) = find("one", text, context_lines=1)
    assert (match.before, match.after) == ((), ("two",))
    (match,) = find("five", text, context_lines=10**9)
    assert (match.before, match.after) == (("one", "two", "three", "four"), ())
    with pytest.raises(InvalidInputError, match="below 0"):
        find("x", text, context_lines=-1)


def test_long_lines_are_cut_around_the_match() -> None:
    line = "a" * 5_000 + "needle" + "b" * 5_000
    (match,) = find("needle", f"{line}\nshort\n{line}"[: len(line)], context_lines=1)
    assert (match.line, match.column, len(match.text)) == (1, 5_001, 2_000)
    assert match.text.index("needle") == 997
    (match,) = find("needle", "needle" + line[5_006:])
    assert match.text == ("needle" + "b" * 5_000)[:2_000]
    (match,) = find("needle", line[:5_006])
    assert match.text == line[:5_006][-2_000:]
    (match,) = find("a+needle", line, regex=True)
    assert match.text == "a" * 2_000
    (match,) = find("x", f"{line}\nx\n{line}", context_lines=1)
    assert [len(text) for text in (*match.before, *match.after)] == [2_000, 2_000]


def test_needle_is_in_every_text_that_matches() -> None:
    assert compile_query("é.").needle == "é.".encode()
    assert compile_query("a", ignore_case=True).needle is None
    assert compile_query("a", regex=True).needle is None


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "missing"),
        ("a**", "repetition"),
        ("[z-a]", "range"),
        ("a{5000}", "repetition"),
        ("(?=a)", "look-ahead"),
        ("(?<!a)b", "look-behind"),
        (r"(a)\1", "back-references"),
        ("(?P<n>a)(?P=n)", "back-references"),
        (r"\C", "single bytes"),
        ("(?>a)", "perl operator"),
        (")(", "unexpected"),
    ],
)
def test_refused_expressions(pattern: str, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason) as caught:
        compile_query(pattern, regex=True)
    assert caught.value.code == "INVALID_REGEX"
    assert "(?m)" not in caught.value.message


@pytest.mark.parametrize("query", ["", None, b"a", 3, "\ud800"])
@pytest.mark.parametrize("regex", [True, False])
def test_refused_queries(query: object, regex: bool) -> None:
    with pytest.raises(InvalidInputError) as caught:
        compile_query(query, regex=regex)  # type: ignore[arg-type]
    assert caught.value.code == "INVALID_ARGUMENT"


def test_values_show_no_content() -> None:
    (match,) = find("secret", "a secret line", context_lines=1)
    assert "secret" not in repr(match)
    assert match.to_dict() == {
        "path": "/a",
        "line": 1,
        "column": 3,
        "text": "a secret line",
        "before": [],
        "after": [],
    }


@pytest.mark.parametrize(
    ("expression", "matched"),
    [
        (r"\s", [" ", "\t"]),
        (r"\d", ["7"]),
        (r"\w", ["7", "a", "_"]),
        (r"\pZ|\s", [" ", "\t", "\u00a0", "\u2003", "\u3000"]),
        (r"\pN", ["7", "\u0663"]),
        (r"\pL", ["a", "\u00e9", "\u0416"]),
        (r"[\pL\pN_]", ["7", "a", "_", "\u00e9", "\u0416", "\u0663"]),
    ],
)
def test_perl_classes_know_ascii_and_unicode_classes_all_alphabets(
    expression: str, matched: list[str]
) -> None:
    characters = [
        " ",
        "\t",
        "7",
        "a",
        "_",
        "\u00a0",
        "\u2003",
        "\u3000",
        "\u00e9",
        "\u0416",
        "\u0663",
    ]
    assert {c for c in characters if find(expression, c, regex=True)} == set(matched)
    assert {c for c in characters if not find(f"[^{expression}]", c, regex=True)} >= set(matched)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\u00c4", "\u00e4"),
        ("\u03a3", "\u03c2"),
        ("K", "\u212a"),
        ("\u0416", "\u0436"),
        ("\u017f", "S"),
    ],
)
@pytest.mark.parametrize("regex", [False, True])
def test_case_is_folded_in_all_alphabets(one: str, other: str, regex: bool) -> None:
    assert find(one, other, ignore_case=True, regex=regex)
    assert find(other, one, ignore_case=True, regex=regex)
    assert find(f"(?i){one}", other, regex=True)
    assert find(f"[{one}]", other, ignore_case=True, regex=True)


@pytest.mark.parametrize(
    ("query", "regex", "ignore_case"),
    [
        ("needle", False, False),
        ("NEEDLE", False, True),
        ("(x+x+)+y", True, False),
        ("w[a-z]+s$", True, False),
        (r"\Aneedle", True, False),
        ("(a|a)*b", True, True),
    ],
)
def test_ten_megabytes_take_little_time(query: str, regex: bool, ignore_case: bool) -> None:
    text = "some line of text with words\n" * 340_000 + "x" * 100_000 + "needle"
    started = time.process_time()
    find(query, text, regex=regex, ignore_case=ignore_case, limit=100)
    assert time.process_time() - started < 3


def test_many_matches_in_one_long_line() -> None:
    text = "ab" * 2_500_000
    started = time.process_time()
    assert len(find("a", text, limit=1_000)) == 1_000
    assert len(find("b", text, regex=True, limit=1_000)) == 1_000
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "expression",
    [
        "(a{1,30}){1,30}b",
        r"(\w{1,30}){1,30}b",
        "((ab){1,20}){1,20}",
        ".{500}x{500}",
        "(é{1,30}){1,30}",
        r"(\x{e9}{1,30}){1,30}",
    ],
)
def test_an_expression_of_too_many_steps_is_refused_and_told_what_to_do(expression: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        compile_query(expression, regex=True)
    assert caught.value.code == ErrorCode.INVALID_REGEX
    assert "steps" in caught.value.message
    assert "{m,n}" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "expression",
    [
        ".{0,300}x",
        "[a-z]{500}",
        r"\pL{1,100}",
        r"[\p{L}\p{N}_]{1,64}@[a-z.]{1,200}",
        r"\p{Greek}{1,50}",
        "(a+)+b",
        r"[\x{3040}-\x{309f}]{10}",
    ],
)
def test_an_expression_of_a_moderate_size_is_taken(expression: str) -> None:
    compile_query(expression, regex=True)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("(a{1,19}){1,19}$", ("a" * 905 + "b") * 1_100),
        ("a.{300}x", "".join(random.Random(1).choice("aab") for _ in range(10**6))),
        ("[ab]*a[ab]{20}[xy]", "".join(random.Random(2).choice("ab") for _ in range(10**6))),
        ("(x+x+)+y", "x" * 10**6),
    ],
)
def test_what_is_taken_ends_in_seconds_on_a_text_made_to_hurt(expression: str, text: str) -> None:
    query = compile_query(expression, regex=True)
    began = time.thread_time()
    query.search(text, path="/p", limit=101)
    assert time.thread_time() - began < 20


def test_a_search_stops_when_it_is_told_to() -> None:
    stop = threading.Event()
    stop.set()
    assert compile_query("x").search("x" * 100, path="/p", limit=100, stop=stop) == []
