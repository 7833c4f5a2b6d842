"""Whatever breaks an upload off, nothing of it is left once gc has run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from crux_workspace import Retention, open_workspace
from crux_workspace.errors import InvalidInputError
from storage_adapters.local_files import LocalFilesAssetStore
from tests.support.crew import Crew, check_file

OPTIONS: dict[str, Any] = {"retention": Retention(asset_grace_ms=0)}
BLOCK = b"x" * (1 << 20)


def _left(folder: Path) -> list[str]:
    """Return the files of the asset store, unfinished ones too."""
    return sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file())


async def _broken(after: int, error: Exception) -> AsyncIterator[bytes]:
    for _ in range(after):
        yield BLOCK
    raise error


@pytest.mark.parametrize("after", [0, 1, 3])
async def test_a_stream_that_breaks_leaves_nothing(tmp_path: Path, after: int) -> None:
    async with open_workspace(f"sqlite:///{tmp_path}/w.db", **OPTIONS) as ws:
        with pytest.raises(ConnectionResetError):
            await ws.write("/workspace/a.bin", _broken(after, ConnectionResetError()))
        assert not await ws.exists("/workspace/a.bin")
        assert _left(tmp_path / "w.db.assets") == []


async def test_text_that_turns_out_not_to_be_leaves_nothing(tmp_path: Path) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield BLOCK
        yield b"\xff"

    async with open_workspace(f"sqlite:///{tmp_path}/w.db", **OPTIONS) as ws:
        with pytest.raises(InvalidInputError):
            await ws.write("/workspace/a.txt", chunks(), encoding="utf-8")
        assert _left(tmp_path / "w.db.assets") == []


@pytest.mark.parametrize("text", [False, True])
async def test_a_cancelled_stream_leaves_nothing(tmp_path: Path, text: bool) -> None:
    reached = asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        yield BLOCK
        yield BLOCK
        reached.set()
        await asyncio.Event().wait()

    async with open_workspace(f"sqlite:///{tmp_path}/w.db", **OPTIONS) as ws:
        encoding = "utf-8" if text else None
        upload = asyncio.create_task(ws.write("/workspace/a", chunks(), encoding=encoding))
        await reached.wait()
        upload.cancel()
        with pytest.raises(asyncio.CancelledError):
            await upload
        await ws.gc(dry_run=False)
        assert _left(tmp_path / "w.db.assets") == []


WRITER = """
import asyncio, json, sys
from crux_workspace import open_workspace
url, pause = sys.argv[1], sys.argv[2]
block = b"a line of 32 bytes, and its end\\n" * 32768

async def forever(number):
    while True:
        yield block
        number += 1
        if number == 3:
            print(json.dumps("uploading"), flush=True)

async def main():
    async with open_workspace(url) as ws:
        if pause == "stream":
            await ws.write("/workspace/big.bin", forever(0))
        elif pause == "text":
            await ws.write("/workspace/big.txt", forever(0), encoding="utf-8")
        else:
            await ws.write("/workspace/log.txt", "x" * 100_000)
            print(json.dumps("appending"), flush=True)
            while True:
                await ws.append("/workspace/log.txt", "y" * 1_000)

asyncio.run(main())
"""


@pytest.fixture
def crew() -> object:
    with Crew().at_work() as crew:
        yield crew


@pytest.mark.parametrize("kind", ["stream", "text", "append"])
async def test_a_killed_upload_leaves_nothing_after_gc(
    tmp_path: Path, crew: Crew, kind: str
) -> None:
    path, folder = tmp_path / "w.db", tmp_path / "w.db.assets"
    async with open_workspace(f"sqlite:///{path}", **OPTIONS) as ws:
        await ws.write("/workspace/kept.bin", b"kept")
    kept = len(_left(folder))
    for _ in range(3):
        worker = crew.start(WRITER, f"sqlite:///{path}?durability=normal", kind)
        worker.first()
        await asyncio.sleep(0.02)
        worker.kill()
        if kind != "append":
            assert len(_left(folder)) > kept, "the kill fell into the upload"
        async with open_workspace(f"sqlite:///{path}", **OPTIONS) as ws:
            await asyncio.sleep(0.002)
            await ws.gc(dry_run=False)
        records = await check_file(path)
        assert len(_left(folder)) == len(records.referenced)
        if kind != "append":
            assert len(_left(folder)) == kept


async def test_gc_leaves_an_upload_alone_that_is_under_way(tmp_path: Path) -> None:
    paused, go_on = asyncio.Event(), asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        yield BLOCK
        paused.set()
        await go_on.wait()
        yield BLOCK

    async with open_workspace(f"sqlite:///{tmp_path}/w.db", **OPTIONS) as ws:
        upload = asyncio.create_task(ws.write("/workspace/a.bin", chunks()))
        await paused.wait()
        async with open_workspace(f"sqlite:///{tmp_path}/w.db", **OPTIONS) as other:
            await other.gc(dry_run=False)
        go_on.set()
        assert (await upload).size == 2 * len(BLOCK)
        assert await ws.read_bytes("/workspace/a.bin") == BLOCK * 2


async def test_without_locks_age_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    store = LocalFilesAssetStore(tmp_path / "assets")
    half = tmp_path / "assets" / "+tmp" / "0123"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"half")

    def no_locks(file: int, operation: int) -> None:
        raise OSError(37, "no locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    assert await store.abort_stale_uploads(older_than_ms=60_000) == 0
    await asyncio.sleep(0.02)
    assert await store.abort_stale_uploads(older_than_ms=10) == 1
    assert _left(tmp_path / "assets") == []
    assert await LocalFilesAssetStore(tmp_path / "none").abort_stale_uploads(older_than_ms=0) == 0
