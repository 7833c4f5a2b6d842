# ruff: noqa: ASYNC240 - tests may look at files
"""Whose store it is, and what it leaves behind."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from crux_workspace.errors import ErrorCode, StateError, StorageError
from crux_workspace.storage import Contains, Page
from storage_adapters.sql import SqliteRecordStore, readers
from storage_adapters.sql.locking import WriteLock

PART = "ws\x01n\x01"


def _threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def _open_files(fds: Path) -> list[str]:
    return sorted(str(f.readlink()) for f in fds.iterdir() if f.exists())


def _settled_threads(expected: set[str]) -> set[str]:
    deadline = time.monotonic() + 5
    while _threads() - expected and time.monotonic() < deadline:
        time.sleep(0.01)
    return _threads() - expected


async def test_a_closed_store_leaves_no_threads_and_no_open_files(path: Path, writing: Any) -> None:
    fds = Path("/proc/self/fd")
    if not fds.is_dir():
        pytest.skip("needs /proc")
    threads = _threads()
    async with await SqliteRecordStore.open(path) as store:
        await store.commit_planned(PART, writing.plan("a"))  # lazy imports open files
        await store.scan(PART, "", limit=10, filter=Contains(b"x"))
    assert _settled_threads(threads) == set()
    before = _open_files(fds)
    for _ in range(3):
        async with await SqliteRecordStore.open(path) as store:
            await store.commit_planned(PART, writing.plan("a"))
            await store.scan(PART, "", limit=10, filter=Contains(b"x"))
    assert _settled_threads(threads) == set()
    assert _open_files(fds) == before


async def test_closing_waits_for_commits_in_flight(path: Path, writing: Any, audit: Any) -> None:
    store = await SqliteRecordStore.open(path)
    tasks = [
        asyncio.ensure_future(store.commit_planned(PART, writing.plan(f"f{n}"))) for n in range(200)
    ]
    await asyncio.sleep(0)
    await asyncio.gather(store.aclose(), store.aclose())
    await store.aclose()
    assert [task.result().sequence for task in tasks] == list(range(1, 201))
    assert audit() == (200, 200, 200)


async def test_a_closed_store_refuses_every_call(path: Path) -> None:
    store = await SqliteRecordStore.open(path)
    await store.aclose()
    calls = [
        store.get_many(PART, ["a"]),
        store.scan(PART, "", limit=1),
        store.commit_planned(PART, None),  # type: ignore[arg-type]
        store.sequences([PART]),
        store.partitions("", limit=1),
        store.drop(PART),
    ]
    for call in calls:
        with pytest.raises(StateError) as refused:
            await call
        assert refused.value.code == ErrorCode.WORKSPACE_CLOSED


async def test_a_cancelled_opening_leaves_no_thread(path: Path) -> None:
    threads = _threads()
    for ticks in range(4):
        task = asyncio.ensure_future(SqliteRecordStore.open(path))
        for _ in range(ticks):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert _settled_threads(threads) == set()


async def test_a_forgotten_store_ends_its_thread(path: Path) -> None:
    threads = _threads()
    store = await SqliteRecordStore.open(path)
    del store
    gc.collect()
    assert _settled_threads(threads) == set()


def test_another_loop_is_refused(path: Path) -> None:
    with asyncio.Runner() as first, asyncio.Runner() as second:
        store = first.run(SqliteRecordStore.open(path))
        for call in (store.sequences([PART]), store.aclose()):
            with pytest.raises(StateError) as refused:
                second.run(_await(call))
            assert refused.value.code == ErrorCode.WRONG_LOOP
        first.run(store.aclose())


async def _await(call: Any) -> Any:
    return await call


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")  # that is the test
async def test_a_forked_child_is_refused(sqlite: SqliteRecordStore, writing: Any) -> None:
    await sqlite.commit_planned(PART, writing.plan("a"))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            await sqlite.aclose()  # leaves the parent's things alone
            await sqlite.sequences([PART])
        except StateError as refused:
            status = 0 if refused.code == ErrorCode.FORKED else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0  # noqa: ASYNC222 - it is gone at once
    assert (await sqlite.commit_planned(PART, writing.plan("b"))).sequence == 2


async def test_a_busy_read_falls_back_to_the_thread(
    sqlite: SqliteRecordStore, writing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sqlite.commit_planned(PART, writing.plan("a", b"text"))

    def busy(*_: Any) -> None:
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise error

    monkeypatch.setattr(readers, "run", busy)
    (record,) = await sqlite.get_many(PART, ["head\x01a\x01"])
    assert record is not None
    assert record.body == b"text"


async def test_a_database_that_stays_locked_is_a_timeout(
    path: Path, writing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage_adapters.sql.opening.BUSY_TIMEOUT_S", 0.1)
    async with await SqliteRecordStore.open(path) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("begin immediate")
        verdicts = await asyncio.gather(
            *(store.commit_planned(PART, writing.plan(f"f{n}")) for n in range(3)),
            return_exceptions=True,
        )
        other.close()
        for verdict in verdicts:
            assert isinstance(verdict, StorageError)
            assert verdict.code == ErrorCode.STORE_TIMEOUT
            assert verdict.retryable
            assert isinstance(verdict.__cause__, sqlite3.Error)
        assert (await store.commit_planned(PART, writing.plan("a"))).sequence == 1


async def test_an_abandoned_file_lock_only_costs_patience(
    path: Path, writing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage_adapters.sql.locking._PATIENCE_S", 0.05)
    async with await SqliteRecordStore.open(path) as store:
        lock = WriteLock(path)
        assert lock.acquire()
        assert (await store.commit_planned(PART, writing.plan("a"))).sequence == 1
        lock.release()
        lock.close()


async def test_reads_that_closing_overtakes_are_answered_or_refused(path: Path) -> None:
    for ticks in range(6):
        threads = _threads()
        store = await SqliteRecordStore.open(path)
        task = asyncio.ensure_future(store.scan(PART, "", limit=10, filter=Contains(b"x")))
        for _ in range(ticks):
            await asyncio.sleep(0.0005)
        await store.aclose()
        (answer,) = await asyncio.gather(task, return_exceptions=True)
        refused = isinstance(answer, StateError) and answer.code == ErrorCode.WORKSPACE_CLOSED
        assert refused or answer == Page([])
        assert _settled_threads(threads) == set()
