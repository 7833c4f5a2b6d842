"""Behind a proxy that pools by transaction: every statement may meet another server connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest

from crux_workspace.storage import RecordStore
from crux_workspace.testing import AssetStoreContract, RecordStoreContract
from storage_adapters.sql.postgres import PostgresAssetStore, PostgresRecordStore
from tests.postgres.conftest import Opening
from tests.support.pooling_proxy import PoolingProxy, pooling_proxy
from tests.support.postgres import PostgresServer
from tests.watch.conftest import take

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(120)]


def proxied(server: PostgresServer, proxy: PoolingProxy, **options: object) -> str:
    return proxy.url(listen_url=quote(server.url(), safe=""), **options)


@pytest.fixture
async def pooling(
    postgres_server: PostgresServer, postgres_url: str
) -> AsyncIterator[PoolingProxy]:
    async with pooling_proxy(postgres_server) as made:
        yield made
        assert made.refused == []


class TestRecordsThroughTheProxy(RecordStoreContract):
    url: str

    @pytest.fixture
    async def store(
        self, postgres_server: PostgresServer, pooling: PoolingProxy
    ) -> AsyncIterator[PostgresRecordStore]:
        self.url = proxied(postgres_server, pooling)
        async with await PostgresRecordStore.open(self.url) as store:
            yield store

    async def another(self, store: RecordStore) -> RecordStore:
        return await PostgresRecordStore.open(self.url)


class TestAssetsThroughTheProxy(AssetStoreContract):
    @pytest.fixture
    async def store(
        self, postgres_server: PostgresServer, pooling: PoolingProxy
    ) -> AsyncIterator[PostgresAssetStore]:
        store = await PostgresAssetStore.open(proxied(postgres_server, pooling))
        yield store
        await store.aclose()


async def test_many_clients_on_few_server_connections(
    postgres_server: PostgresServer, pooling: PoolingProxy, opening: Opening
) -> None:
    url = proxied(postgres_server, pooling, pool_size=5)
    handles = [await opening(url) for _ in range(3)]
    async with handles[0].watch(recursive=True, poll_interval_ms=3_600_000) as feed:
        await feed.ready()
        following = asyncio.create_task(take(feed, 30, within=30))
        await asyncio.sleep(0.2)
        await asyncio.gather(
            *(handles[n % 3].append(f"/workspace/{n % 5}", f"{n}\n") for n in range(30))
        )
        events = await following
    assert [event.sequence for event in events] == list(range(1, 31))
    lines = [(await handles[1].read_text(f"/workspace/{n}")).split() for n in range(5)]
    assert sorted(int(line) for found in lines for line in found) == list(range(30))


async def test_a_statement_takes_four_round_trips(
    postgres_server: PostgresServer, pooling: PoolingProxy, opening: Opening
) -> None:
    ws = await opening(proxied(postgres_server, pooling))
    await ws.write("/workspace/a", "x")
    for _ in range(3):
        before = pooling.trips
        await ws.read_text("/workspace/a")
        assert pooling.trips - before == 4


async def test_without_saying_so_named_statements_would_break(
    postgres_server: PostgresServer, pooling: PoolingProxy
) -> None:
    """The proxy of this test is one: it refuses what only a connection of one's own can have."""
    with pytest.raises(Exception, match="cannot be reached"):
        await PostgresRecordStore.open(pooling.url())
    assert pooling.refused
    pooling.refused.clear()
