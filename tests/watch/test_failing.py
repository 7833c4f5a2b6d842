"""A store that fails for a while: the watch lives on, tells of it, and loses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import pytest

from crux_workspace import LocalRuntime, WatchError, Workspace
from crux_workspace import storage as storage_room
from crux_workspace.errors import StateError, StorageError
from crux_workspace.events.poller import back_off_ms
from crux_workspace.storage import Page, Record, Storage
from crux_workspace.testing.delegating import DelegatingRecordStore
from tests.watch.conftest import take, until

A = "/workspace/a.md"
T = TypeVar("T")


class Switched(DelegatingRecordStore):
    """A store that fails its reads while it is switched off; plans of writers still work."""

    off = False
    polls = 0

    async def _ask(self, answer: Awaitable[T]) -> T:
        found = await answer
        if self.off:
            raise ConnectionError("broken on purpose")
        return found

    async def get_many(
        self, partition: str, keys: Sequence[str], *, bodies: bool = True
    ) -> list[Record | None]:
        return await self._ask(super().get_many(partition, keys, bodies=bodies))

    async def scan(self, partition: str, prefix: str, **options: object) -> Page:
        return await self._ask(super().scan(partition, prefix, **options))  # type: ignore[arg-type]

    async def sequences(self, partitions: Sequence[str]) -> list[int]:
        self.polls += 1
        return await self._ask(super().sequences(partitions))


@pytest.fixture
def records(storage: Storage) -> Switched:
    return Switched(storage.records)


@pytest.fixture
def ws(
    make_ws: Callable[..., Workspace], records: Switched, storage: Storage, runtime: LocalRuntime
) -> Workspace:
    return make_ws(
        storage=storage_room.storage(records=records, assets=storage.assets), runtime=runtime
    )


def test_the_delay_doubles_up_to_five_seconds() -> None:
    assert [back_off_ms(250, n) for n in range(1, 8)] == [250, 500, 1000, 2000, 4000, 5000, 5000]
    assert back_off_ms(60_000, 3) == 60_000
    assert back_off_ms(1, 10_000) == 5_000


async def test_polls_that_fail_back_off_and_are_told(
    ws: Workspace, records: Switched, elsewhere: Workspace
) -> None:
    told: list[WatchError] = []
    async with ws.watch(poll_interval_ms=5, on_error=told.append) as handle:
        waiting = asyncio.create_task(take(handle, 1))
        await until(lambda: records.polls > 2)
        assert not told
        records.off = True
        await until(lambda: len(told) == 4)
        await elsewhere.write(A, "x")
        records.off = False
        (event,) = await waiting
        assert event.sequence == 1
        assert [problem.failures for problem in told] == list(range(1, len(told) + 1))
        assert [problem.retry_delay_ms for problem in told][:4] == [5, 10, 20, 40]
        assert isinstance(told[0].error, StorageError)
        assert told[0].error.code == "STORE_UNAVAILABLE"
        assert isinstance(told[0].error.__cause__, ConnectionError)
        good = records.polls + 1  # word of the commit may have come without a poll
        await until(lambda: records.polls > good)
        records.off = True
        before = len(told)
        waiting = asyncio.create_task(take(handle, 1))
        await until(lambda: len(told) > before)
        assert told[before].failures == 1
        waiting.cancel()


async def test_reads_that_fail_back_off_and_lose_nothing(ws: Workspace, records: Switched) -> None:
    told: list[WatchError] = []

    async def tell(problem: WatchError) -> None:
        await asyncio.sleep(0)
        told.append(problem)
        raise RuntimeError("must not matter")

    async with ws.watch(poll_interval_ms=5, on_error=tell) as handle:
        await ws.write(A, "1")
        await ws.write(A, "2")
        records.off = True
        waiting = asyncio.create_task(take(handle, 3))
        await until(lambda: len(told) >= 3)
        records.off = False
        await ws.write(A, "3")
        assert [event.sequence for event in await waiting] == [1, 2, 3]
        assert [problem.retry_delay_ms for problem in told[:3]] == [5, 10, 20]


async def test_opening_waits_for_a_store_that_fails(ws: Workspace, records: Switched) -> None:
    told: list[WatchError] = []
    records.off = True
    handle = ws.watch(poll_interval_ms=5, on_error=told.append)
    assert handle.cursor is None
    opening = asyncio.create_task(handle.ready())
    await until(lambda: len(told) == 3)
    records.off = False
    writing = await ws.write(A, "since")
    await opening
    assert [event.sequence for event in await take(handle, 1)] == [writing.sequence]
    await handle.stop()


async def test_stopping_ends_the_waiting(ws: Workspace, records: Switched) -> None:
    records.off = True
    handle = ws.watch(poll_interval_ms=60_000)
    opening = asyncio.create_task(handle.ready())
    await asyncio.sleep(0.01)
    await handle.stop()
    async with asyncio.timeout(1):
        await opening

    records.off = False
    handle = ws.watch(poll_interval_ms=60_000)
    await ws.write(A, "x")
    records.off = True
    reading = asyncio.create_task(anext(handle, None))
    await asyncio.sleep(0.01)
    await handle.stop()
    async with asyncio.timeout(1):
        assert await reading is None


async def test_without_on_error_it_lives_on_too(ws: Workspace, records: Switched) -> None:
    async with ws.watch(poll_interval_ms=2) as handle:
        await ws.write(A, "1")
        records.off = True
        waiting = asyncio.create_task(take(handle, 1))
        await asyncio.sleep(0.02)
        records.off = False
        assert [event.sequence for event in await waiting] == [1]


async def test_a_closed_storage_ends_the_loop_with_its_error(
    make_ws: Callable[..., Workspace], runtime: LocalRuntime, tmp_path: object
) -> None:
    from storage_adapters import open_storage

    opened = await open_storage(f"sqlite:///{tmp_path}/closed.db?durability=normal")
    ws = make_ws(storage=opened, runtime=runtime)
    handle = ws.watch()
    await ws.write(A, "x")
    await opened.aclose()
    with pytest.raises(StateError):
        await take(handle, 1)
    await handle.stop()


async def test_one_who_takes_long_to_hear_of_it_keeps_nobody_waiting(
    ws: Workspace, records: Switched
) -> None:
    told: list[WatchError] = []

    async def hang(_: WatchError) -> None:
        await asyncio.Event().wait()

    async with (
        ws.watch(poll_interval_ms=5, on_error=hang) as slow,
        ws.watch(poll_interval_ms=5, on_error=told.append) as quick,
    ):
        waiting = [asyncio.create_task(take(handle, 1)) for handle in (slow, quick)]
        await until(lambda: records.polls > 1)
        records.off = True
        await until(lambda: len(told) == 3)
        records.off = False
        await ws.write(A, "x")
        assert [
            event.sequence for events in await asyncio.gather(*waiting) for event in events
        ] == [
            1,
            1,
        ]


class Busy(DelegatingRecordStore):
    """A store that plans under its lock but does not answer in place just now."""

    async def get_many(
        self, partition: str, keys: Sequence[str], *, bodies: bool = True
    ) -> list[Record | None]:
        await asyncio.sleep(0.002)
        return await super().get_many(partition, keys, bodies=bodies)


async def test_a_store_that_is_busy_is_asked_again_and_nothing_is_missed(
    make_ws: Callable[..., Workspace], storage: Storage, runtime: LocalRuntime
) -> None:
    ws = make_ws(storage=storage_room.storage(records=Busy(storage.records)), runtime=runtime)
    await ws.write(A, "before")
    handle = ws.watch()
    assert handle.cursor is None
    await ws.write(A, "after")
    await ws.write(A, "later")
    assert [event.sequence for event in await take(handle, 2)] == [2, 3]
    await handle.stop()
