"""Checks of a store's declarations, of its end, and of what lies behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from crux_workspace.storage.capabilities import StoreCapabilities
from crux_workspace.storage.records import NotifyingRecordStore, PreconditionFailed, RecordStore
from crux_workspace.testing.checks import CheckFailed, NotApplicable, holds, raises, same
from crux_workspace.testing.record_checks.bench import (
    RECORD_CHECKS,
    FreshRecords,
    Writer,
    everything,
    one,
    put,
    seed,
)

__all__: list[str] = []

_PATIENCE = 100
_PAUSE_S = 0.02


async def _another(store: RecordStore, fresh: FreshRecords) -> RecordStore:
    if fresh.hooks.another is None:
        raise NotApplicable("the hook `another` is not given")
    return await fresh.hooks.another(store)


@RECORD_CHECKS.add()
async def check_capabilities(store: RecordStore, fresh: FreshRecords) -> None:
    """R-130: a store declares its capabilities, and they stay the same."""
    before = store.capabilities
    same(isinstance(before, StoreCapabilities), True, "capabilities are declared")
    await seed(store, fresh, put("a"))
    same(store.capabilities, before, "capabilities after a commit")


@RECORD_CHECKS.add()
async def check_aclose(store: RecordStore, fresh: FreshRecords) -> None:
    """R-131: a store can be closed again and again."""
    await seed(store, fresh, put("a"))
    await store.aclose()
    await store.aclose()


@RECORD_CHECKS.add("durable")
async def check_durable(store: RecordStore, fresh: FreshRecords) -> None:
    """R-132: what was acknowledged is there when the data is opened again."""
    if fresh.hooks.another is None:
        raise NotApplicable("the hook `another` is not given")
    writer = await seed(store, fresh, put("a", b'{"v":1}', b"body"), counters={"n": (1, None)})
    await writer.commit(put("b", b'{"v":2}'))
    before = await writer.everything()
    await store.aclose()
    second = await _another(store, fresh)
    try:
        same(await everything(second, writer.partition), before, "records after reopening")
        same(await second.sequences([writer.partition]), [2], "sequence after reopening")
        again = Writer(second, writer.partition, fresh)
        again.incarnation = writer.incarnation
        same((await again.commit(put("c"))).sequence, 3, "the next commit")
    finally:
        await second.aclose()


@RECORD_CHECKS.add("multi_process")
async def check_two_stores(store: RecordStore, fresh: FreshRecords) -> None:
    """R-133: two stores on the same data see each other's commits and refuse each other's stale ones."""
    second = await _another(store, fresh)
    try:
        writer = await seed(store, fresh, put("a", b'{"v":1}'))
        other = Writer(second, writer.partition, fresh)
        other.incarnation = writer.incarnation
        same(await other.everything(), await writer.everything(), "records seen by both")
        same((await other.commit(put("a", b'{"v":2}'), expect={"a": 1})).sequence, 2, "sequence")
        async with raises(PreconditionFailed, "a stale expectation"):
            await writer.commit(put("a"), expect={"a": 1})
        same((await writer.one("a")).value, b'{"v":2}', "the other store's commit")
        same(await store.sequences([writer.partition]), [2], "sequence seen by the first")
        await second.drop(writer.partition)
        async with raises(PreconditionFailed, "a batch for a dropped partition"):
            await writer.commit(put("a"))
    finally:
        await second.aclose()


@RECORD_CHECKS.add()
async def check_peek(store: RecordStore, fresh: FreshRecords) -> None:
    """R-134: what is acknowledged is really stored (hook `peek`)."""
    peek = fresh.hooks.peek
    if peek is None:
        raise NotApplicable("the hook `peek` is not given")
    writer = await seed(store, fresh, put("a", b'{"v":1}', b"body"), put("b"))
    same(await peek(store, writer.partition, "a"), (b'{"v":1}', b"body"), "the stored record")
    await writer.commit(deletes=["a"])
    same(await peek(store, writer.partition, "a"), None, "the deleted record")


@RECORD_CHECKS.add("multi_process")
async def check_poke(store: RecordStore, fresh: FreshRecords) -> None:
    """R-135: what others wrote is seen, not something remembered (hook `poke`)."""
    poke = fresh.hooks.poke
    if poke is None:
        raise NotApplicable("the hook `poke` is not given")
    writer = await seed(store, fresh, put("a", b'{"v":1}'))
    await one(store, writer.partition, "a")
    await poke(store, writer.partition, "a", b'{"v":2}')
    same((await one(store, writer.partition, "a")).value, b'{"v":2}', "the value behind the store")


@RECORD_CHECKS.add("notify")
async def check_word_of_others(store: RecordStore, fresh: FreshRecords) -> None:
    """R-136: word of another store's commit and drop reaches who listens, without polling."""
    second = await _another(store, fresh)
    try:
        writer = await seed(store, fresh, put("a"))
        heard, leave = _listening(store, writer.partition)
        other = Writer(second, writer.partition, fresh)
        other.incarnation = writer.incarnation
        await _until(lambda: len(heard) > 0, other)
        await second.drop(writer.partition)
        await _soon(lambda: 0 in heard, "word of the drop")
        leave()
    finally:
        await second.aclose()


@RECORD_CHECKS.add("notify")
async def check_word_of_one_partition(store: RecordStore, fresh: FreshRecords) -> None:
    """R-137: who listens hears only of the partition asked for, and nothing more after leaving."""
    second = await _another(store, fresh)
    try:
        writer = await seed(store, fresh, put("a"))
        heard, leave = _listening(store, writer.partition)
        strange, leave_strange = _listening(store, fresh.name("another"))
        other = Writer(second, writer.partition, fresh)
        other.incarnation = writer.incarnation
        await _until(lambda: len(heard) > 0, other)
        same(strange, [], "word of a partition that nobody committed to")
        leave_strange()
        leave()
        known = len(heard)
        control, leave_control = _listening(store, writer.partition)
        await _until(lambda: len(control) > 0, other)
        same(len(heard), known, "words heard after leaving")
        leave_control()
    finally:
        await second.aclose()


def _listening(store: RecordStore, partition: str) -> tuple[list[int], Callable[[], None]]:
    holds(isinstance(store, NotifyingRecordStore), "a store that declares notify has `listen`")
    assert isinstance(store, NotifyingRecordStore)
    heard: list[int] = []
    return heard, store.listen(partition, heard.append)


async def _until(holds_now: Callable[[], bool], other: Writer) -> None:
    """Commit again and again until word comes: listening may take a moment to begin."""
    for _ in range(_PATIENCE):
        await other.commit(put("a"))
        await asyncio.sleep(_PAUSE_S)
        if holds_now():
            return
    raise CheckFailed("word of another store's commits did not come")


async def _soon(holds_now: Callable[[], bool], what: str) -> None:
    for _ in range(_PATIENCE):
        if holds_now():
            return
        await asyncio.sleep(_PAUSE_S)
    raise CheckFailed(f"{what} did not come")
