"""Options of wrong types and numbers of any size, for a workspace and a client of it: what is merely truthy never deletes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from crux_workspace import Edit, local_runtime, open_workspace, open_workspace_sync, workspace
from crux_workspace.errors import ErrorCode, InvalidInputError
from tests.support.http_workspaces import Switchboard, switchboard

FILE, OTHER, BELOW = "/workspace/a.md", "/workspace/b.md", "/workspace/d/c.md"

Call = Callable[[Any, Any], Awaitable[Any]]

ENDLESS = 10**5_000
"""A number that Python refuses to show."""


async def _begun(ws: Any, callback: Any) -> Any:
    return await ws.transaction(callback)


FLAGS: list[tuple[str, Call]] = [
    ("delete recursive", lambda ws, no: ws.delete("/workspace/d", recursive=no)),
    ("delete purge", lambda ws, no: ws.delete(FILE, purge=no)),
    ("rename overwrite", lambda ws, no: ws.rename(FILE, OTHER, overwrite=no)),
    ("move overwrite", lambda ws, no: ws.move(FILE, OTHER, overwrite=no)),
    ("copy overwrite", lambda ws, no: ws.copy(FILE, OTHER, overwrite=no)),
    ("copy away", lambda ws, no: ws.copy(FILE, OTHER, overwrite=no, to_namespace="m")),
    ("edit", lambda ws, no: ws.edit(FILE, "a", "b", replace_all=no)),
    ("edits", lambda ws, no: ws.edit(FILE, edits=[Edit("a", "b", None, no)])),
    ("gc", lambda ws, no: ws.gc(dry_run=no)),
    ("list recursive", lambda ws, no: ws.list("/workspace", recursive=no)),
    ("list glob", lambda ws, no: ws.list("/workspace", glob=no)),
    ("list partial", lambda ws, no: ws.list("/workspace", partial=no)),
    ("grep ignore_case", lambda ws, no: ws.grep("a", ignore_case=no)),
    ("grep regex", lambda ws, no: ws.grep("a", regex=no)),
    ("grep partial", lambda ws, no: ws.grep("a", partial=no)),
]

NUMBERS: list[tuple[str, Call]] = [
    ("log", lambda ws, no: ws.log(limit=no)),
    ("grep max_results", lambda ws, no: ws.grep("a", max_results=no)),
    ("grep context_lines", lambda ws, no: ws.grep("a", context_lines=no)),
    ("diff", lambda ws, no: ws.diff(FILE, context_lines=no)),
    ("read", lambda ws, no: ws.read(FILE, offset=no)),
    ("stream offset", lambda ws, no: anext(ws.stream(FILE, offset=no))),
    ("stream chunk_bytes", lambda ws, no: anext(ws.stream(FILE, chunk_bytes=no))),
    ("namespaces", lambda ws, no: ws.namespaces(limit=no)),
]

OTHERS: list[tuple[str, Call]] = [
    ("read start_line", lambda ws, _: ws.read(FILE, start_line="1")),
    ("read end_line", lambda ws, _: ws.read(FILE, end_line="1")),
    ("diff from_version", lambda ws, _: ws.diff(FILE, from_version="1")),
    ("history before", lambda ws, _: ws.history(FILE, before=0)),
    ("update", lambda ws, _: ws.update(FILE, "no function")),
    ("transaction", lambda ws, _: _begun(ws, "no function")),
    ("edits of a number", lambda ws, _: ws.edit(FILE, edits=5)),
    ("edits of one", lambda ws, _: ws.edit(FILE, edits=Edit("a", "b"))),
    ("if_version", lambda ws, _: ws.write(FILE, "x", if_version=ENDLESS)),
    ("version", lambda ws, _: ws.read(FILE, version=ENDLESS)),
    ("moment", lambda ws, _: ws.at(ENDLESS).list("/")),
    ("status", lambda ws, _: ws.write(FILE, "x", status=ENDLESS)),
    ("prefix", lambda ws, _: ws.namespaces(ENDLESS)),
    ("after", lambda ws, _: ws.artifacts(after=ENDLESS)),
    ("list path", lambda ws, _: ws.list(ENDLESS)),
    ("read_many path", lambda ws, _: ws.read_many([ENDLESS])),
    ("grep query", lambda ws, _: ws.grep(1)),
]

CASES = [
    *((name, call, bad) for name, call in FLAGS for bad in ("no", 1, 0)),
    *((name, call, bad) for name, call in NUMBERS for bad in (None, "1", True)),
    *((name, call, None) for name, call in OTHERS),
]


@pytest.fixture
async def board() -> AsyncIterator[Switchboard]:
    async with switchboard() as opened:
        yield opened


@pytest.mark.parametrize(("call", "bad"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
async def test_an_option_of_a_wrong_type_is_refused(
    board: Switchboard, call: Call, bad: object
) -> None:
    near = workspace(id="w", namespace="n")
    for path in (FILE, FILE, OTHER, BELOW):
        await near.write(path, "a b a\n")
    for ws in (near, board.client(near)):
        with pytest.raises(InvalidInputError) as refused:
            await call(ws, bad)
        assert refused.value.code in (ErrorCode.INVALID_ARGUMENT, ErrorCode.INVALID_PATH)
    assert len(await near.log()) == 4


HUGE = 10**30

WINDOWS: list[tuple[str, Call]] = [
    ("offset", lambda ws, _: ws.read(FILE, offset=HUGE)),
    ("max_inline_bytes", lambda ws, _: ws.read(FILE, max_inline_bytes=HUGE)),
    ("end_line", lambda ws, _: ws.read(FILE, end_line=HUGE)),
    ("list", lambda ws, _: ws.list("/", limit=HUGE)),
    ("history limit", lambda ws, _: ws.history(FILE, limit=HUGE)),
    ("history before", lambda ws, _: ws.history(FILE, before=HUGE)),
    ("log", lambda ws, _: ws.log(limit=HUGE)),
    ("artifacts", lambda ws, _: ws.artifacts(limit=HUGE)),
    ("namespaces", lambda ws, _: ws.namespaces(limit=HUGE)),
]

BEYOND: list[tuple[str, Call]] = [
    ("read", lambda ws, _: ws.read(FILE, version=HUGE)),
    ("read_text", lambda ws, _: ws.read_text(FILE, version=HUGE)),
    ("diff", lambda ws, _: ws.diff(FILE, from_version=HUGE)),
    ("undo", lambda ws, _: ws.undo(FILE, to_version=HUGE)),
    ("finalize", lambda ws, _: ws.finalize(FILE, version=HUGE)),
    ("write", lambda ws, _: ws.write(FILE, "x", if_version=HUGE)),
    ("delete", lambda ws, _: ws.delete(FILE, if_version=HUGE)),
    ("edit", lambda ws, _: ws.edit(FILE, "a", "b", occurrence=HUGE)),
]


@pytest.mark.parametrize("call", [call for _, call in WINDOWS], ids=[name for name, _ in WINDOWS])
async def test_a_number_beyond_64_bits_is_as_good_as_all(
    board: Switchboard, tmp_path: Path, call: Call
) -> None:
    async with open_workspace(f"sqlite:///{tmp_path}/w.db") as near:
        await near.write(FILE, "a b a\n", status="draft")
        expected = await call(near, None)
        assert expected
        assert await call(board.client(near), None) == expected


@pytest.mark.parametrize("call", [call for _, call in BEYOND], ids=[name for name, _ in BEYOND])
async def test_a_version_or_hit_beyond_64_bits_is_none(board: Switchboard, call: Call) -> None:
    near = workspace(id="w", namespace="n")
    await near.write(FILE, "a b a\n")
    for ws in (near, board.client(near)):
        with pytest.raises(InvalidInputError) as refused:
            await call(ws, None)
        assert refused.value.code == ErrorCode.INVALID_ARGUMENT


async def test_a_watch_of_a_bound_view_refuses_another_namespace_at_once(
    board: Switchboard,
) -> None:
    async with local_runtime() as runtime:
        near = workspace(id="w", namespace="n", runtime=runtime)
        for ws in (near, board.client(near)):
            with pytest.raises(InvalidInputError):
                ws.for_namespace("m").watch(namespace="k")


def test_the_blocking_form_refuses_what_is_no_function() -> None:
    with open_workspace_sync("memory://") as ws, pytest.raises(InvalidInputError):
        ws.transaction("no function")  # type: ignore[call-overload]
