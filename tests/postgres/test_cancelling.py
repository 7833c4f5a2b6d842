"""Whoever is cancelled, at whichever step of a call, of closing or listening: others go on, and nothing stays taken or open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import pytest

from crux_workspace import Workspace, open_workspace
from crux_workspace.storage.guessing import Guesses
from crux_workspace.storage.layout import partition_name
from crux_workspace.storage.memory import MemoryAssetStore
from crux_workspace.testing import FixedClock
from storage_adapters.sql.postgres import PostgresRecordStore
from tests.adapters.conftest import Writing
from tests.support.cancelling import cancelled_after, steps
from tests.support.guessing_store import guess_always
from tests.support.postgres import PostgresServer
from tests.support.soundness import check_sound
from tests.support.verb_cases import make
from tests.watch.conftest import until

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(120)]

A = "/workspace/a.md"
_CLIENTS = (
    "select count(*) from pg_stat_activity "
    "where backend_type = 'client backend' and pid <> pg_backend_pid()"
)


@pytest.fixture
async def counting(
    postgres_server: PostgresServer, postgres_url: str
) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """A connection that counts the others; at the end there are as many as before, and no task is left."""
    del postgres_url
    connection = await postgres_server.connect()
    before = await connection.fetchval(_CLIENTS)
    yield connection
    async with asyncio.timeout(10):
        while await connection.fetchval(_CLIENTS) > before:  # noqa: ASYNC110 - the server's count, not an event
            await asyncio.sleep(0.01)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    await connection.close()


def is_given_back(store: PostgresRecordStore) -> bool:
    """Tell whether every connection lies in the pool, and every place for a writer is free."""
    pool = store.database.pool
    return len(pool._idle) == pool.open and pool._writers._free == 7 and not pool._waiting


async def newest(ws: Workspace) -> int:
    """Return the version that is there."""
    file = await ws.stat(A)
    assert file is not None
    return file.version


WAYS: dict[str, Callable[[Guesses, str], None]] = {
    "guessed": guess_always,
    "read": Guesses.forget,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("made", [True, False], ids=["connected", "connecting"])
async def test_a_write_cancelled_at_any_step_is_there_once_or_not_at_all(
    way: str, made: bool, postgres_url: str
) -> None:
    """It goes on in another task from the step at which its caller left; whoever comes next is not held up by it."""
    async with await PostgresRecordStore.open(postgres_url) as store:
        ws = make(store, MemoryAssetStore(), FixedClock()).for_namespace("n")
        partition = partition_name("w", "n")
        last: dict[str, int] = {}

        async def write(number: int) -> None:
            last[A] = (await ws.write(A, f"{number}")).version

        await write(0)
        ended, landed = 0, 1
        for number, step in enumerate(steps(), 1):
            if not made:
                store.database.pool.expire()
            WAYS[way](store.database.guesses, partition)
            was_over = await cancelled_after(step, write(number))
            ended += was_over
            await ws._core.in_flight.wait()
            assert is_given_back(store)
            version = await newest(ws)
            assert landed <= version <= landed + 1
            assert not was_over or version == last[A] == landed + 1
            assert (await ws.read_text(A) == f"{number}") == (version > landed)
            landed = version
            if ended == 3:
                break
        assert [entry.sequence for entry in await ws.log(limit=10_000)] == list(
            range(landed, 0, -1)
        )
        await check_sound(store, partition)


async def test_callers_that_are_cancelled_leave_their_turn_to_the_others(postgres_url: str) -> None:
    """Eight writers of one namespace queue up; some leave while they wait, or while their turn is given to them."""
    async with await PostgresRecordStore.open(postgres_url) as store:
        ws = make(store, MemoryAssetStore(), FixedClock()).for_namespace("n")
        written = 0
        for step in range(60):
            writers = [asyncio.create_task(ws.append(A, "x")) for _ in range(8)]
            for _ in range(step):
                await asyncio.sleep(0)
            for writer in writers[1::2]:
                writer.cancel()
            async with asyncio.timeout(10):
                await asyncio.wait(writers)
            await ws._core.in_flight.wait()
            assert all(writer.exception() is None for writer in writers[::2])
            version = await newest(ws)
            assert written + 4 <= version <= written + 8
            written = version
            assert is_given_back(store)
        assert await ws.read_text(A) == "x" * written


async def test_closing_that_is_cancelled_goes_on_and_is_waited_for_by_the_next(
    postgres_url: str, counting: object
) -> None:
    """Calls are under way, and somebody listens."""
    del counting
    for step in steps():
        store = await PostgresRecordStore.open(postgres_url)
        store.listen("p", lambda _: None)
        committing = asyncio.create_task(store.commit_planned(f"p{step}", Writing().plan("a")))
        await asyncio.sleep(0)
        was_closed = await cancelled_after(step, store.aclose())
        async with asyncio.timeout(10):
            await store.aclose()
        assert store.database.pool.open == 0
        assert (await committing).sequence == 1, "a commit that was handed over is waited for"
        if was_closed:
            break


async def test_closing_a_workspace_that_is_cancelled_is_taken_up_by_the_next(
    opening_without_end: Callable[[], Any], counting: object
) -> None:
    """Records and assets share their connections: whoever is last closes them, however often it was cancelled."""
    del counting
    for step in steps():
        ws: Workspace = await opening_without_end()
        await ws.write(A, "x")
        was_closed = await cancelled_after(step, ws.aclose())
        async with asyncio.timeout(10):
            await ws.aclose()
        if was_closed:
            break


@pytest.fixture
def opening_without_end(postgres_url: str) -> Callable[[], Any]:
    return lambda: open_workspace(postgres_url).__aenter__()


async def test_listening_that_ends_at_any_step_is_over_and_disturbs_no_other(
    postgres_url: str, counting: object
) -> None:
    """Who leaves while the connection is being made hears nothing more; who comes then hears everything."""
    del counting
    writing = Writing()
    async with await PostgresRecordStore.open(postgres_url) as writer:
        for step in steps():
            store = await PostgresRecordStore.open(postgres_url)
            gone: list[int] = []
            there: list[int] = []
            leave = store.listen("p", gone.append)
            for _ in range(step):
                await asyncio.sleep(0)
            leave()
            leave()
            before = len(gone)
            stay = store.listen("p", there.append)
            done = await writer.commit_planned("p", writing.plan(f"{step}"))
            await until(lambda there=there, done=done: done.sequence in there)  # type: ignore[misc]
            assert len(gone) == before
            stay()
            await cancelled_after(step % 4, store.aclose())
            await store.aclose()
            if before and step > 40:
                break


async def test_a_watch_that_is_cancelled_at_any_step_leaves_nothing(
    postgres_url: str, opening_without_end: Callable[[], Any], counting: object
) -> None:
    del counting, postgres_url
    for step in steps():
        ws: Workspace = await opening_without_end()
        await ws.write(A, f"{step}")
        feed = ws.watch(start="oldest")
        was_over = await cancelled_after(step, anext(feed))
        await cancelled_after(step % 5, feed.stop())
        await feed.stop()
        await ws.aclose()
        if was_over:
            break
    await until(lambda: len(asyncio.all_tasks()) == 1)
