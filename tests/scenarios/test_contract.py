"""The whole-library contract on every bundled store, and on one that cannot plan under a lock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crux_workspace.storage import Storage, memory_storage, storage
from crux_workspace.testing import CommitOnlyRecordStore
from crux_workspace.testing.workspace import WorkspaceContract
from storage_adapters import open_storage
from tests.support.adapted import journaled_storage, s3_storage


class TestWorkspaceInMemory(WorkspaceContract):
    @pytest.fixture
    def storage(self) -> Storage:
        return memory_storage()


class TestWorkspaceOnSqlite(WorkspaceContract):
    @pytest.fixture
    async def storage(self, tmp_path: Path) -> AsyncIterator[Storage]:
        async with open_storage(f"sqlite:///{tmp_path}/work.db?durability=normal") as opened:
            yield opened


@pytest.mark.postgres
class TestWorkspaceOnPostgres(WorkspaceContract):
    @pytest.fixture
    async def storage(self, postgres_url: str) -> AsyncIterator[Storage]:
        async with open_storage(postgres_url) as opened:
            yield opened


class TestWorkspaceOnACommitOnlyStore(WorkspaceContract):
    @pytest.fixture
    def storage(self) -> Storage:
        whole = memory_storage()
        return storage(records=CommitOnlyRecordStore(whole.records), assets=whole.assets)


class TestWorkspaceOnAJournaledStore(WorkspaceContract):
    @pytest.fixture
    async def storage(self) -> AsyncIterator[Storage]:
        async with journaled_storage() as opened:
            yield opened


@pytest.mark.s3
class TestWorkspaceWithAssetsInS3(WorkspaceContract):
    @pytest.fixture
    async def storage(self) -> AsyncIterator[Storage]:
        async with await s3_storage() as opened:
            yield opened
