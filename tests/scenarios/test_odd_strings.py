"""Strings that are not quite strings: subclasses are taken for what they are, lone surrogates are refused with a code."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crux_workspace import Workspace
from crux_workspace.errors import WorkspaceError

LONE = "\ud800"


class Name(str):
    """A string of the caller's own kind."""

    __slots__ = ()


async def test_a_subclass_of_str_is_text(ws: Workspace) -> None:
    metadata: dict[str, Any] = OrderedDict(topic=Name("x"))
    await ws.write(Name("/workspace/a"), Name("one"), metadata=metadata)
    await ws.append("/workspace/a", Name(" two"))
    await ws.edit("/workspace/a", Name("one"), Name("zero"))
    assert await ws.read_text("/workspace/a") == "zero two"


async def test_metadata_is_kept_as_it_was_when_it_was_written(ws: Workspace) -> None:
    metadata: dict[str, Any] = {"tags": ["a"]}
    await ws.write("/workspace/a", "x", metadata=metadata)
    metadata["tags"].append("b")
    file = await ws.stat("/workspace/a")
    assert file is not None
    assert file.metadata == {"tags": ["a"]}


CALLS: dict[str, tuple[str, Callable[[Workspace], Awaitable[object]]]] = {
    "idempotency_key": (
        "INVALID_ARGUMENT",
        lambda ws: ws.write("/workspace/a", "x", idempotency_key=LONE),
    ),
    "kind": ("INVALID_ARGUMENT", lambda ws: ws.write("/workspace/a", "x", kind=LONE)),
    "mime_type": ("INVALID_ARGUMENT", lambda ws: ws.write("/workspace/a", "x", mime_type="a\nb")),
    "metadata": ("INVALID_CONTENT", lambda ws: ws.write("/workspace/a", "x", metadata={LONE: 1})),
    "prefix": ("INVALID_ARGUMENT", lambda ws: ws.namespaces(LONE)),
    "uri": ("INVALID_ARGUMENT", lambda ws: ws.resolve(f"workspace-inline://w/n/{LONE}@v1")),
    "commit": ("COMMIT_NOT_FOUND", lambda ws: ws.undo_commit(f"1-{LONE}")),
    "query": ("INVALID_ARGUMENT", lambda ws: ws.grep(LONE)),
    "list cursor": ("INVALID_CURSOR", lambda ws: ws.list("/workspace", cursor=LONE)),
    "log cursor": ("INVALID_CURSOR", lambda ws: ws.log(cursor=LONE)),
}


@pytest.mark.parametrize("where", CALLS)
async def test_a_lone_surrogate_is_refused_and_stores_nothing(ws: Workspace, where: str) -> None:
    code, call = CALLS[where]
    with pytest.raises(WorkspaceError) as refused:
        await call(ws)
    assert refused.value.code == code
    assert (await ws.usage()).live_files == 0


def test_an_actor_is_a_printable_name(ws: Workspace) -> None:
    for name in (LONE, "", " ", "a\nb", "x" * 513):
        with pytest.raises(WorkspaceError) as refused:
            ws.acting_as(name)
        assert refused.value.code == "INVALID_ARGUMENT"
