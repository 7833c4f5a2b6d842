"""The doubles do what they say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Literal

import pytest

from crux_workspace.storage.assets import AssetStore, PutOptions
from crux_workspace.storage.memory import MemoryAssetStore, MemoryRecordStore
from crux_workspace.storage.records import Batch, OutcomeUnknown, Put, Reader, RecordStore
from crux_workspace.testing import (
    CommitOnlyRecordStore,
    CountingAssetStore,
    CountingRecordStore,
    FaultyAssetStore,
    FaultyRecordStore,
    FixedClock,
    LatencyRecordStore,
    SequentialIds,
)
from crux_workspace.testing.doubles import FaultyRecordStore as SameFaultyRecordStore
from crux_workspace.testing.report import check_asset_store, check_record_store

_OPTIONS = PutOptions(key="a/" + "0" * 32, mime_type="text/plain")


def _batch(sequence: int, **expect: int) -> Batch:
    return Batch(
        commit_id=f"c{sequence}",
        verb="write",
        now=1,
        incarnation=None if sequence == 1 else "c1",
        puts=[Put("a", b"{}")],
        expect=expect,
    )


async def _plan(reader: Reader) -> Batch:
    (record,) = await reader.get_many(["a"])
    await reader.scan("a", limit=1)
    revision = 0 if record is None else record.revision
    return _batch(revision + 1, a=revision)


async def test_counting_store_counts_what_a_plan_reads() -> None:
    store = CountingRecordStore(MemoryRecordStore())
    await store.commit_planned("p", _plan)
    assert store.counts == {"commit_planned": 1, "plan": 1, "get_many": 1, "scan": 1}
    assert (store.reads, store.commits) == (2, 1)
    store.reset()
    await store.get_many("p", ["a", "b"])
    await store.scan("p", "", limit=1)
    await store.commit("p", _batch(2))
    await store.sequences(["p"])
    await store.partitions("", limit=1)
    await store.drop("p")
    assert sorted(store.counts) == sorted(
        ["get_many", "scan", "commit", "sequences", "partitions", "drop"]
    )
    assert set(store.counts.values()) == {1}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", [1, 2, 3])
@pytest.mark.parametrize("under_lock", [True, False])
async def test_faulty_store_fails_each_call_of_a_planned_commit(
    when: Literal["before", "after"], call: int, under_lock: bool
) -> None:
    memory = MemoryRecordStore()
    inner: RecordStore = memory if under_lock else CommitOnlyRecordStore(memory)
    dry = FaultyRecordStore(inner)
    await dry.commit_planned("p", _plan)
    assert (dry.calls, dry.failed) == (["get_many", "scan", "commit"], 0)
    store = FaultyRecordStore(inner, fail_on_call=call, when=when)
    lost = when == "after" and call == 3
    with pytest.raises(OutcomeUnknown if lost else ConnectionError):
        await store.commit_planned("p", _plan)
    assert await memory.sequences(["p"]) == [2 if lost else 1]
    assert (len(store.calls), store.failed) == (call, 1)
    await store.commit_planned("p", _plan)
    assert await memory.sequences(["p"]) == [3 if lost else 2]


async def test_faulty_store_hides_a_refusal_behind_a_lost_answer() -> None:
    memory = MemoryRecordStore()
    await memory.commit("p", _batch(1))

    async def stale(reader: Reader) -> Batch:
        return _batch(2, a=9)

    for inner in (memory, CommitOnlyRecordStore(memory)):
        with pytest.raises(OutcomeUnknown):
            await FaultyRecordStore(inner, fail_on_call=1, when="after").commit_planned("p", stale)
        with pytest.raises(OutcomeUnknown):
            await FaultyRecordStore(inner, fail_on_call=1, when="after").commit("p", _batch(2, a=9))
    assert await memory.sequences(["p"]) == [1]


async def test_faulty_store_numbers_every_call_and_may_stay_away() -> None:
    store = FaultyRecordStore(
        MemoryRecordStore(), fail_on_call=5, and_later=True, error=OSError("gone")
    )
    await store.get_many("p", ["a"])
    await store.scan("p", "", limit=1)
    await store.commit("p", _batch(1))
    await store.sequences(["p"])
    for call in (store.partitions("", limit=1), store.drop("p"), store.sequences(["p"])):
        with pytest.raises(OSError, match="gone"):
            await call
    assert store.failed == 3
    assert store.calls[:5] == ["get_many", "scan", "commit", "sequences", "partitions"]


async def test_faulty_asset_store_fails_before_or_after_the_effect() -> None:
    cases: tuple[tuple[Literal["before", "after"], int], ...] = (("before", 0), ("after", 1))
    for when, kept in cases:
        memory = MemoryAssetStore()
        store = FaultyAssetStore(memory, fail_on_call=1, when=when)
        with pytest.raises(ConnectionError):
            await store.put(b"x", _OPTIONS)
        assert len((await memory.list("", limit=9)).assets) == kept
        assert await store.get((await store.put(b"x", _OPTIONS)).ref) == b"x"
    for when, _ in cases:
        received = [b"x"] if when == "after" else []
        store = FaultyAssetStore(memory, fail_on_call=1, when=when)
        chunks: list[bytes] = []

        async def read(into: list[bytes] = chunks, source: FaultyAssetStore = store) -> None:
            async for chunk in source.stream(_OPTIONS.key):
                into.append(chunk)  # noqa: PERF401 - what came before the failure counts

        with pytest.raises(ConnectionError):
            await read()
        assert chunks == received
        assert (store.calls, store.failed) == (["stream"], 1)


async def test_counting_asset_store_counts() -> None:
    store = CountingAssetStore(MemoryAssetStore())
    asset = await store.put(b"x", _OPTIONS)
    await store.get(asset.ref)
    assert [c async for c in store.stream(asset.ref)] == [b"x"]
    await store.list("", limit=1)
    await store.delete(asset.ref)
    assert store.counts == dict.fromkeys(["put", "get", "stream", "list", "delete"], 1)
    store.reset()
    assert not store.counts


async def test_interference_between_plan_and_commit_makes_a_new_plan() -> None:
    memory = MemoryRecordStore()
    inner = CommitOnlyRecordStore(memory)
    store = CountingRecordStore(inner)
    await store.commit_planned("p", _plan)
    store.reset()

    async def once() -> None:
        inner.between = None
        await memory.commit("p", _batch(2))

    inner.between = once
    assert (await store.commit_planned("p", _plan)).sequence == 3
    assert store.counts["plan"] == 2
    assert store.reads == 4


async def test_latency_store_takes_its_time() -> None:
    store = LatencyRecordStore(MemoryRecordStore(), delay_ms=5)
    start = time.perf_counter()
    await store.commit_planned("p", _plan)
    assert time.perf_counter() - start >= 0.014
    start = time.perf_counter()
    await asyncio.gather(*(store.sequences(["p"]) for _ in range(20)))
    assert time.perf_counter() - start < 0.1


async def test_wrappers_keep_the_contract() -> None:
    ids = ["R-011", "R-024", "R-030", "R-070", "R-071", "R-072", "R-075", "R-094", "R-101"]
    for wrapper in (CountingRecordStore, FaultyRecordStore, LatencyRecordStore):

        def wrapped(wrapper: Callable[[RecordStore], RecordStore] = wrapper) -> RecordStore:
            return wrapper(MemoryRecordStore())

        report = await check_record_store(wrapped, only=ids)
        assert report.passed, str(report)
    for assets in (CountingAssetStore, FaultyAssetStore):

        def kept(wrapper: Callable[[AssetStore], AssetStore] = assets) -> AssetStore:
            return wrapper(MemoryAssetStore())

        report = await check_asset_store(kept)
        assert report.passed, str(report)


def test_clock_and_ids_do_as_they_are_told() -> None:
    clock, ids = FixedClock(now=5), SequentialIds()
    assert (clock(), clock.advance(10), clock(), clock.now) == (5, 15, 15, 15)
    clock.now = 1
    assert clock() == 1
    assert [ids(), ids()] == ["0" * 31 + "1", "0" * 31 + "2"]
    assert SameFaultyRecordStore is FaultyRecordStore
