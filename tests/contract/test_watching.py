"""The kit of watching on every bundled store; servers, files and what a minimal store holds with another way to the same data."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crux_workspace.storage import Storage, memory_storage
from crux_workspace.testing import MemoryMinimalStore, WatchContract
from storage_adapters import open_storage
from tests.support.adapted import journaled_storage
from tests.support.redis_servers import RedisServer


class TestWatchingMemory(WatchContract):
    @pytest.fixture
    def storage(self) -> Storage:
        return memory_storage()


class TestWatchingSqlite(WatchContract):
    @pytest.fixture
    async def storage(self, tmp_path: Path) -> AsyncIterator[Storage]:
        async with open_storage(f"sqlite:///{tmp_path}/work.db?durability=normal") as opened:
            yield opened

    @pytest.fixture
    async def elsewhere(self, storage: Storage, tmp_path: Path) -> AsyncIterator[Storage]:
        async with open_storage(f"sqlite:///{tmp_path}/work.db?durability=normal") as opened:
            yield opened


@pytest.mark.postgres
class TestWatchingPostgres(WatchContract):
    @pytest.fixture
    async def storage(self, postgres_url: str) -> AsyncIterator[Storage]:
        async with open_storage(postgres_url) as opened:
            yield opened

    @pytest.fixture
    async def elsewhere(self, postgres_url: str) -> AsyncIterator[Storage]:
        async with open_storage(postgres_url) as opened:
            yield opened


@pytest.mark.redis
class TestWatchingRedis(WatchContract):
    @pytest.fixture
    async def storage(self, redis_server: RedisServer) -> AsyncIterator[Storage]:
        async with open_storage(redis_server.url()) as opened:
            yield opened

    @pytest.fixture
    async def elsewhere(self, redis_server: RedisServer) -> AsyncIterator[Storage]:
        async with open_storage(redis_server.url()) as opened:
            yield opened


class TestWatchingAJournaledStore(WatchContract):
    @pytest.fixture
    def below(self) -> MemoryMinimalStore:
        return MemoryMinimalStore()

    @pytest.fixture
    async def storage(self, below: MemoryMinimalStore) -> AsyncIterator[Storage]:
        async with journaled_storage(below) as opened:
            yield opened

    @pytest.fixture
    async def elsewhere(self, below: MemoryMinimalStore) -> AsyncIterator[Storage]:
        async with journaled_storage(below) as opened:
            yield opened
