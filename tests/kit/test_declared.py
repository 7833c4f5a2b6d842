"""The record kit on a sound store that declares everything and gives every hook."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from crux_workspace.storage.capabilities import StoreCapabilities
from crux_workspace.storage.memory import MemoryRecordStore
from crux_workspace.storage.records import RecordStore
from crux_workspace.testing import RecordStoreContract


class _Declaring(MemoryRecordStore):
    capabilities = StoreCapabilities(
        plans_under_lock=True,
        search=True,
        multi_process=True,
        durable=True,
        max_commit_paths=2_200,
        max_commit_bytes=300_000,
        max_value_bytes=5_000,
        max_body_bytes=100_000,
    )


class TestDeclaringRecordStore(RecordStoreContract):
    @pytest.fixture
    async def store(self) -> _Declaring:
        return _Declaring()

    async def settle(self, store: RecordStore) -> None:
        assert isinstance(store, _Declaring)

    async def another(self, store: RecordStore) -> RecordStore:
        assert isinstance(store, _Declaring)
        second = _Declaring()
        second._partitions = store._partitions
        return second

    async def peek(
        self, store: RecordStore, partition: str, key: str
    ) -> tuple[bytes, bytes | None] | None:
        assert isinstance(store, _Declaring)
        record = store._partitions[partition].records.get(key)
        return None if record is None else (record.value, record.body)

    async def poke(self, store: RecordStore, partition: str, key: str, value: bytes) -> None:
        assert isinstance(store, _Declaring)
        records = store._partitions[partition].records
        records[key] = replace(records[key], value=value)
