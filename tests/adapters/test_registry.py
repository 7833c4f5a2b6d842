# ruff: noqa: ASYNC240 - tests may look at files
"""Storage by URL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crux_workspace.errors import ErrorCode, InvalidInputError, StateError, StorageError
from crux_workspace.storage import (
    MemoryAssetStore,
    MemoryRecordStore,
    OpenedRecords,
    PutOptions,
    memory_storage,
    storage,
)
from storage_adapters import open_storage, registry
from storage_adapters.local_files import LocalFilesAssetStore
from storage_adapters.sql import SqliteRecordStore

OPTIONS = PutOptions(key="p/1", mime_type="text/plain")


async def third_party(url: str, *, create: bool) -> OpenedRecords:
    return OpenedRecords(MemoryRecordStore())


class _Entry:
    def load(self) -> Any:
        return third_party


async def test_a_sqlite_storage_keeps_assets_beside_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_storage("sqlite:///work.db") as opened:
        assert isinstance(opened.records, SqliteRecordStore)
        assert isinstance(opened.assets, LocalFilesAssetStore)
        assert sorted(f.name for f in tmp_path.iterdir() if "-" not in f.name) == [
            "work.db",
            "work.db.lock",
        ]
        await opened.assets.put(b"x", OPTIONS)
        assert (tmp_path / "work.db.assets" / "p" / "1").read_bytes() == b"x"
    with pytest.raises(StateError):
        await opened.records.sequences([])
    await opened.aclose()


async def test_a_storage_can_be_awaited(tmp_path: Path) -> None:
    assets = (tmp_path / "some where").as_uri()
    opened = await open_storage(f"sqlite:///{tmp_path}/a.db?durability=normal", assets)
    assert opened.assets is not None
    assert (await opened.assets.put(b"x", OPTIONS)).uri == f"{assets}/p/1"
    await opened.aclose()


async def test_memory_storages_are_fresh() -> None:
    async with open_storage("memory://") as opened:
        assert isinstance(opened.records, MemoryRecordStore)
        assert isinstance(opened.assets, MemoryAssetStore)
    assert isinstance(memory_storage().records, MemoryRecordStore)


async def test_a_bundle_closes_only_what_it_owns(tmp_path: Path) -> None:
    async with await SqliteRecordStore.open(tmp_path / "a.db") as records:
        async with storage(records=records) as bundle:
            assert bundle.assets is None
        assert await records.sequences([]) == []


@pytest.mark.parametrize(
    ("url", "assets"),
    [
        ("postgresql://user:secret@host:secret/db", None),
        ("postgresql://user:secret@host/db?secret=1", None),
        ("postgresql://user:secret@host/db?pool_size=secret", None),
        ("postgresql://user:se@secret:word@host:1/db?schema=", None),
        ("redis://:secret@host", None),
        ("sqlite:///a.db?durability=secret", None),
        ("sqlite:///a.db?secret=1", None),
        ("sqlite://user:secret@host/a.db", None),
        ("sqlite://", None),
        ("sqlite:///:memory:", None),
        ("secret", None),
        ("memory://secret", None),
        ("memory://", "s3://key:secret@bucket"),
        ("memory://", "s3://bucket:secret"),
        ("memory://", "s3:///secret"),
        ("memory://", "s3://bucket?secret=1"),
        ("memory://", "s3://bucket?endpoint_url=secret"),
        ("memory://", "s3://bucket?endpoint_url=http://key:secret@host"),
        ("memory://", "s3://bucket?addressing=secret"),
        ("memory://", "s3://bucket?max_attempts=secret"),
        ("memory://", "s3://bucket?part_mib=1"),
        ("memory://", "s3://bucket?read_timeout_s=0"),
        ("memory://", "s3://bucket/" + "secret" * 100),
        ("memory://", "gs://key:secret@bucket"),
        ("memory://", "gs://"),
        ("memory://", "az://container?secret=1"),
        ("memory://", "obstore+s3://bucket?timeout_s=secret"),
        ("memory://", "obstore+file://host.secret/dir"),
        ("memory://", "obstore+file:///secret?x=1"),
        ("memory://", "file://host.secret/dir"),
        ("memory://", "file://"),
    ],
)
async def test_wrong_urls_are_refused_without_repeating_them(
    url: str, assets: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    opening = open_storage(url, assets)
    assert "secret" not in repr(opening)
    with pytest.raises(InvalidInputError) as refused:
        await opening
    assert refused.value.code == ErrorCode.INVALID_ARGUMENT
    assert "secret" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


async def test_unknown_schemes_are_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match=r"mysql://; known are .*memory://.*sqlite://"):
        await open_storage("mysql://host/db")


async def test_a_missing_file_can_be_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="there is no database"):
        await open_storage(f"sqlite:///{tmp_path}/none.db", create=False)


async def test_third_parties_come_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(group: str) -> dict[str, Any]:
        return {"theirs": _Entry()} if group == "crux_workspace.storage" else {}

    monkeypatch.setattr(registry, "_discovered", found)
    async with open_storage("theirs://x") as opened:
        assert opened.assets is None
