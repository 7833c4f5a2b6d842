"""The kit of watching on every bundled store; the servers and files with another way to the same data."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crux_workspace.storage import Storage, memory_storage
from crux_workspace.testing import WatchContract
from storage_adapters import open_storage


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
