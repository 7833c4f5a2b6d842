"""Checks of `commit_planned`."""

from __future__ import annotations

import asyncio

from crux_workspace.storage.layout import META_KEY, decode_meta
from crux_workspace.storage.planning import MAX_PLANS
from crux_workspace.storage.records import (
    Batch,
    CeilingExceeded,
    Plan,
    PreconditionFailed,
    Reader,
    RecordStore,
)
from crux_workspace.testing.checks import raises, same
from crux_workspace.testing.record_checks.bench import (
    RECORD_CHECKS,
    FreshRecords,
    Writer,
    put,
    refused,
    seed,
)

__all__: list[str] = []


class _PlanFailed(Exception):
    """Raised by a plan of ours."""


async def _increment(writer: Writer, reader: Reader) -> Batch:
    (record,) = await reader.get_many(["n"])
    count, revision = (0, 0) if record is None else (int(record.value), record.revision)
    return writer.batch(put("n", str(count + 1).encode()), expect={"n": revision})


@RECORD_CHECKS.add()
async def check_plan_sees_commits(store: RecordStore, fresh: FreshRecords) -> None:
    """R-070: a plan sees what earlier commits wrote, and its batch is committed like any other."""
    writer = await seed(store, fresh, put("n", b"0"), now=1_000)

    async def plan(reader: Reader) -> Batch:
        return await _increment(writer, reader)

    for n in range(1, 4):
        committed = await store.commit_planned(writer.partition, plan)
        same((committed.sequence, committed.at), (n + 1, 1_000), "what it returns")
        same((await writer.one("n")).value, str(n).encode(), "the record")
    await writer.commit(put("n", b"10"))
    await store.commit_planned(writer.partition, plan)
    same((await writer.one("n")).value, b"11", "after a plain commit")


@RECORD_CHECKS.add()
async def check_plan_error(store: RecordStore, fresh: FreshRecords) -> None:
    """R-071: an exception of the plan reaches the caller as it is; nothing is written, nothing stays locked."""
    writer = await seed(store, fresh, put("a"))
    before = await writer.everything()
    error = _PlanFailed("no")
    calls = 0

    async def plan(reader: Reader) -> Batch:
        nonlocal calls
        calls += 1
        await reader.get_many(["a"])
        raise error

    async with raises(_PlanFailed, "the plan's exception") as caught:
        await store.commit_planned(writer.partition, plan)
    same((caught.error is error, calls), (True, 1), "the same exception, after one call")
    same(await writer.everything(), before, "records")
    same((await writer.commit(put("b"))).sequence, 2, "the next commit")
    absent = fresh.name()
    async with raises(_PlanFailed, "the plan's exception for an absent partition"):
        await store.commit_planned(absent, plan)
    same(await store.sequences([absent]), [0], "a failed plan creates no partition")


@RECORD_CHECKS.add()
async def check_concurrent_increments(store: RecordStore, fresh: FreshRecords) -> None:
    """R-072: of 20 planned increments of one record at a time, each lands once or is refused."""
    writer = await seed(store, fresh, put("n", b"0"))
    landed: list[int] = []

    async def plan(reader: Reader) -> Batch:
        return await _increment(writer, reader)

    async def increment() -> None:
        while True:
            try:
                committed = await store.commit_planned(writer.partition, plan)
            except PreconditionFailed:
                same(store.capabilities.plans_under_lock, False, "refused under a lock")
                continue
            landed.append(committed.sequence)
            return

    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(increment())
    same(sorted(landed), list(range(2, 22)), "sequences of the increments")
    record = await writer.one("n")
    same((record.value, record.revision), (b"20", 21), "the record in the end")


@RECORD_CHECKS.add("not plans_under_lock")
async def check_refused_plan_is_run_again(store: RecordStore, fresh: FreshRecords) -> None:
    """R-073: where plans take no lock, a refused one is run again on what is there now."""
    writer = await seed(store, fresh, put("n", b"0"))
    runs = 0

    async def plan(reader: Reader) -> Batch:
        nonlocal runs
        runs += 1
        batch = await _increment(writer, reader)
        if runs <= 2:
            await writer.commit(put("n", str(100 * runs).encode()))
        return batch

    committed = await store.commit_planned(writer.partition, plan)
    same((runs, committed.sequence), (3, 4), "runs of the plan, and its sequence")
    same((await writer.one("n")).value, b"201", "planned on what was there")

    async def hopeless(reader: Reader) -> Batch:
        nonlocal runs
        runs += 1
        await reader.get_many(["n"])
        return writer.batch(put("n"), expect={"n": 999})

    runs = 0
    async with refused(writer, "revision", subject="n"):
        await store.commit_planned(writer.partition, hopeless)
    same(runs, MAX_PLANS, "runs of a plan that is always refused")


@RECORD_CHECKS.add("plans_under_lock")
async def check_plan_under_lock(store: RecordStore, fresh: FreshRecords) -> None:
    """R-074: where plans hold the lock, nobody commits between a plan's reads and its commit."""
    writer = await seed(store, fresh, put("n", b"0"))
    runs = 0

    async def plan(reader: Reader) -> Batch:
        nonlocal runs
        runs += 1
        first = await reader.get_many(["n", META_KEY])
        batch = await _increment(writer, reader)
        same(await reader.get_many(["n", META_KEY]), first, "two reads of one plan")
        return batch

    async def interfere() -> None:
        for n in range(10):
            await writer.commit(put("other", str(n).encode()))

    async with asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(_commit(store, writer, plan))
        group.create_task(interfere())
    same(runs, 10, "runs of ten plans")
    same((await writer.one("n")).value, b"10", "the record in the end")
    same(await store.sequences([writer.partition]), [21], "commits in the end")


async def _commit(store: RecordStore, writer: Writer, plan: Plan) -> None:
    await store.commit_planned(writer.partition, plan)


@RECORD_CHECKS.add()
async def check_plan_reader(store: RecordStore, fresh: FreshRecords) -> None:
    """R-075: a plan's reader answers like the store: order, paging, folding, bodies."""
    keys = ["h\x01a\x01", "h\x01b\x02c\x01", "h\x01b\x02d\x01", "h\x01e\x01"]
    writer = await seed(store, fresh, *(put(k, b'{"v":1}', k.encode()) for k in keys))
    name = writer.partition
    expected = [
        await store.get_many(name, [keys[1], "x", keys[0]]),
        await store.get_many(name, keys, bodies=False),
        await store.scan(name, "h\x01", limit=2),
        await store.scan(name, "h\x01", after=keys[0], limit=9, bodies=True),
        await store.scan(name, "h\x01", before=keys[3], reverse=True, limit=9),
        await store.scan(name, "h\x01", limit=9, delimiter="\x02"),
        await store.scan(name, "q", limit=9),
    ]
    seen: list[object] = []

    async def plan(reader: Reader) -> Batch:
        seen[:] = [
            await reader.get_many([keys[1], "x", keys[0]]),
            await reader.get_many(keys, bodies=False),
            await reader.scan("h\x01", limit=2),
            await reader.scan("h\x01", after=keys[0], limit=9, bodies=True),
            await reader.scan("h\x01", before=keys[3], reverse=True, limit=9),
            await reader.scan("h\x01", limit=9, delimiter="\x02"),
            await reader.scan("q", limit=9),
        ]
        return writer.batch(put("z"))

    await store.commit_planned(name, plan)
    for nth, (got, wanted) in enumerate(zip(seen, expected, strict=True)):
        same(got, wanted, f"answer {nth} of the plan's reader")


@RECORD_CHECKS.add()
async def check_planned_refusals(store: RecordStore, fresh: FreshRecords) -> None:
    """R-076: a planned batch is judged like any other; a passed ceiling is told at once."""
    writer = await seed(store, fresh, put("a"), counters={"n": (1, None)})
    runs = 0

    async def over(reader: Reader) -> Batch:
        nonlocal runs
        runs += 1
        await reader.get_many(["a"])
        return writer.batch(put("b"), counters={"n": (1, 1)})

    async with refused(writer, "ceiling", kind=CeilingExceeded):
        await store.commit_planned(writer.partition, over)
    same(runs, 1, "runs of a plan that passes a ceiling")

    async def stale(reader: Reader) -> Batch:
        await reader.get_many(["a"])
        return writer.batch(put("b"), expect={"a": 9})

    async with refused(writer, "revision", subject="a"):
        await store.commit_planned(writer.partition, stale)

    async def strange(reader: Reader) -> Batch:
        await reader.get_many(["a"])
        return writer.batch(put("b"), incarnation=fresh.id())

    async with refused(writer, "incarnation"):
        await store.commit_planned(writer.partition, strange)


@RECORD_CHECKS.add()
async def check_first_commit_planned(store: RecordStore, fresh: FreshRecords) -> None:
    """R-077: a plan can make a partition's first commit; of several at a time one makes it."""
    partition = fresh.name()
    writer = Writer(store, partition, fresh)

    async def plan(reader: Reader) -> Batch:
        (meta,) = await reader.get_many([META_KEY])
        batch = writer.batch(put(fresh.id()))
        if meta is not None:
            batch.incarnation = decode_meta(meta.value).incarnation
        return batch

    results = await asyncio.gather(*(store.commit_planned(partition, plan) for _ in range(5)))
    same(sorted(c.sequence for c in results), [1, 2, 3, 4, 5], "sequences")
