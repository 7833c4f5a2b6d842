"""Who holds a namespace's lock, who waits for it, and for how long."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from crux_workspace import Workspace
from crux_workspace.errors import StorageError
from crux_workspace.model.changes import Change
from crux_workspace.storage import Batch, Reader
from crux_workspace.storage.planning import PartitionReader
from storage_adapters.sql.postgres import PostgresRecordStore, database
from storage_adapters.sql.postgres.committing import Request, apply
from tests.adapters.conftest import Writing
from tests.postgres.conftest import Opening
from tests.support.crew import Crew
from tests.support.postgres import PostgresServer
from tests.watch.conftest import nothing_from, take

pytestmark = pytest.mark.postgres

A = "/workspace/a.md"
DEFAULT = "default\x01default\x01"


async def test_a_commit_that_holds_its_sequence_while_others_wait_is_seen_first(
    store: PostgresRecordStore, postgres_url: str, opening: Opening
) -> None:
    ws, watching = await opening(postgres_url), await opening(postgres_url)
    await ws.write(A, "1")
    plan = Writing().plan("workspace\x02held")
    async with watching.watch(recursive=True, poll_interval_ms=10) as feed:
        await feed.ready()
        async with store.database.holding(DEFAULT) as connection:
            batch = await plan(PartitionReader(store, DEFAULT))
            batch.changes = [Change("create", "/workspace/held", version=1, file_id="f" * 32)]
            held = await apply(store.database, connection, Request(DEFAULT, batch))
            others = [asyncio.create_task(ws.write(f"/workspace/{n}", "x")) for n in range(4)]
            await nothing_from(feed, for_s=0.3)
            assert not any(other.done() for other in others)
            await store.database.commit(connection)
        written = await asyncio.gather(*others)
        events = await take(feed, 5)
    assert held.sequence == 2
    assert [event.sequence for event in events] == [2, 3, 4, 5, 6]
    assert events[0].path == "/workspace/held"
    assert {file.sequence for file in written} == {3, 4, 5, 6}


async def test_who_waits_too_long_for_a_lock_is_told_so(
    store: PostgresRecordStore, postgres_server: PostgresServer, opening: Opening
) -> None:
    ws = await opening(postgres_server.url(lock_timeout_ms=150, pool_size=4))
    await ws.write(A, "1")
    async with store.database.holding(DEFAULT):
        started = asyncio.get_running_loop().time()
        done = await asyncio.gather(
            *(ws.append(A, str(n)) for n in range(4)), return_exceptions=True
        )
        assert asyncio.get_running_loop().time() - started < 5
        assert [getattr(one, "code", None) for one in done] == ["STORE_TIMEOUT"] * 4
        assert all("nothing was written" in str(one) for one in done)
        # Neither readers nor writers elsewhere are held up by those who wait.
        waiting = [asyncio.create_task(ws.append(A, "5")) for _ in range(10)]
        await asyncio.sleep(0.02)
        assert await ws.read_text(A) == "1"
        await ws.write(A, "1", namespace="elsewhere")
        for one in waiting:
            with pytest.raises(StorageError):
                await one
    await ws.append(A, "2")
    assert await ws.read_text(A) == "12"


async def test_a_first_commit_waits_for_another_first_one(
    store: PostgresRecordStore, opening: Opening, postgres_server: PostgresServer
) -> None:
    ws = await opening(postgres_server.url(lock_timeout_ms=100))
    async with store.database.holding(DEFAULT):
        with pytest.raises(StorageError) as late:
            await ws.write(A, "1")
        assert late.value.code == "STORE_TIMEOUT"
    assert await store.sequences([DEFAULT]) == [0]
    files = await asyncio.gather(*(ws.write(f"/workspace/{n}", "x") for n in range(5)))
    assert sorted(file.sequence for file in files) == [1, 2, 3, 4, 5]


async def test_a_statement_that_takes_too_long_is_a_typed_error(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    async with await PostgresRecordStore.open(
        postgres_server.url(statement_timeout_ms=1_000)
    ) as store:

        def slow() -> database.Query[database.Rows]:
            return (yield "select pg_sleep(20)", ())

        with pytest.raises(StorageError) as late:
            await store.database.read(slow)
        assert late.value.code == "STORE_TIMEOUT"
        assert late.value.retryable
        assert await store.sequences(["p"]) == [0]


async def test_a_plan_that_stands_still_under_the_lock_loses_it(
    postgres_url: str, store: PostgresRecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`idle_in_transaction_session_timeout` ends it: nothing is written, nobody waits for ever."""
    monkeypatch.setattr(database, "_STANDING_STILL_MS", 200)
    writing = Writing()
    await store.commit_planned("p", writing.plan("a"))
    async with await PostgresRecordStore.open(postgres_url) as sleepy:
        calls = 0

        async def plan(reader: Reader) -> Batch:
            nonlocal calls
            calls += 1
            batch = await writing.plan("a")(reader)
            if calls <= 3:  # refused until it holds the lock
                await store.commit_planned("p", writing.plan("a"))
            else:
                await asyncio.sleep(0.6)
            return batch

        with pytest.raises(StorageError) as ended:
            await sleepy.commit_planned("p", plan)
        assert ended.value.retryable
        assert await sleepy.sequences(["p"]) == [4]
        assert (await store.commit_planned("p", writing.plan("a"))).sequence == 5
        assert (await sleepy.commit_planned("p", writing.plan("a"))).sequence == 6


_STOPPING = """
import asyncio, json, os, signal, sys
from storage_adapters.sql.postgres import PostgresRecordStore, database
database._STANDING_STILL_MS = 500
async def main():
    async with await PostgresRecordStore.open(sys.argv[1]) as store:
        async with store.database.holding(sys.argv[2]):
            print(json.dumps(os.getpid()), flush=True)
            await asyncio.sleep(3600)
asyncio.run(main())
"""


async def test_a_process_that_stops_while_it_holds_the_lock_holds_up_nobody_for_long(
    postgres_url: str, opening: Opening, crew: Crew
) -> None:
    ws = await opening(postgres_url)
    await ws.write(A, "1")
    worker = crew.start(_STOPPING, postgres_url, DEFAULT)
    os.kill(await asyncio.to_thread(worker.first), signal.SIGSTOP)
    await ws.append(A, "2")
    assert await ws.read_text(A) == "12"


async def test_hot_plans_of_several_stores_all_land(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    """Refused plans take the lock in the end: nobody starves, however many there are."""
    stores = [await PostgresRecordStore.open(postgres_server.url(pool_size=4)) for _ in range(4)]
    writing = Writing()
    done = await asyncio.gather(
        *(store.commit_planned("hot", writing.plan("a")) for store in stores for _ in range(10))
    )
    assert sorted(one.sequence for one in done) == list(range(1, 41))
    for store in stores:
        await store.aclose()


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
async def test_the_isolation_that_the_database_defaults_to_does_not_matter(
    postgres_server: PostgresServer, postgres_url: str, level: str
) -> None:
    admin = await postgres_server.connect()
    await admin.execute(f"alter database crux set default_transaction_isolation = '{level}'")
    try:
        await test_hot_plans_of_several_stores_all_land(postgres_server, postgres_url)
    finally:
        await admin.execute("alter database crux reset default_transaction_isolation")
        await admin.close()


async def test_a_pool_without_a_free_connection_is_a_typed_error(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    url = postgres_server.url(pool_size=1, connect_timeout_ms=100)
    async with await PostgresRecordStore.open(url) as store:
        held = await store.database.pool.acquire()
        with pytest.raises(StorageError, match="pool") as full:
            await store.sequences(["p"])
        assert full.value.code == "STORE_TIMEOUT"
        waiting = asyncio.create_task(store.sequences(["p"]))
        await asyncio.sleep(0)
        store.database.pool.release(held)
        assert await waiting == [0]


async def test_closing_waits_for_what_is_in_flight(
    postgres_url: str, store: PostgresRecordStore, opening: Opening
) -> None:
    ws: Workspace = await opening(postgres_url)
    await ws.write(A, "1")
    async with store.database.holding(DEFAULT):
        writing = asyncio.create_task(ws.append(A, "2"))
        await asyncio.sleep(0.05)
        closing = asyncio.create_task(ws.aclose())
        await asyncio.sleep(0.05)
        assert not closing.done()
    await writing
    await closing
    assert await store.sequences([DEFAULT]) == [2]
