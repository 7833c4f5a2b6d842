"""The kits on the in-memory reference stores."""

from __future__ import annotations

import pytest

from crux_workspace.storage.memory import MemoryAssetStore, MemoryRecordStore
from crux_workspace.testing import AssetStoreContract, RecordStoreContract


class TestMemoryRecordStore(RecordStoreContract):
    @pytest.fixture
    async def store(self) -> MemoryRecordStore:
        return MemoryRecordStore()


class TestMemoryAssetStore(AssetStoreContract):
    @pytest.fixture
    async def store(self) -> MemoryAssetStore:
        return MemoryAssetStore()
