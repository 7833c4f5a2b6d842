"""Every verb but list and grep, on a hot set of files: what is compared between a small place and a large one."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

from benchmarks.floor import BODY
from crux_workspace import Workspace

__all__ = ["FOLLOWED", "ON_A_FILE", "ON_A_STORE", "ON_HOT_FILES", "WHOLE", "Act", "timed"]

Act = Callable[[Workspace, str], Awaitable[Any]]
"""One call, or a pair that leaves the file as it was, on a path of 1 KiB text."""

_fresh = count(1)


async def _rename(ws: Workspace, path: str) -> None:
    await ws.rename(path, path + ".away")
    await ws.rename(path + ".away", path)


async def _delete(ws: Workspace, path: str) -> None:
    await ws.delete(path)
    await ws.undo(path)


async def _undo(ws: Workspace, path: str) -> None:
    await ws.write(path, f"{next(_fresh)}{BODY}")
    await ws.undo(path)
    await ws.redo(path)


async def _publish(ws: Workspace, path: str) -> None:
    await ws.finalize(path)
    await ws.withdraw(path)


async def _artifacts(ws: Workspace, path: str) -> None:
    published = await ws.finalize(path)
    await ws.artifacts(path=path)
    await ws.resolve(published.uri)


async def _move(ws: Workspace, path: str) -> None:
    await ws.move(path, path + ".moved")
    await ws.move(path + ".moved", path)


async def _json(ws: Workspace, path: str) -> None:
    del path
    await ws.write("/workspace/hot/one.json", {"n": 1})
    await ws.read_json("/workspace/hot/one.json")


async def _stream(ws: Workspace, path: str) -> None:
    async for _ in ws.stream(path):
        pass


async def _drop(ws: Workspace, path: str) -> None:
    other = f"dropped{next(_fresh)}"
    await ws.write(path, BODY, namespace=other)
    await ws.drop_namespace(other)


async def _watch(ws: Workspace, path: str) -> None:
    async with ws.watch(path) as events:
        await events.ready()
        await ws.write(path, BODY)
        await anext(events)


async def _take_back(ws: Workspace, path: str) -> None:
    await ws.write(path, f"{next(_fresh)}{BODY}")
    [commit] = await ws.log(limit=1)
    await ws.undo_commit(commit)


async def _copy(ws: Workspace, path: str) -> None:
    await ws.copy(path, "/workspace/hot/copy.md", overwrite=True)


async def _edit(ws: Workspace, path: str) -> None:
    await ws.write(path, f"edit {next(_fresh)} {BODY}")
    await ws.edit(path, "edit", "edited")


async def _append(ws: Workspace, path: str) -> None:
    await ws.write(path, BODY)
    await ws.append(path, "more")


async def _transaction(ws: Workspace, path: str) -> None:
    async with ws.transaction() as tx:
        await tx.write(path, await tx.read_text(path))


ON_A_FILE: dict[str, Act] = {
    "read": lambda ws, path: ws.read(path),
    "stat": lambda ws, path: ws.stat(path),
    "exists": lambda ws, path: ws.exists(path),
    "read_text": lambda ws, path: ws.read_text(path),
    "read_bytes": lambda ws, path: ws.read_bytes(path),
    "read_many": lambda ws, path: ws.read_many([path]),
    "read_json": _json,
    "stream": _stream,
    "is_dir": lambda ws, path: ws.is_dir(path.rpartition("/")[0]),
    "write": lambda ws, path: ws.write(path, BODY),
    "edit": _edit,
    "append": _append,
    "update": lambda ws, path: ws.update(path, lambda text: text),
    "set": lambda ws, path: ws.set(path, metadata={"n": next(_fresh)}),
    "rename": _rename,
    "move": _move,
    "copy": _copy,
    "delete, undo": _delete,
    "undo, redo": _undo,
    "finalize, withdraw": _publish,
    "artifacts, resolve": _artifacts,
    "undo_commit": _take_back,
    "history, a page of 20": lambda ws, path: ws.history(path, limit=20),
    "diff": lambda ws, path: ws.diff(path),
    "transaction": _transaction,
}

ON_HOT_FILES: dict[str, Act] = {
    **ON_A_FILE,
    "create": lambda ws, path: ws.write(f"/workspace/new/{next(_fresh)}.md", BODY),
    "log, a page of 20": lambda ws, path: ws.log(limit=20),
    "usage": lambda ws, path: ws.usage(),
    "cursor": lambda ws, path: ws.cursor(),
}

ON_A_STORE: dict[str, Act] = {
    "namespaces, a page of 20": lambda ws, path: ws.namespaces(limit=20),
    "drop_namespace": _drop,
}
"""What a view of one namespace cannot do."""

FOLLOWED: dict[str, Act] = {"watch": _watch}
"""What is measured and not counted: when a watcher asks the store is for the clock to say."""

WHOLE = ("list", "walk", "grep", "gc")
"""Verbs whose cost is that of all they look at."""


def timed(act: Act, paths: list[str], calls: int) -> Callable[[Workspace], Awaitable[float]]:
    """Return a slice: seconds a call, over the paths in turn."""

    async def slice_of(ws: Workspace) -> float:
        began = time.perf_counter()
        for number in range(calls):
            await act(ws, paths[number % len(paths)])
        return (time.perf_counter() - began) / calls

    return slice_of
