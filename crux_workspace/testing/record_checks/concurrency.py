"""Checks of commits that race or are cancelled."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from crux_workspace.storage.records import Batch, PreconditionFailed, Reader, RecordStore
from crux_workspace.testing.checks import holds, same
from crux_workspace.testing.record_checks.bench import (
    RECORD_CHECKS,
    FreshRecords,
    Writer,
    changes,
    meta_of,
    put,
    seed,
)

__all__: list[str] = []

_STEPS = (0, 1, 2, 3, 5, 8, 13, 30)


async def _cancelled(task: asyncio.Task[object], steps: int) -> None:
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _all_or_nothing(writer: Writer, keys: list[str]) -> None:
    found = await writer.store.get_many(writer.partition, keys)
    revisions = {r.revision if r is not None else None for r in found}
    same(len(revisions), 1, "a cancelled commit is applied in part")


async def _goes_on(writer: Writer) -> None:
    committed = await asyncio.wait_for(writer.commit(put("last")), 30)
    meta = await meta_of(writer.store, writer.partition)
    same(meta.sequence, committed.sequence, "meta after cancelled commits")
    logged = [r for r in await writer.everything() if r.key.startswith("log\x01")]
    heads = sorted({r.revision for r in logged})
    same(heads, list(range(1, committed.sequence + 1)), "the log has no gap")


@RECORD_CHECKS.add()
async def check_cancelled_commit(store: RecordStore, fresh: FreshRecords) -> None:
    """R-080: a commit that is cancelled is applied whole or not at all, and the store goes on."""
    writer = await seed(store, fresh)
    for steps in _STEPS:
        keys = [f"k{steps:02d}-{n:02d}" for n in range(25)]
        batch = writer.batch(*(put(k, b"{}", b"body") for k in keys), changes=changes(20))
        task: asyncio.Task[object] = asyncio.create_task(store.commit(writer.partition, batch))
        await _cancelled(task, steps)
        await _all_or_nothing(writer, keys)
    await _goes_on(writer)


@RECORD_CHECKS.add()
async def check_cancelled_plan(store: RecordStore, fresh: FreshRecords) -> None:
    """R-081: a planned commit that is cancelled is applied whole or not at all, and leaves no lock behind."""
    writer = await seed(store, fresh)
    for steps in _STEPS:
        keys = [f"k{steps:02d}-{n:02d}" for n in range(25)]
        batch = writer.batch(*(put(k, b"{}", b"body") for k in keys))

        async def plan(reader: Reader, keys: list[str] = keys, batch: Batch = batch) -> Batch:
            await reader.get_many(keys)
            return batch

        task: asyncio.Task[object] = asyncio.create_task(
            store.commit_planned(writer.partition, plan)
        )
        await _cancelled(task, steps)
        await _all_or_nothing(writer, keys)
    await _goes_on(writer)


@RECORD_CHECKS.add()
async def check_one_winner(store: RecordStore, fresh: FreshRecords) -> None:
    """R-082: of commits that expect the same revision at the same time, exactly one is applied."""
    writer = await seed(store, fresh, put("a"))
    for revision in range(1, 6):
        batches = [
            writer.batch(put("a", str(n).encode()), put(f"w{revision}-{n}"), expect={"a": revision})
            for n in range(8)
        ]
        results = await asyncio.gather(
            *(store.commit(writer.partition, b) for b in batches), return_exceptions=True
        )
        errors = [r for r in results if isinstance(r, BaseException)]
        same(len(results) - len(errors), 1, "winners")
        holds(all(isinstance(e, PreconditionFailed) for e in errors), f"losers: {errors}")
        record = await writer.one("a")
        winner = next(n for n, r in enumerate(results) if not isinstance(r, BaseException))
        same((record.value, record.revision), (str(winner).encode(), revision + 1), "the record")
        page = await store.scan(writer.partition, f"w{revision}-", limit=9)
        same([r.key for r in page.records], [f"w{revision}-{winner}"], "traces of losers")


@RECORD_CHECKS.add()
async def check_many_at_once(store: RecordStore, fresh: FreshRecords) -> None:
    """R-083: commits to one partition and to others run at once; each gets a sequence of its own."""
    writers = [await seed(store, fresh) for _ in range(4)]
    jobs = [(w, n) for n in range(15) for w in writers]
    results = await asyncio.gather(
        *(w.commit(put(f"k{n}"), counters={"c": (1, None)}) for w, n in jobs)
    )
    for writer in writers:
        mine = [c.sequence for (w, _), c in zip(jobs, results, strict=True) if w is writer]
        same(sorted(mine), list(range(2, 17)), "sequences of one partition")
        same((await meta_of(store, writer.partition)).counters, {"c": 15}, "its counter")
        page = await store.scan(writer.partition, "k", limit=99)
        same(sorted(r.revision for r in page.records), sorted(mine), "its records' revisions")
