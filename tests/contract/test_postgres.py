"""The kits on PostgreSQL: the record store, straight and through a transaction-pooling proxy, and the assets in the database."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crux_workspace.storage import RecordStore
from crux_workspace.testing import AssetStoreContract, RecordStoreContract
from storage_adapters.sql.postgres import PostgresAssetStore, PostgresRecordStore
from tests.support.postgres import PostgresServer

pytestmark = pytest.mark.postgres

_PEEK = """
select r.value, b.data from crux_workspace.records r join crux_workspace.partitions p on p.id = r.part
left join crux_workspace.bodies b on b.part = r.part and b.id = r.body where p.name = $1 and r.key = $2
"""
_POKE = """
update crux_workspace.records set value = $3
where part = (select id from crux_workspace.partitions where name = $1) and key = $2
"""


class TestPostgresRecordStore(RecordStoreContract):
    server: PostgresServer
    url: str

    @pytest.fixture
    async def store(self, postgres_server: PostgresServer) -> AsyncIterator[PostgresRecordStore]:
        self.server, self.url = postgres_server, postgres_server.url()
        async with await PostgresRecordStore.open(self.url) as store:
            yield store

    async def another(self, store: RecordStore) -> RecordStore:
        return await PostgresRecordStore.open(self.url)

    async def peek(
        self, store: RecordStore, partition: str, key: str
    ) -> tuple[bytes, bytes | None] | None:
        connection = await self.server.connect()
        found = await connection.fetchrow(_PEEK, partition, key)
        await connection.close()
        return None if found is None else (found[0], found[1])

    async def poke(self, store: RecordStore, partition: str, key: str, value: bytes) -> None:
        connection = await self.server.connect()
        await connection.execute(_POKE, partition, key, value)
        await connection.close()


class TestPostgresAssetStore(AssetStoreContract):
    @pytest.fixture
    async def store(self, postgres_server: PostgresServer) -> AsyncIterator[PostgresAssetStore]:
        store = await PostgresAssetStore.open(postgres_server.url())
        yield store
        await store.aclose()
