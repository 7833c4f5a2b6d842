"""An option of a wrong type is refused by a workspace and by a client of it: what is merely truthy never deletes or overwrites."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from crux_workspace import Edit, local_runtime, open_workspace_sync, workspace
from crux_workspace.errors import ErrorCode, InvalidInputError
from tests.support.http_workspaces import Switchboard, switchboard

FILE, OTHER, BELOW = "/workspace/a.md", "/workspace/b.md", "/workspace/d/c.md"

Call = Callable[[Any, Any], Awaitable[Any]]


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
        assert refused.value.code == ErrorCode.INVALID_ARGUMENT
    assert len(await near.log()) == 4


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
