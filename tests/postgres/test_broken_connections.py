"""The way to the server drops, delays and truncates: what was asked for happens once, or not at all and is said so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crux_workspace import Workspace
from crux_workspace.errors import StorageError
from storage_adapters.sql.postgres import PostgresRecordStore, database
from tests.postgres.conftest import Opening, through
from tests.support.fault_proxy import FaultProxy
from tests.support.postgres import PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(120)]

A = "/workspace/a.md"


async def _append(ws: Workspace, number: int) -> None:
    del number
    await ws.append(A, "x")


async def _transaction(ws: Workspace, number: int) -> None:
    async with ws.transaction() as tx:
        await tx.list("/workspace", recursive=True)
        await tx.append(A, "x")
        await tx.write(f"/workspace/b/{number}", "x")


async def _move(ws: Workspace, number: int) -> None:
    await ws.write(f"/workspace/d{number}/1", "x")
    await ws.move(f"/workspace/d{number}", f"/workspace/e{number}")
    await ws.append(A, "x")
    assert not await ws.exists(f"/workspace/d{number}")
    assert [entry.version for entry in await ws.history(f"/workspace/e{number}/1")] == [1]


CALLS: dict[str, Callable[[Workspace, int], Awaitable[None]]] = {
    "append": _append,
    "transaction": _transaction,
    "move": _move,
}


@pytest.mark.parametrize("fault", ["lose request", "lose answer", "truncate answer"])
@pytest.mark.parametrize("call", CALLS)
async def test_a_connection_that_breaks_at_any_request_changes_nothing_of_the_result(
    proxy: FaultProxy, opening: Opening, call: str, fault: Any
) -> None:
    """A lost answer is looked for in the log: one version, not two."""
    ws = await opening(through(proxy, pool_size=2), namespace=f"{call}-{fault}")
    done, after = 0, 1
    while True:
        proxy.arm(fault, after)
        before = proxy.broken
        await CALLS[call](ws, done)
        done += 1
        assert await ws.read_text(A) == "x" * done
        assert [entry.version for entry in await ws.history(A)] == list(range(done, 0, -1))
        proxy.disarm()
        if proxy.broken == before:
            break
        after += 1
    assert after > 2, "some requests were broken"


async def test_a_write_that_waits_while_its_twin_is_resent_lands_once(
    proxy: FaultProxy, postgres_url: str, opening: Opening
) -> None:
    """The client is cut off while the server still waits for the lock with what it sent; the same write comes again."""
    ws = await opening(through(proxy, pool_size=2))
    await ws.write(A, "base")
    partition = "default\x01default\x01"
    async with await PostgresRecordStore.open(postgres_url) as other:
        async with other.database.holding(partition):
            proxy.arm("cut client", after=2, holding=b"+once")  # the first one waits for no lock
            writing = asyncio.create_task(ws.append(A, "+once", idempotency_key="k"))
            await _waiting_for_locks(other, 2)
            assert not writing.done()
        file = await writing
        await _waiting_for_locks(other, 0)
    assert proxy.broken == 1
    assert file.version == 2
    assert await ws.read_text(A) == "base+once"
    assert [entry.sequence for entry in await ws.log()] == [2, 1]


async def _waiting_for_locks(store: PostgresRecordStore, count: int) -> None:
    """Wait until so many commits wait for a lock."""
    text = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
    connection = await store.database.pool.acquire()
    async with asyncio.timeout(20):
        while await connection.fetchval(text) != count:  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)
    store.database.pool.release(connection)


async def test_a_slow_way_is_only_slow(proxy: FaultProxy, opening: Opening) -> None:
    proxy.faults.delay_s = 0.05
    ws = await opening(through(proxy, pool_size=2))
    for number in range(3):
        await ws.append(A, f"{number}\n")
    assert await ws.read_text(A) == "0\n1\n2\n"


async def test_a_way_that_swallows_everything_is_a_typed_error(
    proxy: FaultProxy, opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_GRACE_S", 0.1)
    ws = await opening(
        through(proxy, pool_size=2, statement_timeout_ms=200, connect_timeout_ms=300)
    )
    await ws.write(A, "1")
    proxy.faults.silent = proxy.faults.deaf = True
    with pytest.raises(StorageError) as unread:
        await ws.read_text(A)
    assert unread.value.code == "STORE_TIMEOUT"
    with pytest.raises(StorageError) as unwritten:
        await ws.append(A, "2")
    assert unwritten.value.retryable
    proxy.faults.silent = proxy.faults.deaf = False
    proxy.reset()
    await ws.append(A, "3")
    assert await ws.read_text(A) == "13"


async def test_all_connections_break_and_nobody_notices(
    proxy: FaultProxy, opening: Opening
) -> None:
    ws = await opening(through(proxy, pool_size=4))
    await ws.write(A, "")
    for number in range(5):
        await asyncio.gather(*(ws.append(A, f"{number}\n") for _ in range(4)))
        proxy.reset()
        assert len((await ws.read_text(A)).splitlines()) == 4 * (number + 1)


async def test_a_thousand_cancelled_calls_cost_no_connection(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    async with await PostgresRecordStore.open(postgres_server.url(pool_size=3)) as store:
        for number in range(1000):
            task = asyncio.create_task(store.scan("p", "", limit=1 + number % 50))
            for _ in range(number % 9):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        assert await store.sequences(["p"]) == [0]
        assert store.database.pool.open <= 3
    assert store.database.pool.open == 0
