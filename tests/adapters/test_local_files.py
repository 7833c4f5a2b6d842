# ruff: noqa: ASYNC240 - tests may look at files
"""Assets as files: whole or absent, and never outside their folder."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from crux_workspace.errors import InvalidInputError, StorageError
from crux_workspace.storage import AssetNotFound, AssetTooLarge, MemoryAssetStore, PutOptions
from storage_adapters.local_files import LocalFilesAssetStore
from storage_adapters.local_files.folders import FolderTree

HEX = "0123456789abcdef" * 2


def _options(key: str, max_bytes: int | None = None) -> PutOptions:
    return PutOptions(key=key, mime_type="application/octet-stream", max_bytes=max_bytes)


async def _chunks(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def _files(folder: Path) -> list[str]:
    return sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "assets"


@pytest.fixture
def store(folder: Path) -> LocalFilesAssetStore:
    return LocalFilesAssetStore(folder, clock=lambda: 1_234_567)


async def test_bytes_take_one_trip_to_a_thread(
    store: LocalFilesAssetStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips: list[object] = []
    to_thread = asyncio.to_thread

    async def counted(work: Any, *given: Any, **options: Any) -> Any:
        trips.append(work)
        return await to_thread(work, *given, **options)

    monkeypatch.setattr(asyncio, "to_thread", counted)
    await store.put(b"x" * 20_000, _options("p%01n/whole"))
    assert len(trips) == 1


async def test_bytes_and_streams_come_back(store: LocalFilesAssetStore, folder: Path) -> None:
    content = os.urandom(700_000)
    whole = await store.put(content, _options(f"p%01n/{HEX}"))
    parts = await store.put(_chunks(content[:9], b"", content[9:]), _options("p%01n/other"))
    assert whole.ref == f"p%01n/{HEX}"
    assert whole.uri == (folder / "p%01n" / HEX).as_uri()
    assert (whole.size, whole.created_at) == (700_000, 1_234_567)
    assert whole.sha256 == parts.sha256 == hashlib.sha256(content).hexdigest()
    assert await store.get(whole.ref) == await store.get(parts.ref) == content
    for offset, length in ((0, None), (5, 10), (300_000, 400_000), (699_999, 50), (700_001, 5)):
        found = b"".join([chunk async for chunk in store.stream(whole.ref, offset, length)])
        assert found == content[offset:][: length if length is not None else None]


async def test_a_missing_asset_is_not_found(store: LocalFilesAssetStore) -> None:
    with pytest.raises(AssetNotFound):
        await store.get("a/b")
    with pytest.raises(AssetNotFound):
        async for _ in store.stream("a/b"):
            pass
    await store.delete("a/b")
    assert (await store.list("", limit=5)).assets == []


async def test_too_many_bytes_leave_nothing(store: LocalFilesAssetStore, folder: Path) -> None:
    with pytest.raises(AssetTooLarge):
        await store.put(b"12345", _options("a/b", 4))
    with pytest.raises(AssetTooLarge):
        await store.put(_chunks(b"123", b"45"), _options("a/b", 4))
    assert (await store.put(b"1234", _options("a/b", 4))).size == 4
    assert _files(folder) == ["a/b"]


async def test_a_broken_stream_leaves_nothing(store: LocalFilesAssetStore, folder: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"first"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await store.put(broken(), _options("a/b"))
    assert _files(folder) == []


async def test_a_cancelled_put_leaves_nothing(store: LocalFilesAssetStore, folder: Path) -> None:
    async def slow() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000
            await asyncio.sleep(0)

    for delay in (0, 0.001, 0.01, 0.02):
        task = asyncio.ensure_future(store.put(slow(), _options("a/b")))
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    for ticks in range(12):
        task = asyncio.ensure_future(store.put(b"bytes", _options("a/c")))
        for _ in range(ticks):
            await asyncio.sleep(0.0005)
        if task.cancel():
            with pytest.raises(asyncio.CancelledError):
                await task
            assert _files(folder) == []
        else:
            await store.delete("a/c")


async def test_deleting_prunes_empty_folders(store: LocalFilesAssetStore, folder: Path) -> None:
    await store.put(b"1", _options("a/b/c"))
    await store.put(b"2", _options("a/d"))
    await store.delete("a/b/c")
    assert [f.name for f in (folder / "a").iterdir()] == ["d"]
    await store.delete("a/d")
    await store.delete("a/d")
    assert [f.name for f in folder.iterdir()] == ["+tmp"]


async def test_lists_are_ordered_by_ref_and_page(store: LocalFilesAssetStore) -> None:
    memory = MemoryAssetStore(clock=lambda: 1_234_567)
    keys = [
        "a/x",
        "a-b/x",
        "a/y/z",
        "a/y-z",
        "a/y",
        "b",
        "a b/é",
        "a%20b/c",
        "+tmp/x",
        "=a",
        "a.b/c",
    ]
    for key in keys:
        if key != "a/y":  # a file and a folder cannot share a name
            await store.put(b"x", _options(key))
            await memory.put(b"x", _options(key))
    for prefix in ("", "a", "a/", "a/y", "a b/", "zz", "=", "a/x", "+"):
        for limit in (1, 2, 50):
            after = None
            for _ in range(20):
                page = await store.list(prefix, after=after, limit=limit)
                assert page == await memory.list(prefix, after=after, limit=limit)
                after = page.next
                if after is None:
                    break


async def test_long_segments_are_hashed(store: LocalFilesAssetStore) -> None:
    long = "x" * 300
    stored = await store.put(b"1", _options(f"{long}/{HEX}"))
    assert await store.get(stored.ref) == await store.get(f"{long}/{HEX}") == b"1"
    page = await store.list(f"{long}/", limit=5)
    assert [info.ref for info in page.assets] == [stored.ref]
    await store.delete(stored.ref)
    assert (await store.list("", limit=5)).assets == []


@pytest.mark.parametrize("key", ["/etc/x", "a//b", "", "a\0b", "a/", "/"])
async def test_keys_that_name_nothing_are_refused(
    store: LocalFilesAssetStore, folder: Path, key: str
) -> None:
    with pytest.raises(InvalidInputError):
        await store.put(b"x", _options(key))
    with pytest.raises(InvalidInputError):
        await store.get(key)
    with pytest.raises(InvalidInputError):
        await store.delete(key)
    assert not folder.exists()


@pytest.mark.parametrize("key", ["../out", "a/../../out", "./x", "..", "a/."])
async def test_dots_stay_inside_the_folder(
    store: LocalFilesAssetStore, folder: Path, tmp_path: Path, key: str
) -> None:
    stored = await store.put(b"x", _options(key))
    assert stored.ref == key
    assert await store.get(key) == b"x"
    assert [f.name for f in tmp_path.iterdir()] == ["assets"]
    assert len(_files(folder)) == 1
    assert [info.ref for info in (await store.list("", limit=5)).assets] == [key]
    await store.delete(key)
    assert _files(folder) == []


async def test_planted_links_are_not_followed(
    store: LocalFilesAssetStore, folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    await store.put(b"x", _options("a/b"))
    (folder / "link").symlink_to(outside)
    (folder / "a" / "file").symlink_to(outside / "secret")
    for ref in ("link/secret", "a/file"):
        with pytest.raises(StorageError):
            await store.get(ref)
    with pytest.raises(StorageError):
        await store.put(b"x", _options("link/new"))
    assert [info.ref for info in (await store.list("", limit=9)).assets] == ["a/b"]
    assert [f.name for f in outside.iterdir()] == ["secret"]


async def test_puts_and_deletes_beside_each_other_agree(store: LocalFilesAssetStore) -> None:
    async def one(n: int) -> None:
        stored = await store.put(b"%d" % n, _options(f"shared/{n:032x}"))
        assert await store.get(stored.ref) == b"%d" % n
        await store.delete(stored.ref)

    await asyncio.gather(*(one(n) for n in range(40)))
    assert (await store.list("", limit=5)).assets == []


def _open_files_below(folder: Path) -> int:
    """Count them: what other tests left behind may be closed at any time."""
    found = 0
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            target = link.readlink()
            found += target.is_relative_to(folder) and target.is_file()
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to count descriptors")
async def test_a_stream_that_is_cancelled_while_it_opens_keeps_no_descriptor(
    store: LocalFilesAssetStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asset = await store.put(b"abc", _options(HEX))
    opened = store._tree.open

    def slowly(names: list[str]) -> int:
        descriptor = opened(names)
        time.sleep(0.1)
        return descriptor

    monkeypatch.setattr(store._tree, "open", slowly)
    before = _open_files_below(tmp_path)
    task = asyncio.ensure_future(anext(store.stream(asset.ref)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert _open_files_below(tmp_path) == before


def test_a_sweep_takes_no_upload_that_begins_meanwhile(tmp_path: Path) -> None:
    """Between a file's making and its lock anybody may think that its process is dead."""
    tree = FolderTree(tmp_path)
    over = threading.Event()

    def sweep() -> None:
        while not over.is_set():
            tree.remove_stale(3_600)

    sweeping = [threading.Thread(target=sweep) for _ in range(2)]
    for thread in sweeping:
        thread.start()
    try:
        for number in range(1_000):
            file, name = tree.create_temporary()
            try:
                assert os.fstat(file).st_nlink == 1
                tree.publish(name, [f"{number:04}"])
            finally:
                os.close(file)
    finally:
        over.set()
        for thread in sweeping:
            thread.join()
    assert len(list(tmp_path.glob("0*"))) == 1_000
