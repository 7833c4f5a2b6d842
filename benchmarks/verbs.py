"""Every verb but list and grep, on a hot set of files: what is compared between a small place and a large one."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

from benchmarks.floor import BODY
from crux_workspace import Workspace

__all__ = ["ON_A_FILE", "ON_HOT_FILES", "Act", "timed"]

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
    "write": lambda ws, path: ws.write(path, BODY),
    "edit": _edit,
    "append": _append,
    "update": lambda ws, path: ws.update(path, lambda text: text),
    "set": lambda ws, path: ws.set(path, metadata={"n": next(_fresh)}),
    "rename": _rename,
    "copy": _copy,
    "delete, undo": _delete,
    "undo, redo": _undo,
    "finalize, withdraw": _publish,
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
}


def timed(act: Act, paths: list[str], calls: int) -> Callable[[Workspace], Awaitable[float]]:
    """Return a slice: seconds a call, over the paths in turn."""

    async def slice_of(ws: Workspace) -> float:
        began = time.perf_counter()
        for number in range(calls):
            await act(ws, paths[number % len(paths)])
        return (time.perf_counter() - began) / calls

    return slice_of
