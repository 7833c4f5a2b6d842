"""The kits on Redis: one server, written to a file or not, and a Cluster; records and assets."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crux_workspace.storage import RecordStore
from crux_workspace.testing import AssetStoreContract, RecordStoreContract
from storage_adapters.redis import RedisAssetStore, RedisRecordStore
from storage_adapters.redis.keyspace import Keyspace
from tests.support.redis_servers import RedisServer

pytestmark = pytest.mark.redis

_DATABASE = 3
_STAMP_BYTES = 16


class TestRedisRecordStore(RecordStoreContract):
    server: RedisServer

    @pytest.fixture
    async def store(self, durable_server: RedisServer) -> AsyncIterator[RedisRecordStore]:
        self.server = durable_server
        async with await RedisRecordStore.open(self.server.url(_DATABASE)) as store:
            yield store

    async def another(self, store: RecordStore) -> RecordStore:
        return await RedisRecordStore.open(self.server.url(_DATABASE))

    async def peek(
        self, store: RecordStore, partition: str, key: str
    ) -> tuple[bytes, bytes | None] | None:
        names = Keyspace("crux", _DATABASE).partition(partition)
        with self.server.client(_DATABASE) as client:
            value = client.hget(names.values, key)
            body = client.hget(names.bodies, key)
        return None if value is None else (value[_STAMP_BYTES:], body)

    async def poke(self, store: RecordStore, partition: str, key: str, value: bytes) -> None:
        names = Keyspace("crux", _DATABASE).partition(partition)
        with self.server.client(_DATABASE) as client:
            stored = client.hget(names.values, key)
            assert stored is not None
            client.hset(names.values, key, stored[:_STAMP_BYTES] + value)


class TestRedisAssetStore(AssetStoreContract):
    @pytest.fixture
    async def store(self, redis_server: RedisServer) -> AsyncIterator[RedisAssetStore]:
        async with await RedisAssetStore.open(redis_server.url(_DATABASE)) as store:
            yield store
