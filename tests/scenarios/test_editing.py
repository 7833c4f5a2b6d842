"""edit: exact, literal, all or none."""

from __future__ import annotations

from typing import Any

import pytest

from crux_workspace import ContentOptions, Edit, Workspace
from crux_workspace.errors import BinaryContentError, EditError, ErrorCode
from crux_workspace.testing.workspace import refused

PATH = "/workspace/a"


async def test_one_occurrence_is_replaced_and_attributes_stay(ws: Workspace) -> None:
    await ws.write(
        PATH, "a b c", metadata={"m": 1}, status="draft", kind="k", mime_type="text/x-odd"
    )
    file = await ws.edit(PATH, "b", "B")
    assert await ws.read_text(PATH) == "a B c"
    assert (file.version, file.metadata, file.mime_type) == (2, {"m": 1}, "text/x-odd")
    assert (file.status, file.artifact_kind) == ("draft", "k")
    assert (await ws.history(PATH))[0].operation == "edit"
    assert (await ws.edit(PATH, "B", "b", mime_type="text/x-new")).mime_type == "text/x-new"


@pytest.mark.parametrize("replacement", ["$&", "$1", "\\1", "\\g<0>", "%s", "{}", "", "\r\n"])
async def test_replacement_is_literal(ws: Workspace, replacement: str) -> None:
    await ws.write(PATH, "a.b.c")
    await ws.edit(PATH, ".b.", replacement)
    assert await ws.read_text(PATH) == f"a{replacement}c"


async def test_an_ambiguous_find_is_refused_with_the_lines_of_the_hits(ws: Workspace) -> None:
    await ws.write(PATH, "x\ny\nx\n")
    with refused(ErrorCode.EDIT_AMBIGUOUS, EditError) as caught:
        await ws.edit(PATH, "x", "z")
    assert caught.value.details["hits"] == 2
    assert list(caught.value.details["lines"]) == [1, 3]
    assert await ws.read_text(PATH) == "x\ny\nx\n"


async def test_occurrences_count_overlapping_matches(ws: Workspace) -> None:
    await ws.write(PATH, "aaaa")
    await ws.edit(PATH, "aa", "X", occurrence=2)
    assert await ws.read_text(PATH) == "aXa"


async def test_replace_all_goes_left_to_right_without_overlap(ws: Workspace) -> None:
    await ws.write(PATH, "aaaaa")
    await ws.edit(PATH, "aa", "b", replace_all=True)
    assert await ws.read_text(PATH) == "bba"


async def test_an_occurrence_beyond_the_hits_is_not_found(ws: Workspace) -> None:
    await ws.write(PATH, "a")
    with refused(ErrorCode.EDIT_NOT_FOUND, EditError):
        await ws.edit(PATH, "a", "b", occurrence=2)


@pytest.mark.parametrize(
    "arguments",
    [
        {"find": "", "replace": "x"},
        {"find": "a", "replace": "b", "occurrence": 0},
        {"find": "a", "replace": "b", "occurrence": -1},
        {"find": "a", "replace": "b", "occurrence": 1, "replace_all": True},
        {"find": "a"},
        {"replace": "a"},
        {},
        {"edits": []},
        {"find": "a", "replace": "b", "edits": [Edit("a", "b")]},
    ],
)
async def test_contradictory_arguments_are_refused(
    ws: Workspace, arguments: dict[str, Any]
) -> None:
    await ws.write(PATH, "a")
    with refused(ErrorCode.INVALID_ARGUMENT):
        await ws.edit(PATH, **arguments)
    assert await ws.read_text(PATH) == "a"


async def test_several_edits_apply_in_order(ws: Workspace) -> None:
    await ws.write(PATH, "one two")
    await ws.edit(PATH, edits=[Edit("one", "two"), Edit("two", "three", replace_all=True)])
    assert await ws.read_text(PATH) == "three three"
    assert (await ws.stat(PATH)).version == 2  # type: ignore[union-attr]


async def test_several_edits_are_all_or_none(ws: Workspace) -> None:
    await ws.write(PATH, "one two")
    with refused(ErrorCode.EDIT_NOT_FOUND):
        await ws.edit(PATH, edits=[Edit("one", "1"), Edit("absent", "x")])
    assert await ws.read_text(PATH) == "one two"
    assert len(await ws.log()) == 1


async def test_a_no_op_edit_writes_nothing_and_returns_the_current_file(ws: Workspace) -> None:
    written = await ws.write(PATH, "one")
    assert await ws.edit(PATH, "one", "one") == written
    assert len(await ws.log()) == 1


async def test_not_found_tells_the_nearest_line(ws: Workspace) -> None:
    await ws.write(PATH, "def hello(name):\n    return name\n")
    with refused(ErrorCode.EDIT_NOT_FOUND) as caught:
        await ws.edit(PATH, "def helo(name):", "x")
    assert "nearest" in caught.value.details
    assert "1" in str(caught.value) + str(caught.value.hint) + str(caught.value.details)


async def test_not_found_tells_a_line_ending_or_normal_form_difference(ws: Workspace) -> None:
    await ws.write(PATH, "one\r\ntwo\r\n")
    with refused(ErrorCode.EDIT_NOT_FOUND) as caught:
        await ws.edit(PATH, "one\ntwo", "x")
    assert "CRLF" in f"{caught.value} {caught.value.hint}"
    await ws.write(PATH, "cafe\u0301")
    with refused(ErrorCode.EDIT_NOT_FOUND) as caught:
        await ws.edit(PATH, "caf\u00e9", "x")
    assert "Unicode normalisation" in f"{caught.value} {caught.value.hint}"


async def test_json_and_binary_are_refused(ws: Workspace) -> None:
    await ws.write("/workspace/json", {"a": 1})
    await ws.write("/workspace/binary", b"a")
    with refused(ErrorCode.INVALID_CONTENT) as caught:
        await ws.edit("/workspace/json", "a", "b")
    assert caught.value.hint
    with refused(ErrorCode.BINARY_CONTENT, BinaryContentError):
        await ws.edit("/workspace/binary", "a", "b")


async def test_a_missing_file_is_not_found(ws: Workspace) -> None:
    with refused(ErrorCode.FILE_NOT_FOUND):
        await ws.edit(PATH, "a", "b")


async def test_large_text_is_edited_whole(make_ws: Any) -> None:
    ws = make_ws(content=ContentOptions(inline_text_below_bytes=20))
    text = "line\n" * 30_000 + "needle\n"
    await ws.write(PATH, text)
    await ws.edit(PATH, "needle", "pin")
    assert await ws.read_text(PATH) == text.replace("needle", "pin")
    await ws.edit(PATH, "line\n", "", replace_all=True)
    assert await ws.read_text(PATH) == "pin\n"
    assert (await ws.stat(PATH)).storage == "inline"


async def test_line_endings_and_control_characters_survive_an_edit(ws: Workspace) -> None:
    await ws.write(PATH, "\ufeffa\r\nb\rc\x00\u2028d")
    await ws.edit(PATH, "b", "B")
    assert await ws.read_text(PATH) == "\ufeffa\r\nB\rc\x00\u2028d"
