"""What the server reads for a call in a large namespace among many small ones: what the call asks for, whatever the statistics say."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from benchmarks.slices import fill
from benchmarks.verbs import ON_HOT_FILES, Act
from crux_workspace import Workspace, workspace
from storage_adapters import open_storage
from storage_adapters.sql.postgres import PostgresRecordStore
from tests.postgres.conftest import Opening
from tests.support.postgres import PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(120)]

HOT = "/workspace/hot/f0.md"
LARGE = 2_000
MOST = 200
"""Index entries that one call may fetch; a call that reads a whole namespace fetches ten times as many."""

_SMALL = """
insert into crux_workspace.partitions(name) select 'small' || n from generate_series(1, 5000) n;
insert into crux_workspace.records(part, key, revision, at, value, body)
    select id, k, 1, 1, '{}', case k when 'head' then 1 end from crux_workspace.partitions, unnest(array['head', 'meta']) k
    where name like 'small%';
insert into crux_workspace.bodies(part, id, data)
    select id, 1, 'x' from crux_workspace.partitions where name like 'small%'
"""
_FETCHED = """
select coalesce(sum(idx_tup_fetch), 0)::bigint from pg_stat_user_tables where schemaname = 'crux_workspace'
"""


class Counted:
    """A workspace on one connection, and what its calls made the server fetch."""

    def __init__(
        self, store: PostgresRecordStore, ws: Workspace, admin: asyncpg.Connection[asyncpg.Record]
    ) -> None:
        self.ws = ws
        self._store = store
        self._admin = admin

    async def of(self, act: Act) -> int:
        before = await self._fetched()
        await act(self.ws, HOT)
        return await self._fetched() - before

    async def _fetched(self) -> int:
        """Return what the connection has fetched so far; it tells when it is asked to."""
        pool = self._store.database.pool
        connection = await pool.acquire()
        await connection.execute("select pg_stat_force_next_flush()")
        pool.release(connection)
        await self._admin.execute("select pg_stat_clear_snapshot()")
        return int(await self._admin.fetchval(_FETCHED))


@pytest.fixture
async def counted(
    postgres_server: PostgresServer, postgres_url: str, opening: Opening
) -> AsyncIterator[Counted]:
    ws = await opening(postgres_server.url(pool_size=1), namespace="large")
    for number in range(5):
        await ws.write(HOT, f"{number}")
    await fill(ws, [f"/workspace/d{n % 30}/f{n}.md" for n in range(LARGE)], "x")
    admin = await postgres_server.connect()
    await admin.execute(_SMALL)
    await admin.execute("analyze")
    async with open_storage(postgres_server.url(pool_size=1)) as storage:
        assert isinstance(storage.records, PostgresRecordStore)
        again = workspace(id="default", namespace="large", storage=storage)
        yield Counted(storage.records, again, admin)
        await again.aclose()
    await admin.close()


async def test_no_verb_reads_more_than_it_asks_for(counted: Counted) -> None:
    fetched = {}
    for name, act in ON_HOT_FILES.items():
        await act(counted.ws, HOT)  # its statements are planned
        fetched[name] = await counted.of(act)
    assert max(fetched.values()) <= MOST, fetched
    assert fetched["read"] > 0, "fetching is counted"


async def test_a_search_below_a_folder_reads_that_folder(counted: Counted) -> None:
    async def search(ws: Workspace, path: str) -> None:
        assert (await ws.grep("4", path=path.rpartition("/")[0])).matches

    assert await counted.of(search) <= MOST


async def test_reading_everything_would_be_noticed(counted: Counted) -> None:
    async def walk(ws: Workspace, path: str) -> None:
        assert len([entry async for entry in ws.walk("/workspace")]) > LARGE

    assert await counted.of(walk) > 10 * MOST
