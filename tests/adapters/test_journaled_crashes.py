"""A journaled store's process ends at each of its calls; others go on at the same time: nothing is lost, torn or left over.

`CRUX_FAULTS=all` sweeps over every call; by default a share of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest

from crux_workspace.storage import (
    Batch,
    MemoryRecordStore,
    OutcomeUnknown,
    Plan,
    PreconditionFailed,
    Put,
    Reader,
)
from crux_workspace.storage.layout import META_KEY, decode_meta
from crux_workspace.testing import MemoryMinimalStore
from storage_adapters.journaled import JournaledRecordStore, journaled
from tests.adapters.conftest import PART
from tests.support.journals import Crash, OverStore, audit, small_nodes
from tests.support.stages import chosen

COUNT = "count\x01"


def step(who: str, number: int) -> Plan:
    """Add one to the counter, and leave a mark; now and then delete an old one."""

    async def plan(reader: Reader) -> Batch:
        meta, count = await reader.get_many([META_KEY, COUNT])
        value = 0 if count is None else int(count.value)
        return Batch(
            commit_id=f"{who}{number:08d}".encode().hex(),
            verb="write",
            now=number,
            incarnation=None if meta is None else decode_meta(meta.value).incarnation,
            expect={COUNT: 0 if count is None else count.revision},
            puts=[
                Put(COUNT, str(value + 1).encode(), b"%d" % value),
                Put(f"mark\x01{who}{number:08d}\x01", b"{}", f"{who}{number}".encode()),
            ],
            deletes=[f"mark\x01{who}{number - 5:08d}\x01"] if number % 3 == 0 else [],
        )

    return plan


async def work(store: JournaledRecordStore, who: str, rounds: int, done: list[int]) -> None:
    """Commit steps until the process ends; note the acknowledged ones."""
    for number in range(1, rounds + 1):
        while True:
            try:
                await store.commit_planned(PART, step(who, number))
            except PreconditionFailed:
                continue
            break
        done.append(number)


async def judge(below: MemoryMinimalStore, done: dict[str, list[int]]) -> None:
    """Read with fresh eyes: what was acknowledged is there, at most the last step of each more, and the log tells all of it."""
    store = journaled(below)
    (count,) = await store.get_many(PART, [COUNT])
    committed = 0 if count is None else int(count.value)
    told = sum(len(numbers) for numbers in done.values())
    assert told <= committed <= told + len(done)
    if committed == 0:
        return
    page = await store.scan(PART, "", limit=100_000, bodies=True)
    logs = [r for r in page.records if r.key.startswith("log\x01")]
    assert len(logs) == committed
    marks = {r.key.split("\x01")[1]: r.body for r in page.records if r.key.startswith("mark\x01")}
    for who, numbers in done.items():
        last = len(numbers)
        for number in range(1, last + 1):
            gone = any(later - 5 == number for later in range(3, last + 2, 3))
            assert gone or marks[f"{who}{number:08d}"] == f"{who}{number}".encode()


async def take_over(below: MemoryMinimalStore, rounds: int) -> None:
    """Whoever comes next goes on, and puts in order what the dead one left."""
    store = journaled(below)
    before = (await store.sequences([PART]))[0]
    done: list[int] = []
    await work(store, "next", rounds, done)
    assert await store.sequences([PART]) == [before + rounds]
    await audit(below, PART)


async def _calls(rounds: int) -> int:
    over = OverStore(MemoryMinimalStore())
    await work(journaled(over), "a", rounds, [])
    return over.calls


@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after its effect"])
async def test_a_process_that_ends_at_any_call_loses_and_tears_nothing(
    after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_nodes(monkeypatch)
    calls = await _calls(13)
    assert calls > 150
    for number in chosen(range(1, calls + 1), f"alone {after}", 0.5):
        below = MemoryMinimalStore()
        over = OverStore(below, crash_at=number, after=after)
        done: list[int] = []
        with pytest.raises(Exception):  # noqa: B017,PT011 - however the end shows
            await work(journaled(over), "a", 14, done)
        await judge(below, {"a": done})
        await take_over(below, 7)


@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after its effect"])
async def test_of_two_that_race_one_ends_at_any_call_and_the_other_goes_on(
    after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_nodes(monkeypatch)
    for number in chosen(range(1, 400), f"racing {after}", 0.2):
        chance = random.Random(number)
        below = MemoryMinimalStore()
        dying = OverStore(below, crash_at=number, after=after, chance=chance)
        living = OverStore(below, chance=chance)
        done: dict[str, list[int]] = {"a": [], "b": []}
        results = await asyncio.gather(
            work(journaled(dying), "a", 20, done["a"]),
            work(journaled(living), "b", 10, done["b"]),
            return_exceptions=True,
        )
        assert results[1] is None
        assert len(done["b"]) == 10
        await judge(below, done)
        await take_over(below, 7)


async def test_a_drop_that_ends_at_any_call_leaves_the_partition_whole_or_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_nodes(monkeypatch)
    below = MemoryMinimalStore()
    await work(journaled(below), "a", 14, [])
    whole = dict(below.held)
    reference = MemoryRecordStore()
    for number in range(1, 15):
        await reference.commit_planned(PART, step("a", number))
    number = 0
    while True:
        number += 1
        below.held = dict(whole)
        over = OverStore(below, crash_at=number)
        dying = journaled(over)
        with contextlib.suppress(Crash, OutcomeUnknown):
            await dying.drop(PART)
        fresh = journaled(below)
        page = await fresh.scan(PART, "", limit=10_000, bodies=True)
        if page.records:
            assert page == await reference.scan(PART, "", limit=10_000, bodies=True)
        else:
            assert await fresh.sequences([PART]) == [0]
            assert (await fresh.partitions("", limit=9)).names == []
        await fresh.drop(PART)
        await audit(below, PART)
        assert not [k for k in below.held if k.startswith(("node/", "body/"))]
        done: list[int] = []
        await work(fresh, "again", 7, done)
        assert await fresh.sequences([PART]) == [7]
        await audit(below, PART)
        if over.calls < number:
            return
