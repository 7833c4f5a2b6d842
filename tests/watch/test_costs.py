"""What watching asks of a store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from crux_workspace import LocalRuntime, WatchHandle, Workspace
from crux_workspace import storage as storage_room
from crux_workspace.storage import Storage
from crux_workspace.testing import CountingRecordStore
from tests.watch.conftest import take, until

A = "/workspace/a.md"


async def calm(handles: Sequence[WatchHandle]) -> None:
    """Wait until everybody has found the end of the log, and waits for news."""
    sleeping = handles[0]._poller.sleeping
    await until(lambda: len(sleeping) == len(handles))


async def test_a_thousand_watchers_cost_one_question_a_poll(
    make_ws: Callable[..., Workspace], storage: Storage, runtime: LocalRuntime
) -> None:
    records = CountingRecordStore(storage.records)
    ws = make_ws(storage=storage_room.storage(records=records), runtime=runtime)
    handles = [
        ws.watch(poll_interval_ms=40 if number == 7 else 60_000, namespace=f"n{number % 250}")
        for number in range(1_000)
    ]
    tasks = [asyncio.create_task(anext(handle)) for handle in handles]
    await calm(handles)
    records.reset()
    began = time.monotonic()
    await until(lambda: records.counts["sequences"] >= 6)
    assert set(records.counts) == {"sequences"}
    assert time.monotonic() - began >= 5 * 0.039, "one question each 40 ms, however busy it is"
    for number in range(250):
        await ws.write(A, "x", namespace=f"n{number}")
    async with asyncio.timeout(20):
        events = await asyncio.gather(*tasks)
    assert [event.namespace for event in events] == [f"n{number % 250}" for number in range(1_000)]
    for handle in handles:
        await handle.stop()
    records.reset()
    await asyncio.sleep(0.1)
    assert not records.counts


async def test_a_commit_is_read_once_for_all_who_watch(
    make_ws: Callable[..., Workspace], storage: Storage, runtime: LocalRuntime
) -> None:
    records = CountingRecordStore(storage.records)
    ws = make_ws(storage=storage_room.storage(records=records), runtime=runtime)
    handles = [ws.watch(poll_interval_ms=60_000) for _ in range(50)]
    tasks = [asyncio.create_task(anext(handle)) for handle in handles]
    await calm(handles)
    records.reset()
    await ws.write(A, "x")
    await asyncio.gather(*tasks)
    assert records.reads <= 2  # the write's own, and the log's
    for handle in handles:
        await handle.stop()


async def test_catching_up_reads_pages(
    make_ws: Callable[..., Workspace], storage: Storage, runtime: LocalRuntime
) -> None:
    records = CountingRecordStore(storage.records)
    ws = make_ws(storage=storage_room.storage(records=records), runtime=runtime)
    for number in range(300):
        await ws.write(A, str(number))
    handle = ws.watch(start="oldest", limit=50)
    records.reset()
    await take(handle, 300)
    assert records.reads <= 300 / 50 + 3
    await handle.stop()
