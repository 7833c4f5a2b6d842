"""grep: literal and regular, scoped, bounded."""

from __future__ import annotations

from typing import Any

import pytest

from crux_workspace import ContentOptions, Workspace
from crux_workspace.errors import ErrorCode
from crux_workspace.testing.workspace import refused

A = "/workspace/a"


def found(result: Any) -> list[tuple[str, int, int]]:
    return [(match.path, match.line, match.column) for match in result.matches]


async def test_every_match_is_an_entry_in_order(ws: Workspace) -> None:
    await ws.write("/workspace/b", "x\n")
    await ws.write(A, "ü x x\nno\nx")
    result = await ws.grep("x")
    assert found(result) == [(A, 1, 3), (A, 1, 5), (A, 3, 1), ("/workspace/b", 1, 1)]
    assert result.matches[0].text == "ü x x"
    assert result.truncated is False


async def test_literal_by_default_and_regex_when_asked(ws: Workspace) -> None:
    await ws.write(A, "a.c\nabc\n")
    assert found(await ws.grep("a.c")) == [(A, 1, 1)]
    assert found(await ws.grep("a.c", regex=True)) == [(A, 1, 1), (A, 2, 1)]
    assert found(await ws.grep("^abc$", regex=True)) == [(A, 2, 1)]


async def test_ignore_case(ws: Workspace) -> None:
    await ws.write(A, "Hello\nHELLO\nÜber\n")
    assert len((await ws.grep("hello", ignore_case=True)).matches) == 2
    assert len((await ws.grep("h[e]llo", ignore_case=True, regex=True)).matches) == 2
    assert len((await ws.grep("hello")).matches) == 0
    assert found(await ws.grep("über", ignore_case=True)) == [(A, 3, 1)]


async def test_matches_within_a_line_do_not_overlap_and_empty_ones_are_left_out(
    ws: Workspace,
) -> None:
    await ws.write(A, "aaaa")
    assert found(await ws.grep("aa")) == [(A, 1, 1), (A, 1, 3)]
    assert found(await ws.grep("x*", regex=True)) == []


async def test_lines_end_at_newlines_only(ws: Workspace) -> None:
    await ws.write(A, "one\rx\x0cx\u2028x\r\nx\n")
    result = await ws.grep("x")
    assert [match.line for match in result.matches] == [1, 1, 1, 2]
    assert result.matches[0].text == "one\rx\x0cx\u2028x"


async def test_json_is_searched_in_its_pretty_form_and_binary_is_not(ws: Workspace) -> None:
    await ws.write(A, {"key": ["value"]})
    await ws.write("/workspace/b", b"value")
    result = await ws.grep("value")
    assert found(result) == [(A, 3, 6)]
    assert result.matches[0].text == '    "value"'


async def test_large_text_is_searched_too(make_ws: Any) -> None:
    ws = make_ws(content=ContentOptions(inline_text_below_bytes=20))
    await ws.write(A, "line\n" * 5_000 + "needle\n")
    assert found(await ws.grep("needle")) == [(A, 5_001, 1)]


async def test_the_scope_is_a_file_a_directory_or_a_glob(ws: Workspace) -> None:
    for path in ("/workspace/d/1.md", "/workspace/d/2.txt", "/workspace/d-e", "/outputs/1.md"):
        await ws.write(path, "x")
    assert found(await ws.grep("x", path="/workspace/d/1.md")) == [("/workspace/d/1.md", 1, 1)]
    in_directory = [("/workspace/d/1.md", 1, 1), ("/workspace/d/2.txt", 1, 1)]
    assert found(await ws.grep("x", path="/workspace/d")) == in_directory
    assert found(await ws.grep("x", path="/workspace/d/")) == in_directory
    by_glob = [("/outputs/1.md", 1, 1), ("/workspace/d/1.md", 1, 1)]
    assert found(await ws.grep("x", path="/**/*.md")) == by_glob
    assert len((await ws.grep("x")).matches) == 4
    assert found(await ws.grep("x", path="/workspace/none")) == []


async def test_truncated_is_true_only_when_a_match_was_left_out(ws: Workspace) -> None:
    await ws.write(A, "x\nx\nx\n")
    exact = await ws.grep("x", max_results=3)
    assert (len(exact.matches), exact.truncated) == (3, False)
    fewer = await ws.grep("x", max_results=2)
    assert (len(fewer.matches), fewer.truncated) == (2, True)


async def test_context_lines(ws: Workspace) -> None:
    await ws.write(A, "1\n2\n3\n4\n5\n")
    (match,) = (await ws.grep("3", context_lines=1)).matches
    assert (list(match.before), match.text, list(match.after)) == (["2"], "3", ["4"])
    (first,) = (await ws.grep("1", context_lines=2)).matches
    assert (list(first.before), list(first.after)) == ([], ["2", "3"])


async def test_a_long_line_is_cut_around_the_match(ws: Workspace) -> None:
    await ws.write(A, "a" * 50_000 + "needle" + "b" * 50_000)
    (match,) = (await ws.grep("needle")).matches
    assert len(match.text) <= 2_000
    assert "needle" in match.text
    assert match.column == 50_001


@pytest.mark.parametrize("pattern", ["(", "[", "*a", "(?P<x"])
async def test_a_bad_expression_is_refused(ws: Workspace, pattern: str) -> None:
    with refused(ErrorCode.INVALID_REGEX):
        await ws.grep(pattern, regex=True)


async def test_expressions_take_linear_time(ws: Workspace) -> None:
    await ws.write(A, "a" * 5_000 + "b")
    assert found(await ws.grep("(a+)+$", regex=True)) == []


@pytest.mark.parametrize(
    "arguments",
    [{"query": ""}, {"query": "x", "max_results": 0}, {"query": "x", "context_lines": -1}],
)
async def test_bad_arguments_are_refused(ws: Workspace, arguments: dict[str, Any]) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT):
        await ws.grep(**arguments)


async def test_old_content_is_not_found(ws: Workspace) -> None:
    await ws.write(A, "old")
    await ws.write(A, "new")
    await ws.write("/workspace/gone", "old")
    await ws.delete("/workspace/gone")
    assert found(await ws.grep("old")) == []
    assert found(await ws.at(1).grep("old")) == [(A, 1, 1)]
