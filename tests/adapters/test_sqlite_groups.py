"""Group commit: everybody gets a verdict of their own, and only after COMMIT."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crux_workspace.errors import ErrorCode, InternalError, StorageError
from crux_workspace.storage import (
    Batch,
    CeilingExceeded,
    Committed,
    OutcomeUnknown,
    PreconditionFailed,
    Put,
    Reader,
    Take,
)
from storage_adapters.sql import SqliteRecordStore
from storage_adapters.sql.opening import Connections

PART = "ws\x01n\x01"

Audit = Callable[[], tuple[int, int, int]]


async def _raise(reader: Reader) -> Batch:
    await reader.get_many(["head\x01a\x01"])
    raise LookupError("the plan's own")


class _Failing:
    """A connection whose COMMIT fails, before or after it happened."""

    def __init__(self, inner: sqlite3.Connection, code: int, *, applied: bool) -> None:
        self.inner = inner
        self.code = code
        self.applied = applied
        self.armed = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def execute(self, text: str, *parameters: Any) -> Any:
        if text == "commit" and self.armed:
            self.armed = False
            if self.applied:
                self.inner.execute(text)
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = self.code
            raise error
        return self.inner.execute(text, *parameters)


async def test_each_job_of_a_group_gets_its_own_verdict(
    sqlite: SqliteRecordStore, writing: Any, audit: Audit
) -> None:
    first = await sqlite.commit_planned(PART, writing.plan("first"))
    stale = await writing.plan("stale")(_Nothing())
    stale.incarnation = "f" * 32

    async def greedy(reader: Reader) -> Batch:
        batch: Batch = await writing.plan("greedy")(reader)
        batch.counters = {"files": (5, 3)}
        return batch

    verdicts = await asyncio.gather(
        sqlite.commit_planned(PART, writing.plan("a")),
        sqlite.commit(PART, stale),
        sqlite.commit_planned(PART, _raise),
        sqlite.commit_planned(PART, greedy),
        sqlite.commit_planned(PART, writing.plan("b")),
        return_exceptions=True,
    )
    assert first.sequence == 1
    assert verdicts[0] == Committed(2, 1)
    assert isinstance(verdicts[1], PreconditionFailed)
    assert isinstance(verdicts[2], LookupError)
    assert isinstance(verdicts[3], CeilingExceeded)
    assert (verdicts[3].used, verdicts[3].limit) == (2, 3)
    assert verdicts[4] == Committed(3, 1)
    assert audit() == (3, 3, 3)


async def test_later_jobs_see_what_earlier_ones_of_the_group_wrote(
    sqlite: SqliteRecordStore, writing: Any, audit: Audit
) -> None:
    seen: list[Any] = []

    async def look(reader: Reader) -> Batch:
        seen.append((await reader.get_many(["head\x01a\x01"]))[0].body)  # type: ignore[union-attr]
        page = await reader.scan("head\x01", limit=10)
        seen.append([record.key for record in page.records])
        batch: Batch = await writing.plan("b")(reader)
        return batch

    await asyncio.gather(
        sqlite.commit_planned(PART, writing.plan("a", b"one")),
        sqlite.commit_planned(PART, writing.plan("a", b"two")),
        sqlite.commit_planned(PART, look),
    )
    assert seen == [b"two", ["head\x01a\x01"]]
    assert audit() == (2, 3, 3)


async def test_ranges_that_earlier_jobs_filled_are_not_empty(
    sqlite: SqliteRecordStore, writing: Any
) -> None:
    verdicts = await asyncio.gather(
        sqlite.commit_planned(PART, writing.plan("d\x02x")),
        sqlite.commit_planned(PART, writing.plan("d")),
        return_exceptions=True,
    )
    assert verdicts[0] == Committed(1, 1)
    assert isinstance(verdicts[1], PreconditionFailed)
    assert verdicts[1].what == "empty"


async def test_a_hundred_writers_of_one_file_lose_nothing(
    sqlite: SqliteRecordStore, writing: Any, audit: Audit
) -> None:
    done = await asyncio.gather(
        *(sqlite.commit_planned(PART, writing.plan("hot", b"%d" % n)) for n in range(100))
    )
    assert [verdict.sequence for verdict in done] == list(range(1, 101))
    assert audit() == (1, 100, 100)


@pytest.mark.parametrize("together", [True, False])
async def test_a_put_of_a_key_that_nobody_read_frees_the_body_it_replaces(
    sqlite: SqliteRecordStore, writing: Any, audit: Audit, together: bool
) -> None:
    first = await writing.plan("first")(_Nothing())
    await sqlite.commit(PART, first)

    def blind(names: str, body: bytes) -> Batch:
        """Put several keys, and expect nothing of them."""
        return Batch(
            commit_id=body.hex().ljust(24, "0"),
            verb="write",
            now=1,
            incarnation=first.commit_id,
            puts=[Put(f"head\x01{name}\x01", b"{}", body + name.encode()) for name in names],
        )

    batches = [blind("ab", b"1"), blind("cb", b"2"), blind("cad", b"3")]
    if together:
        await asyncio.gather(*(sqlite.commit(PART, batch) for batch in batches))
    else:
        for batch in batches:
            await sqlite.commit(PART, batch)
    assert audit() == (5, 4, 4)
    keys = [f"head\x01{name}\x01" for name in "abcd"]
    found = await sqlite.get_many(PART, keys)
    assert [record and record.body for record in found] == [b"3a", b"2b", b"3c", b"3d"]


async def test_large_jobs_are_cut_into_several_transactions(
    sqlite: SqliteRecordStore, writing: Any, audit: Audit
) -> None:
    body = bytes(600_000)
    done = await asyncio.gather(
        *(sqlite.commit_planned(PART, writing.plan(f"f{n}", body)) for n in range(7))
    )
    assert [verdict.sequence for verdict in done] == [1, 2, 3, 4, 5, 6, 7]
    assert audit() == (7, 7, 7)


async def test_a_full_database_refuses_one_job_and_its_neighbours_land(
    sqlite: SqliteRecordStore, writing: Any, connections: list[Connections], audit: Audit
) -> None:
    await sqlite.commit_planned(PART, writing.plan("first"))
    writer = connections[0].writer
    ((pages,),) = writer.execute("pragma page_count").fetchall()
    writer.execute(f"pragma max_page_count = {pages + 20}").fetchall()
    verdicts = await asyncio.gather(
        sqlite.commit_planned(PART, writing.plan("a")),
        sqlite.commit_planned(PART, writing.plan("big", bytes(500_000))),
        sqlite.commit_planned(PART, writing.plan("b")),
        return_exceptions=True,
    )
    assert [verdicts[0], verdicts[2]] == [Committed(2, 1), Committed(3, 1)]
    refused = verdicts[1]
    assert isinstance(refused, StorageError)
    assert refused.code == ErrorCode.STORE_UNAVAILABLE
    assert isinstance(refused.__cause__, sqlite3.Error)
    assert audit() == (3, 3, 3)


@pytest.mark.parametrize("applied", [True, False])
async def test_a_lost_commit_is_an_unknown_outcome(
    path: Path,
    writing: Any,
    connections: list[Connections],
    monkeypatch: pytest.MonkeyPatch,
    audit: Audit,
    applied: bool,
) -> None:
    from storage_adapters.sql import store as module

    remember = module.open_connections  # type: ignore[attr-defined]

    def failing(*arguments: Any, **options: Any) -> Connections:
        opened: Connections = remember(*arguments, **options)
        code = sqlite3.SQLITE_IOERR | (4 << 8)
        opened.writer = _Failing(opened.writer, code, applied=applied)  # type: ignore[assignment]
        return opened

    monkeypatch.setattr(module, "open_connections", failing)
    async with await SqliteRecordStore.open(path) as store:
        with pytest.raises(OutcomeUnknown):
            await store.commit_planned(PART, writing.plan("a"))
        after = await store.commit_planned(PART, writing.plan("b"))
        assert after.sequence == (2 if applied else 1)
    heads, logs, sequence = audit()
    assert heads == logs == sequence == after.sequence


async def test_a_plan_that_awaits_something_else_is_refused(
    sqlite: SqliteRecordStore, audit: Audit
) -> None:
    async def sleepy(reader: Reader) -> Batch:
        await asyncio.sleep(0)
        raise AssertionError

    with pytest.raises(InternalError):
        await sqlite.commit_planned(PART, sleepy)
    assert audit() == (0, 0, 0)


async def test_a_malformed_batch_leaves_no_rows(
    sqlite: SqliteRecordStore, writing: Any, audit: Audit
) -> None:
    async def malformed(reader: Reader) -> Batch:
        batch: Batch = await writing.plan("bad")(reader)
        batch.puts.append(Put("head\x01worse\x01", None))  # type: ignore[arg-type]
        return batch

    verdicts = await asyncio.gather(
        sqlite.commit_planned(PART, writing.plan("a")),
        sqlite.commit_planned(PART, malformed),
        sqlite.commit_planned(PART, writing.plan("b")),
        return_exceptions=True,
    )
    assert [verdicts[0], verdicts[2]] == [Committed(1, 1), Committed(2, 1)]
    assert isinstance(verdicts[1], TypeError)
    assert audit() == (2, 2, 2)


async def test_plans_run_in_the_writers_thread(sqlite: SqliteRecordStore, writing: Any) -> None:
    threads: list[str] = []

    async def plan(reader: Reader) -> Batch:
        threads.append(threading.current_thread().name)
        batch: Batch = await writing.plan("a")(reader)
        return batch

    await sqlite.commit_planned(PART, plan)
    assert threads == ["crux-writer-records.db"]


async def test_reads_go_on_while_the_writer_is_busy(
    sqlite: SqliteRecordStore, writing: Any
) -> None:
    await sqlite.commit_planned(PART, writing.plan("a", b"old"))
    entered, release = threading.Event(), threading.Event()

    async def slow(reader: Reader) -> Batch:
        batch: Batch = await writing.plan("a", b"new")(reader)
        entered.set()
        release.wait(10)
        return batch

    task = asyncio.ensure_future(sqlite.commit_planned(PART, slow))
    while not entered.is_set():  # noqa: ASYNC110 - set by another thread
        await asyncio.sleep(0.001)
    (record,) = await sqlite.get_many(PART, ["head\x01a\x01"])
    assert record is not None
    assert record.body == b"old"
    release.set()
    assert (await task).sequence == 2
    (record,) = await sqlite.get_many(PART, ["head\x01a\x01"])
    assert record is not None
    assert record.body == b"new"


async def test_cancelled_commits_are_wholly_there_or_absent(
    sqlite: SqliteRecordStore, writing: Any, audit: Audit
) -> None:
    rng = random.Random(7)
    acknowledged = 0
    for n in range(200):
        task = asyncio.ensure_future(sqlite.commit_planned(PART, writing.plan(f"f{n}")))
        for _ in range(rng.randint(0, 3)):
            await asyncio.sleep(0)
        task.cancel()
        try:
            await task
            acknowledged += 1
        except asyncio.CancelledError:
            pass
    last = await sqlite.commit_planned(PART, writing.plan("last"))
    heads, logs, sequence = audit()
    assert heads == logs == sequence == last.sequence
    assert sequence >= acknowledged + 1


async def test_bodies_move_and_leave_no_orphans(
    sqlite: SqliteRecordStore, writing: Any, audit: Audit
) -> None:
    await sqlite.commit_planned(PART, writing.plan("a", b"A"))
    await sqlite.commit_planned(PART, writing.plan("b", b"B"))

    def swap(puts: list[Put], deletes: list[str]) -> Any:
        async def plan(reader: Reader) -> Batch:
            batch: Batch = await writing.plan("c")(reader)
            batch.puts, batch.deletes = puts, deletes
            return batch

        return plan

    a, b, kept = "head\x01a\x01", "head\x01b\x01", "state\x01\x04\x01"
    await sqlite.commit_planned(PART, swap([Put(a, b"{}", Take(b)), Put(b, b"{}", Take(a))], []))
    assert [r and r.body for r in await sqlite.get_many(PART, [a, b])] == [b"B", b"A"]
    await sqlite.commit_planned(PART, swap([Put(kept, b"{}", Take(a)), Put(a, b"{}", b"new")], []))
    await sqlite.commit_planned(PART, swap([Put(a, b"{}", Take(a)), Put(b, b"{}")], []))
    await sqlite.commit_planned(PART, swap([Put("x\x01", b"{}", Take(a))], [a]))
    page = await sqlite.scan(PART, "", limit=100, bodies=True)
    bodies = {r.key: r.body for r in page.records if r.body is not None}
    assert bodies == {"state\x010000000000000004\x01": b"B", "x\x01": b"new"}
    audit()
    await sqlite.drop(PART)
    assert audit() == (0, 0, 0)


class _Nothing:
    """A reader of an empty partition."""

    async def get_many(self, keys: list[str], *, bodies: bool = True) -> list[None]:
        return [None] * len(keys)
