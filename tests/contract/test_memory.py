"""The kits on the in-memory reference stores."""

from __future__ import annotations

import pytest

from crux_workspace.storage.memory import MemoryRecordStore
from crux_workspace.testing import RecordStoreContract


class TestMemoryRecordStore(RecordStoreContract):
    @pytest.fixture
    async def store(self) -> MemoryRecordStore:
        return MemoryRecordStore()
