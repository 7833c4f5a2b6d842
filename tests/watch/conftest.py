"""A runtime that leaves nothing behind, a second way to the same store, and tools to read a watch."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import pytest

from crux_workspace import LocalRuntime, WatchHandle, WorkspaceChangeEvent, local_runtime
from crux_workspace import storage as storage_room
from crux_workspace.testing.delegating import DelegatingRecordStore

if TYPE_CHECKING:
    from crux_workspace import Workspace
    from crux_workspace.storage import Storage


async def take(handle: WatchHandle, count: int, *, within: float = 5) -> list[WorkspaceChangeEvent]:
    """Return the next events of a watch."""
    async with asyncio.timeout(within):
        return [await anext(handle) for _ in range(count)]


async def nothing_from(handle: WatchHandle, *, for_s: float = 0.05) -> None:
    """Prove that a watch has nothing to say."""
    with pytest.raises(TimeoutError):
        await take(handle, 1, within=for_s)


async def until(holds: Callable[[], bool], *, within: float = 20) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(within):
        while not holds():  # noqa: ASYNC110 - any condition, not an event
            await asyncio.sleep(0.001)


@pytest.fixture
async def runtime() -> AsyncIterator[LocalRuntime]:
    """A runtime; at the end no task and no thread of it is left."""
    threads = threading.active_count()
    async with local_runtime() as made:
        yield made
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not [task for task in left if "crux_workspace" in repr(task.get_coro())]
    assert threading.active_count() <= threads + 2  # the storage's own


@pytest.fixture
def ws(make_ws: Callable[..., Workspace], runtime: LocalRuntime) -> Workspace:
    """A workspace that can be watched."""
    return make_ws(runtime=runtime)


@pytest.fixture
def elsewhere(make_ws: Callable[..., Workspace], storage: Storage) -> Workspace:
    """A writer that the watchers of `ws` do not hear of, as if it were another process."""
    records: Any = DelegatingRecordStore(storage.records)
    other = storage_room.storage(records=records, assets=storage.assets)
    return make_ws(storage=other)
