"""The kits on the SQLite record store and on assets in local files."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crux_workspace.storage import RecordStore
from crux_workspace.testing import AssetStoreContract, RecordStoreContract
from storage_adapters.local_files import LocalFilesAssetStore
from storage_adapters.sql import SqliteRecordStore

_PEEK = (
    "select r.value, b.data from records r join partitions p on p.id = r.part "
    "left join bodies b on b.id = r.body_id where p.name = ? and r.key = ?"
)
_POKE = (
    "update records set value = ? where part = (select id from partitions where name = ?) "
    "and key = ?"
)


class TestSqliteRecordStore(RecordStoreContract):
    path: Path

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[SqliteRecordStore]:
        self.path = tmp_path / "records.db"
        async with await SqliteRecordStore.open(self.path) as store:
            yield store

    async def another(self, store: RecordStore) -> RecordStore:
        return await SqliteRecordStore.open(self.path)

    async def peek(
        self, store: RecordStore, partition: str, key: str
    ) -> tuple[bytes, bytes | None] | None:
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            found = connection.execute(_PEEK, (partition, key)).fetchone()
        return None if found is None else (found[0], found[1])

    async def poke(self, store: RecordStore, partition: str, key: str, value: bytes) -> None:
        with contextlib.closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(_POKE, (value, partition, key))


class TestLocalFilesAssetStore(AssetStoreContract):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> LocalFilesAssetStore:
        return LocalFilesAssetStore(tmp_path / "assets")
