"""The S3 server is killed in the middle of commits and started again: acknowledged is there, torn is nothing, orphans are collected.

Assets go there by boto3 and by obstore.

`CRUX_SERVER_KILLS` says how often; once by default, for it takes its time to come back.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta

import pytest

from crux_workspace import Retention, Workspace, workspace
from crux_workspace.errors import StorageError
from crux_workspace.model.clocks import Clock
from crux_workspace.storage import (
    AssetStore,
    MemoryRecordStore,
    PutOptions,
    Storage,
    StoredAsset,
    storage,
)
from crux_workspace.storage.layout import partition_name
from crux_workspace.testing import DelegatingAssetStore, FixedClock
from storage_adapters.object_stores import ObstoreAssetStore
from storage_adapters.s3 import S3AssetStore, S3Settings
from tests.support.adapted import obstore_of
from tests.support.s3_server import S3Server, serving
from tests.support.soundness import check_sound
from tests.watch.conftest import until

ROUNDS = int(os.environ.get("CRUX_SERVER_KILLS") or 1)

pytestmark = [pytest.mark.s3, pytest.mark.timeout(120 + 60 * ROUNDS)]

WRITERS = 3
GRACE_MS = 3_600_000
QUICK = S3Settings(connect_timeout_s=1, read_timeout_s=2, max_attempts=2, part_bytes=5 << 20)


@pytest.fixture(scope="module")
def own_server() -> Iterator[S3Server]:
    """A server of this module alone."""
    with serving() as server:
        yield server


def _by_boto3(server: S3Server, prefix: str, clock: Clock) -> AssetStore:
    client = server.client(settings=QUICK)
    return S3AssetStore(client, server.bucket, prefix, settings=QUICK, clock=clock)


def _by_obstore(server: S3Server, prefix: str, clock: Clock) -> AssetStore:
    store = obstore_of(
        server,
        timeout=timedelta(seconds=2),
        retry_config={"max_retries": 1, "retry_timeout": timedelta(seconds=4)},
    )
    return ObstoreAssetStore(store, prefix, clock=clock)


class _Watched(DelegatingAssetStore):
    """Assets whose next first part of a commit is told of when it is stored, before the second one is begun."""

    def __init__(self, inner: AssetStore) -> None:
        super().__init__(inner)
        self.stored: Callable[[], None] | None = None

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        assert isinstance(data, bytes)
        asset = await self.inner.put(data, options)
        if self.stored is not None and _part(data) == 1:
            told, self.stored = self.stored, None
            await asyncio.to_thread(told)
        return asset


class Writer:
    """Commits two large files and a small one at a time, and remembers which commits were acknowledged."""

    def __init__(self, ws: Workspace, number: int) -> None:
        self.ws = ws
        self.folder = f"/workspace/{number}"
        self.next = 0
        self.acknowledged: list[int] = []
        self.failures: list[StorageError] = []

    async def commit(self) -> None:
        self.next += 1
        async with self.ws.transaction() as tx:
            await tx.write(f"{self.folder}/one", _large(self.next, 1))
            await tx.write(f"{self.folder}/two", _large(self.next, 2))
            await tx.write(f"{self.folder}/mark", str(self.next))
        self.acknowledged.append(self.next)

    async def work(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self.commit()
            except StorageError as error:
                self.failures.append(error)
                await asyncio.sleep(0.02)

    async def check(self) -> None:
        """Hold what is there to what was acknowledged: every version of it, none torn."""
        names = [f"{self.folder}/{name}" for name in ("mark", "one", "two")]
        versions = [[entry.version for entry in await self.ws.history(name)] for name in names]
        assert versions[0] == versions[1] == versions[2], "each commit has all its files"
        marks = []
        for version in versions[0]:
            mark = int(await self.ws.read_text(names[0], version=version))
            marks.append(mark)
            for part in (1, 2):
                kept = await self.ws.read_bytes(names[part], version=version)
                assert kept == _large(mark, part)
        assert marks == self.acknowledged[::-1][: len(marks)], "the last ones, in order"
        assert all(error.code in ("STORE_UNAVAILABLE", "STORE_TIMEOUT") for error in self.failures)


def _large(mark: int, part: int) -> bytes:
    return f"{mark}:{part};".encode() * 30_000


def _part(data: bytes) -> int:
    """Tell which of its commit's large files it is."""
    return int(data[: data.index(b";")].partition(b":")[2])


async def _stored(server: S3Server, prefix: str) -> set[str]:
    """Return what the server keeps of the assets."""
    keys = await asyncio.to_thread(server.keys, f"{prefix}/")
    return {key for key in keys if not key.endswith("/")}


@pytest.mark.parametrize("opened", [_by_boto3, _by_obstore], ids=["boto3", "obstore"])
async def test_a_killed_server_loses_and_tears_nothing_and_its_orphans_are_collected(
    opened: Callable[[S3Server, str, Clock], AssetStore], own_server: S3Server, clock: FixedClock
) -> None:
    prefix = secrets.token_hex(6)
    inner = opened(own_server, prefix, clock)
    assets = _Watched(inner)
    bundle: Storage = storage(records=MemoryRecordStore(), assets=assets)
    retention = Retention(asset_grace_ms=GRACE_MS)
    ws = workspace(id="w", namespace="n", storage=bundle, clock=clock, retention=retention)
    writers = [Writer(ws, number) for number in range(WRITERS)]

    async def more(count: int) -> None:
        """Wait until so many more commits were acknowledged."""
        wanted = count + sum(len(writer.acknowledged) for writer in writers)
        await until(
            lambda: sum(len(writer.acknowledged) for writer in writers) >= wanted, within=60
        )

    async def fails() -> None:
        """Wait until each writer has met a server that is gone."""
        seen = [len(writer.failures) for writer in writers]
        await until(
            lambda: all(len(w.failures) > n for w, n in zip(writers, seen, strict=True)), within=60
        )

    stop = asyncio.Event()
    working = [asyncio.create_task(writer.work(stop)) for writer in writers]
    for _ in range(ROUNDS):
        await more(10)
        assets.stored = (
            own_server.kill
        )  # one file of a commit is stored; other writers are anywhere
        await fails()
        await asyncio.to_thread(own_server.start)
    await more(10)
    stop.set()
    await asyncio.gather(*working)

    for writer in writers:
        await writer.check()
    found = await check_sound(bundle.records, partition_name("w", "n"))
    orphans = len(await _stored(own_server, prefix)) - len(found.referenced)
    assert orphans >= ROUNDS, "what was stored behind a commit that failed could not be taken back"
    assert (await ws.gc(dry_run=False)).assets == 0, "it may still be somebody's commit"
    clock.advance(GRACE_MS)
    assert (await ws.gc(dry_run=False)).assets == orphans
    assert len(await _stored(own_server, prefix)) == len(found.referenced)
    for writer in writers:
        await writer.check()
    await ws.aclose()
    await inner.aclose()
