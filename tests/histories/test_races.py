"""Somebody else is at the same history between two store calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from crux_workspace import Versioning, Workspace, workspace
from crux_workspace.errors import ErrorCode, NotFoundError
from crux_workspace.storage import MemoryRecordStore, Page, RecordStore
from crux_workspace.storage.capabilities import StoreCapabilities
from crux_workspace.testing import CommitOnlyRecordStore
from crux_workspace.testing.delegating import DelegatingRecordStore
from tests.histories.conftest import FILE, INLINE, House
from tests.support.long_texts import long_text

Act = Callable[[Workspace], Awaitable[Any]]


class Interrupted(DelegatingRecordStore):
    """Lets somebody act right before, or right after, the next scan of bodies outside of a plan."""

    act: Callable[[], Awaitable[Any]] | None = None
    when = "after"
    acted = False

    async def scan(self, partition: str, prefix: str, **options: Any) -> Page:
        act = self.act if options.get("bodies") else None
        if act is None:
            return await super().scan(partition, prefix, **options)
        self.act, self.acted = None, True
        if self.when == "before":
            await act()
        page = await super().scan(partition, prefix, **options)
        if self.when == "after":
            await act()
        return page


def _few(records: RecordStore) -> Workspace:
    return _make(records, versioning=Versioning(max_versions=2))


def _make(records: RecordStore, **options: Any) -> Workspace:
    return workspace(id="w", namespace="n", records=records, content=INLINE, **options)


async def _purged_and_written(ws: Workspace) -> None:
    await ws.delete(FILE, purge=True)
    for number in range(1, 9):
        await ws.write(FILE, long_text(number))


async def _pinned_and_collected(ws: Workspace) -> None:
    await ws.finalize(FILE, version=3)
    await _few(ws_records(ws)).write(FILE, long_text(50))


async def _renamed(ws: Workspace) -> None:
    await ws.rename(FILE, "/workspace/away.md")
    await ws.rename("/workspace/away.md", FILE)


ACTS: dict[str, Act] = {
    "collects": lambda ws: _few(ws_records(ws)).write(FILE, long_text(50)),
    "writes": lambda ws: ws.write(FILE, long_text(50)),
    "writes smaller": lambda ws: ws.gc(dry_run=False),
    "pins": lambda ws: ws.finalize(FILE, version=3),
    "pins and collects": _pinned_and_collected,
    "deletes": lambda ws: ws.delete(FILE),
    "purges": lambda ws: ws.delete(FILE, purge=True),
    "purges and writes as much": _purged_and_written,
    "renames away and back": _renamed,
    "undoes": lambda ws: ws.undo(FILE, to_version=2),
}


def ws_records(ws: Workspace) -> RecordStore:
    """Return the store that an act's workspace was made on."""
    return _RECORDS[id(ws)]


_RECORDS: dict[int, RecordStore] = {}


def _actor(records: RecordStore) -> Workspace:
    ws = _make(records)
    _RECORDS[id(ws)] = records
    return ws


@pytest.mark.parametrize("dress", [lambda s: s, CommitOnlyRecordStore], ids=["locked", "planned"])
@pytest.mark.parametrize("act", ACTS)
async def test_a_turn_survives_what_others_do_meanwhile(
    house: House, act: str, dress: Callable[[RecordStore], RecordStore]
) -> None:
    records = dress(house.storage.records)
    other, store = _actor(records), Interrupted(records)
    ws = _make(store)
    for number in range(1, 9):
        await ws.write(FILE, long_text(number))
    store.act = lambda: ACTS[act](other)
    file = await ws.write(FILE, long_text(51))
    assert store.acted
    await house.check()
    assert await ws.read_text(FILE) == long_text(51)
    known = {*map(long_text, range(1, 9)), long_text(50), long_text(51)}
    for entry in await ws.history(FILE):
        if entry.operation != "delete":
            assert await ws.read_text(FILE, version=entry.version) in known
    assert (await ws.history(FILE))[0].version == file.version
    for number in range(60, 80):
        await ws.write(FILE, long_text(number))
    await ws.gc(dry_run=False)
    await house.check()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("act", ACTS)
async def test_gc_survives_what_others_do_meanwhile(house: House, act: str, when: str) -> None:
    records = house.storage.records
    other, store = _actor(records), Interrupted(records)
    ws = _make(store)
    for number in range(1, 8):
        await ws.write(FILE, long_text(number))
    store.when = when
    store.act = lambda: ACTS[act](other)
    await ws.gc(dry_run=False)
    assert store.acted
    await house.check()
    await ws.gc(dry_run=False)
    await house.check()


async def test_a_reader_whose_chain_is_collected_finds_the_version_whole(house: House) -> None:
    records = house.storage.records
    store = Interrupted(records)
    ws = _make(store)
    for number in range(1, 10):
        await ws.write(FILE, long_text(number))
    await ws.finalize(FILE, version=3)
    store.act = lambda: _few(records).write(FILE, long_text(10))
    assert await ws.read_text(FILE, version=3) == long_text(3)
    assert store.acted
    assert (await house.encodings())[3] is None


@pytest.mark.parametrize("purge", [True, False], ids=["purge", "collection"])
async def test_a_reader_whose_version_goes_meanwhile_hears_that_it_expired(
    house: House, purge: bool
) -> None:
    records = house.storage.records
    store = Interrupted(records)
    ws = _make(store)
    for number in range(1, 10):
        await ws.write(FILE, long_text(number))
    other = _make(records)
    store.act = (
        (lambda: other.delete(FILE, purge=True))
        if purge
        else (lambda: _few(records).write(FILE, long_text(10)))
    )
    with pytest.raises(NotFoundError) as refused:
        await ws.read_text(FILE, version=3)
    assert store.acted
    assert refused.value.code == ErrorCode.VERSION_EXPIRED


async def test_many_writers_of_one_text_leave_a_readable_history(house: House) -> None:
    records = CommitOnlyRecordStore(house.storage.records)
    clients = [_make(records) for _ in range(6)]

    async def client(number: int) -> None:
        for turn in range(8):
            await clients[number].append(FILE, f"\nturn {turn} of {number}")

    await clients[0].write(FILE, long_text(0))
    await asyncio.gather(*(client(number) for number in range(6)))
    ws = clients[0]
    texts = [await ws.read_text(FILE, version=version) for version in range(1, 50)]
    assert all(newer.startswith(older) for older, newer in pairwise(texts))
    await ws.gc(dry_run=False)
    assert [await ws.read_text(FILE, version=version) for version in range(1, 50)] == texts
    await house.check()


class Narrow(MemoryRecordStore):
    """Takes commits that are hardly larger than a write."""

    capabilities: StoreCapabilities = replace(
        MemoryRecordStore.capabilities, max_commit_bytes=7_000
    )


async def test_a_store_that_takes_no_more_than_the_write_gets_no_more() -> None:
    records = Narrow()
    ws = _make(records)
    for number in range(1, 30):
        await ws.write(FILE, long_text(number))
    assert [await ws.read_text(FILE, version=n) for n in range(1, 30)] == [
        long_text(n) for n in range(1, 30)
    ]
