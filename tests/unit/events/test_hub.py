"""Word of commits reaches who listens, and waiting for commits in flight ends with them."""

from __future__ import annotations

import asyncio
import gc
import threading

from crux_workspace.events.hub import Hub, hub_of
from crux_workspace.storage import MemoryRecordStore


class Unhashable(MemoryRecordStore):
    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unhashable)


def test_a_store_object_has_one_hub() -> None:
    one, two = Unhashable(), Unhashable()
    hub = hub_of(one)
    assert hub_of(one) is hub
    assert hub_of(two) is not hub


def test_a_hub_lives_as_long_as_somebody_holds_it() -> None:
    store = MemoryRecordStore()
    heard: list[int] = []
    hub_of(store).listen(lambda _, sequence: heard.append(sequence))
    gc.collect()
    hub_of(store).committed("p", 1)
    assert heard == []


def test_listeners_may_leave_while_they_are_told() -> None:
    hub = hub_of(store := MemoryRecordStore())
    heard: list[str] = []

    def once(partition: str, sequence: int) -> None:
        heard.append(f"{partition}{sequence}")
        leave()

    leave = hub.listen(once)
    hub.listen(lambda *_: heard.append("other"))
    hub.committed("p", 1)
    hub.dropped("p")
    leave()
    assert heard == ["p1", "other", "other"]
    assert hub.records is store


async def test_settled_waits_for_the_commits_that_are_open_now() -> None:
    hub = hub_of(store := MemoryRecordStore())
    await hub.settled("p")
    one, other = hub.begin("p"), hub.begin("q")
    waiting = asyncio.create_task(hub.settled("p"))
    await asyncio.sleep(0)
    late = hub.begin("p")
    hub.end(other)
    await asyncio.sleep(0)
    assert not waiting.done()
    hub.end(one)
    await asyncio.wait_for(waiting, 1)
    hub.end(late)
    cancelled = asyncio.create_task(hub.settled("p"))
    ticket = hub.begin("p")
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    hub.end(ticket)
    assert not hub._waiting
    del store


def test_queues_of_two_loops_do_not_meet() -> None:
    hub, gate, held = Hub(MemoryRecordStore()), threading.Event(), threading.Event()

    async def wait() -> None:
        async with hub.queue("p", "/a"):
            pass

    async def hold() -> None:
        async with hub.queue("p", "/a"):
            waiting = asyncio.create_task(wait())  # binds the queue to this loop
            await asyncio.sleep(0)
            held.set()
            await asyncio.to_thread(gate.wait, 5)
        await waiting

    thread = threading.Thread(target=lambda: asyncio.run(hold()))
    thread.start()
    assert held.wait(5)
    try:
        asyncio.run(asyncio.wait_for(wait(), 5))
    finally:
        gate.set()
        thread.join()
