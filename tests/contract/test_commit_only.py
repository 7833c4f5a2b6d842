"""The record kit on a store that cannot plan under a lock."""

from __future__ import annotations

import pytest

from crux_workspace.storage.memory import MemoryRecordStore
from crux_workspace.testing import CommitOnlyRecordStore, RecordStoreContract


class TestCommitOnlyRecordStore(RecordStoreContract):
    @pytest.fixture
    async def store(self) -> CommitOnlyRecordStore:
        return CommitOnlyRecordStore(MemoryRecordStore())
