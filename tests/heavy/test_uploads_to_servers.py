"""Uploads to a server that break off: nothing of them is left once gc has run, and an upload under way goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from crux_workspace import Retention, open_workspace
from crux_workspace.errors import StorageError
from crux_workspace.storage import PutOptions
from crux_workspace.storage.assets import AbortsStaleUploads
from storage_adapters import open_storage
from tests.conftest import SERVERS
from tests.heavy.test_broken_uploads import BLOCK, OPTIONS, WRITER
from tests.support.crew import Crew, SharedServer
from tests.support.postgres import PostgresServer
from tests.support.redis_servers import RedisServer

_ON_POSTGRES = """
select (select count(*) from crux_workspace.assets) +
    (select count(distinct asset) from crux_workspace.pieces where asset not in (select id from crux_workspace.assets))
"""
HOUR_MS = 3_600_000


@dataclass
class Place:
    """A server, and what lies on it that belongs to assets."""

    server: Any

    @property
    def url(self) -> str:
        url: str = self.server.url()
        return url

    async def kept(self) -> int:
        """Count the assets and the unfinished uploads, notes of those included."""
        if isinstance(self.server, PostgresServer):
            connection = await self.server.connect()
            found: int = await connection.fetchval(_ON_POSTGRES)
            await connection.close()
            return found
        with self.server.client() as client:
            names = [name.decode().split(":", 2)[2] for name in client.scan_iter()]
        return sum(name.startswith(("asset:", "upload")) for name in names)


@pytest.fixture(params=SERVERS)
def place(request: pytest.FixtureRequest) -> Place:
    server: PostgresServer | RedisServer = request.getfixturevalue(f"{request.param}_server")
    if isinstance(server, PostgresServer):
        server.empty()
    return Place(server)


@pytest.fixture
def crew() -> Iterator[Crew]:
    with Crew().at_work() as crew:
        yield crew


async def _halting(reached: asyncio.Event) -> AsyncIterator[bytes]:
    yield BLOCK
    yield BLOCK
    reached.set()
    await asyncio.Event().wait()


async def test_a_cancelled_upload_is_gone_at_once(place: Place) -> None:
    reached = asyncio.Event()
    async with open_workspace(place.url, **OPTIONS) as ws:
        upload = asyncio.create_task(ws.write("/workspace/a.bin", _halting(reached)))
        await reached.wait()
        assert await place.kept() > 0
        upload.cancel()
        with pytest.raises(asyncio.CancelledError):
            await upload
        assert await place.kept() == 0


@pytest.mark.parametrize("kind", ["stream", "text", "append"])
async def test_a_killed_upload_leaves_nothing_after_gc(place: Place, crew: Crew, kind: str) -> None:
    async with open_workspace(place.url, **OPTIONS) as ws:
        await ws.write("/workspace/kept.bin", b"kept")
    kept = await place.kept()
    for _ in range(2):
        worker = crew.start(WRITER, place.url, kind)
        worker.first()
        await asyncio.sleep(0.02)
        worker.kill()
        if kind != "append":
            assert await place.kept() > kept, "the kill fell into the upload"
        async with open_workspace(place.url, **OPTIONS) as ws:
            await asyncio.sleep(0.05)  # what the killed process had sent arrives
            await ws.gc(dry_run=False)
        records = await SharedServer(place.url, share=1).check()
        assert await place.kept() == len(records.referenced)


async def test_gc_waits_for_the_grace_since_the_last_piece(place: Place) -> None:
    """However long an upload takes: it goes on while something comes, and is told when it was taken for abandoned."""
    paused, go_on = asyncio.Event(), asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        yield BLOCK
        await asyncio.sleep(0.3)
        yield BLOCK
        paused.set()
        await go_on.wait()
        yield BLOCK

    async with (
        open_storage(place.url) as storage,
        open_workspace(place.url, retention=Retention(asset_grace_ms=HOUR_MS)) as ws,
    ):
        assets = _aborting(storage.assets)
        going_on = asyncio.create_task(ws.write("/workspace/a.bin", chunks()))
        await paused.wait()
        await ws.gc(dry_run=False)
        assert await assets.abort_stale_uploads(older_than_ms=250) == 0, "its last piece is younger"
        go_on.set()
        assert (await going_on).size == 3 * len(BLOCK)
        assert await ws.read_bytes("/workspace/a.bin") == BLOCK * 3
        paused.clear()
        go_on.clear()
        failing = asyncio.create_task(ws.write("/workspace/b.bin", chunks()))
        await paused.wait()
        await asyncio.sleep(0.05)
        assert await assets.abort_stale_uploads(older_than_ms=0) == 1
        go_on.set()
        with pytest.raises(StorageError):
            await failing
        assert not await ws.exists("/workspace/b.bin")
        assert await assets.abort_stale_uploads(older_than_ms=0) == 0
    assert await place.kept() == 1


async def test_what_is_whole_is_no_upload(place: Place) -> None:
    async with open_storage(place.url) as storage:
        assert storage.assets is not None
        for number, data in enumerate((b"", b"x", BLOCK, BLOCK + b"x")):
            await storage.assets.put(data, PutOptions(key=f"w/n/{number:032x}", mime_type="x/y"))
        await asyncio.sleep(0.01)
        assert await _aborting(storage.assets).abort_stale_uploads(older_than_ms=0) == 0
        assert len((await storage.assets.list("", limit=9)).assets) == 4
    assert await place.kept() == 4


def _aborting(assets: object) -> AbortsStaleUploads:
    assert isinstance(assets, AbortsStaleUploads)
    return assets
