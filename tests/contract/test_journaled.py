"""The record kit on journaled minimal stores, with and without an atomic create."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crux_workspace.storage import RecordStore
from crux_workspace.testing import (
    MemoryMinimalStore,
    MemorySoleStore,
    MinimalStoreContract,
    RecordStoreContract,
)
from storage_adapters.journaled import JournaledRecordStore, journaled


class TestMemoryMinimalStore(MinimalStoreContract):
    @pytest.fixture
    async def store(self) -> MemoryMinimalStore:
        return MemoryMinimalStore()


class TestJournaled(RecordStoreContract):
    below: MemoryMinimalStore

    @pytest.fixture
    async def store(self) -> AsyncIterator[JournaledRecordStore]:
        self.below = MemoryMinimalStore()
        async with journaled(self.below, durable=True) as store:
            yield store

    async def another(self, store: RecordStore) -> RecordStore:
        return journaled(self.below, durable=True)

    async def peek(
        self, store: RecordStore, partition: str, key: str
    ) -> tuple[bytes, bytes | None] | None:
        async with journaled(self.below) as fresh:
            (record,) = await fresh.get_many(partition, [key])
        return None if record is None else (record.value, record.body)


class TestJournaledWithoutCreate(RecordStoreContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[JournaledRecordStore]:
        async with journaled(MemorySoleStore(), beat_s=0.02, lease_s=0.2) as store:
            yield store


class TestJournaledWithLimits(RecordStoreContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[JournaledRecordStore]:
        async with journaled(MemoryMinimalStore(), max_value_bytes=1 << 20) as store:
            yield store
