"""A read-only replica serves reads and watchers, refuses writes, and takes over when the primary is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from crux_workspace.errors import StorageError
from crux_workspace.storage.layout import partition_name
from storage_adapters.sql.postgres import PostgresRecordStore
from tests.postgres.conftest import Opening
from tests.support.postgres import PostgresServer, serving
from tests.support.soundness import check_sound
from tests.watch.conftest import take

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(120)]

A = "/workspace/a.md"


@pytest.fixture
def primary() -> Iterator[PostgresServer]:
    with serving("hot_standby=on", durable=True) as server:
        yield server


@pytest.fixture
def replica(primary: PostgresServer) -> Iterator[PostgresServer]:
    with primary.copied() as server:
        yield server


async def _caught_up(primary: PostgresServer, replica: PostgresServer) -> None:
    there, here = await primary.connect(), await replica.connect()
    end = await there.fetchval("select pg_current_wal_lsn()::text")
    text = "select pg_last_wal_replay_lsn() >= $1::text::pg_lsn"
    while not await here.fetchval(text, end):  # noqa: ASYNC110 - the server tells nobody
        await asyncio.sleep(0.01)
    await there.close()
    await here.close()


async def _cut_off(replica: PostgresServer) -> None:
    """Let a replica follow no longer."""
    connection = await replica.connect()
    await connection.execute("alter system set primary_conninfo = ''")
    await connection.execute("select pg_reload_conf()")
    text = "select count(*) from pg_stat_wal_receiver"
    while await connection.fetchval(text):  # noqa: ASYNC110 - the server tells nobody
        await asyncio.sleep(0.01)
    await connection.close()


async def test_a_replica_is_read_and_watched_and_refuses_writes(
    primary: PostgresServer, replica: PostgresServer, opening: Opening
) -> None:
    ws, reading = await opening(primary.url()), await opening(replica.url())
    async with reading.watch(recursive=True, poll_interval_ms=20) as feed:
        await ws.write(A, "one")
        await _caught_up(primary, replica)
        assert [event.path for event in await take(feed, 1)] == [A]
    assert await reading.read_text(A) == "one"
    assert [entry.path for entry in await reading.list("/workspace")] == [A]
    for call in (
        reading.append(A, "two"),
        reading.write("/workspace/b", bytes(400_000)),
        reading.drop_namespace("default"),
        reading.delete(A),
    ):
        with pytest.raises(StorageError, match="read-only replica") as refused:
            await call
        assert refused.value.code == "STORE_UNAVAILABLE"
    assert await reading.read_text(A) == "one"


async def test_writes_go_on_at_the_replica_when_it_takes_over(
    primary: PostgresServer, replica: PostgresServer, opening: Opening
) -> None:
    both = f"{primary.folder},{replica.folder}"
    url = f"postgresql://postgres@/crux?host={both}&target_session_attrs=read-write"
    ws = await opening(url)
    for number in range(3):
        await ws.append(A, f"{number}\n")
    await _caught_up(primary, replica)
    await asyncio.to_thread(primary.crash)
    with pytest.raises(StorageError) as away:
        await ws.append(A, "lost\n")
    assert away.value.retryable
    await asyncio.to_thread(replica.promote)
    await ws.append(A, "3\n")
    assert (await ws.read_text(A)).split() == ["0", "1", "2", "3"]
    assert [entry.sequence for entry in await ws.log()] == [4, 3, 2, 1]


async def test_what_a_lost_primary_told_is_not_believed_at_its_successor(
    primary: PostgresServer, replica: PostgresServer, opening: Opening
) -> None:
    """A revision that the successor never got is given out again there, for somebody else's change."""
    both = f"{primary.folder},{replica.folder}"
    url = f"postgresql://postgres@/crux?host={both}&target_session_attrs=read-write"
    ws = await opening(url)
    for number in range(7):  # from then on it is planned without reading
        await ws.write(A, f"{number}")
    await _caught_up(primary, replica)
    await _cut_off(replica)
    assert (await ws.write(A, "mine, and lost")).version == 8
    await asyncio.to_thread(primary.crash)
    await asyncio.to_thread(replica.promote)
    other = await opening(replica.url())
    theirs = await other.write(A, "theirs", metadata={"by": "other"})
    assert theirs.version == 8
    after = await ws.write(A, "three")
    assert after.version == 9
    assert await ws.read_text(A, version=8) == "theirs"
    assert (await ws.read(A, version=8)).metadata == {"by": "other"}
    async with await PostgresRecordStore.open(replica.url()) as store:
        await check_sound(store, partition_name("default", "default"))


async def test_a_primary_that_became_a_replica_is_left_for_the_new_one(
    primary: PostgresServer, replica: PostgresServer, opening: Opening
) -> None:
    """Connections that still work lead to the wrong server: the first refused write gives all of them up."""
    both = f"{primary.folder},{replica.folder}"
    ws = await opening(f"postgresql://postgres@/crux?host={both}&target_session_attrs=read-write")
    await asyncio.gather(*(ws.append(A, "x", namespace=f"{n}") for n in range(4)))
    await ws.append(A, "1")
    await _caught_up(primary, replica)
    await asyncio.to_thread(replica.promote)
    admin = await primary.connect()
    await admin.execute("alter system set default_transaction_read_only = on")
    await admin.execute("select pg_reload_conf()")
    await admin.close()
    await asyncio.sleep(0.3)
    with pytest.raises(StorageError, match="read-only replica"):
        await ws.append(A, "2")
    await ws.append(A, "3")
    assert await ws.read_text(A) == "13"
