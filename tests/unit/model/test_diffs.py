"""`patch` accepts every unified diff, and nothing that changed is left out."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unidiff.patch import PatchSet

from crux_workspace.errors import InvalidInputError
from crux_workspace.model.diffs import DiffLine, FileDiff, diff_texts
from crux_workspace.model.lines import split_lines

TEXTS = st.lists(
    st.sampled_from(
        ["a", "b", "c", "", " x", "-y", "+z", "@@", "\\ w", "\r", "a\rb", "\x0c\u2028"]
    ).flatmap(lambda line: st.sampled_from([line + "\n", line + "\n", line + "\r\n"])),
    max_size=12,
).flatmap(lambda lines: st.sampled_from(["".join(lines), "".join(lines).removesuffix("\n")]))


def apply(diff: FileDiff, old: str) -> str:
    before = split_lines(old)
    after: list[str] = []
    at = 0
    for hunk in diff.hunks:
        start = hunk.from_start - (hunk.from_lines > 0)
        after += before[at:start]
        assert len(after) == hunk.to_start - (hunk.to_lines > 0)
        kept = [line for line in hunk.lines if line.kind != "add"]
        assert [whole(line) for line in kept] == before[start : start + hunk.from_lines]
        added = [line for line in hunk.lines if line.kind != "remove"]
        assert len(added) == hunk.to_lines
        after += map(whole, added)
        at = start + hunk.from_lines
    return "".join(after + before[at:])


def whole(line: DiffLine) -> str:
    return line.text + ("\n" if line.has_newline else "")


def run_patch(directory: Path, diff: FileDiff, old: str) -> str:
    """Apply a diff with the patch program; where there is none, by its hunks."""
    if shutil.which("patch") is None:
        return apply(diff, old)
    source, target = directory / "source", directory / "target"
    source.write_bytes(old.encode())
    target.unlink(missing_ok=True)
    subprocess.run(
        ["patch", "--silent", "--fuzz=0", "-o", target, source],
        input=diff.unified.encode(),
        check=True,
        capture_output=True,
    )
    return target.read_bytes().decode() if target.exists() else ""


@given(TEXTS, TEXTS, st.integers(0, 4))
def test_applying_the_hunks_gives_the_new_text(old: str, new: str, context_lines: int) -> None:
    diff = diff_texts("/a", old, new, 1, 2, context_lines)
    assert apply(diff, old) == new
    assert (diff.unified == "") == (diff.hunks == []) == (old == new)
    kinds = [line.kind for hunk in diff.hunks for line in hunk.lines]
    assert (diff.added, diff.removed) == (kinds.count("add"), kinds.count("remove"))


PATCH_CASES = {
    "change": ("a\nb\nc\n", "a\nB\nc\n"),
    "from empty": ("", "a\nb\n"),
    "to empty": ("a\nb\n", ""),
    "from empty, no newline": ("", "a"),
    "newline added": ("a\nb", "a\nb\n"),
    "newline removed": ("a\nb\n", "a\nb"),
    "no newline on either side": ("a\nb", "a\nc"),
    "no newline in the context": ("a\nb\nc", "x\nb\nc"),
    "no newline, line added": ("a", "a\nb"),
    "LF to CRLF": ("a\nb\nc\n", "a\r\nb\r\nc\r\n"),
    "one CRLF to LF": ("a\r\nb\r\nc\r\n", "a\r\nb\nc\r\n"),
    "change among CRLF": ("a\r\nb\r\nc\r\n", "a\r\nB\r\nc\r\n"),
    "lone CR": ("a\rb\nc\n", "a\rx\nc\n"),
    "CR before CRLF": ("a\r\r\nb\n", "a\r\nb\n"),
    "looks like a header": ("--- a\n+++ b\n@@ -1,1 +1,1 @@\n", "--- a\n++ b\n@@ -1,2 +1,1 @@\n"),
    "looks like a marker": ("\\ No newline\na", "\\ No newline\nb"),
    "blank lines": ("\n\n\n\n", "\n\na\n\n\n"),
    "far apart": ("".join(f"{i}\n" for i in range(50)), "".join(f"{i % 40}\n" for i in range(52))),
}


@pytest.mark.parametrize("context_lines", [0, 3])
@pytest.mark.parametrize("case", PATCH_CASES)
def test_patch_accepts(tmp_path: Path, case: str, context_lines: int) -> None:
    old, new = PATCH_CASES[case]
    diff = diff_texts("/workspace/with space.md", old, new, 3, 4, context_lines)
    assert run_patch(tmp_path, diff, old) == new
    back = diff_texts("/workspace/ü.md", new, old, 4, 3, context_lines)
    assert run_patch(tmp_path, back, new) == old


def test_patch_accepts_whatever_changed(tmp_path: Path) -> None:
    rng = random.Random(11)
    lines = ["a\n", "b\n", "\n", "a\r\n", "c\r\n", "d\r\r\n", "\x0c\n"]
    for _ in range(60):
        old = "".join(rng.choices(lines, k=rng.randrange(15)))
        new = "".join(rng.choices(lines, k=rng.randrange(15)))
        old, new = (text[: len(text) - rng.randrange(2)] for text in (old, new))
        if old != new:
            diff = diff_texts("/a", old, new, 1, 2, rng.randrange(1, 4))
            assert run_patch(tmp_path, diff, old) == new


def test_form() -> None:
    old = "".join(f"{i}\n" for i in range(1, 31))
    new = old.replace("5\n", "five\n", 1).replace("29\n30\n", "29\n30")
    assert diff_texts("/a b.md", old, new, 7, 9).unified == (
        "--- /a b.md@v7\n+++ /a b.md@v9\n"
        "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        "@@ -27,4 +27,4 @@\n 27\n 28\n 29\n-30\n+30\n\\ No newline at end of file\n"
    )
    assert diff_texts("/a", "", "x\n", 1, 2).unified.splitlines()[2] == "@@ -0,0 +1,1 @@"
    assert diff_texts("/a", "x\n", "", 1, 2).unified.splitlines()[2] == "@@ -1,1 +0,0 @@"


def test_other_programs_read_it() -> None:
    old = "".join(f"{i}\n" for i in range(60))
    diff = diff_texts("/a.md", old, old.replace("7\n", "x\n"), 1, 2)
    parsed = PatchSet(diff.unified)
    assert (parsed.added, parsed.removed) == (diff.added, diff.removed) == (6, 6)


def test_a_changed_ending_shows() -> None:
    diff = diff_texts("/a", "one\ntwo\n", "one\ntwo\r\n", 1, 2)
    assert [(line.kind, line.text) for line in diff.hunks[0].lines] == [
        ("context", "one"),
        ("remove", "two"),
        ("add", "two\r"),
    ]
    diff = diff_texts("/a", "one\n", "one", 1, 2)
    assert [line.has_newline for line in diff.hunks[0].lines] == [True, False]


def test_values_show_no_content() -> None:
    diff = diff_texts("/a", "secret old\n", "secret new\n", 1, 2)
    for value in (diff, diff.hunks[0], diff.hunks[0].lines[0]):
        assert "secret" not in repr(value)
    data = diff.to_dict()
    assert data["hunks"][0]["lines"][1] == {
        "kind": "add",
        "text": "secret new",
        "has_newline": True,
    }
    assert (data["added"], data["removed"], data["from_version"]) == (1, 1, 1)


def test_large_context_covers_the_file_once() -> None:
    old = "".join(f"{i}\n" for i in range(100))
    diff = diff_texts("/a", old, old.replace("50\n", "x\n"), 1, 2, 10**9)
    assert [hunk.from_lines for hunk in diff.hunks] == [100]
    with pytest.raises(InvalidInputError, match="below 0"):
        diff_texts("/a", "a", "b", 1, 2, -1)


def test_twenty_thousand_lines_take_little_time() -> None:
    rng = random.Random(5)
    lines = [f"{rng.choice(['    return value', '', f'line {i}'])}\n" for i in range(20_000)]
    new = [line if rng.random() > 0.05 else f"changed {rng.random()}\n" for line in lines]
    started = time.process_time()
    diff = diff_texts("/a", "".join(lines), "".join(new), 1, 2)
    assert time.process_time() - started < 2
    assert apply(diff, "".join(lines)) == "".join(new)
