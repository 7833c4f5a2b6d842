"""What a workspace promises of its assets, wherever they lie: writers of equal content, collection that races, clocks that differ."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from crux_workspace import Retention, Workspace, workspace
from crux_workspace.errors import ConflictError
from crux_workspace.storage import AssetStore, MemoryRecordStore, PutOptions
from crux_workspace.testing import FixedClock
from storage_adapters.local_files import LocalFilesAssetStore
from storage_adapters.object_stores import ObstoreAssetStore, obstore_backend
from storage_adapters.redis import RedisAssetStore
from tests.support.adapted import s3_assets
from tests.support.azurite import KEY, azurite
from tests.support.gcs_server import gcs_front
from tests.support.redis_servers import RedisServer
from tests.support.s3_server import s3_server

HOUR_MS = 3_600_000
A, B = "/workspace/a.bin", "/workspace/b.bin"


@pytest.fixture
def now() -> FixedClock:
    return FixedClock()


@pytest.fixture(
    params=[
        "folder",
        pytest.param("redis", marks=pytest.mark.redis),
        "azure",
        pytest.param("google", marks=pytest.mark.s3),
        pytest.param("s3", marks=pytest.mark.s3),
    ]
)
async def assets(
    request: pytest.FixtureRequest,
    now: FixedClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[AssetStore]:
    """An empty place for assets, of each kind in turn."""
    prefix = secrets.token_hex(6)
    if request.param == "folder":
        yield LocalFilesAssetStore(tmp_path / "assets", clock=now)
    elif request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis_server")
        async with await RedisAssetStore.open(server.url(), clock=now) as store:
            yield store
    elif request.param == "azure":
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
        yield await _cloud((await asyncio.to_thread(azurite)).url(prefix), now)
    elif request.param == "s3":
        async with await s3_assets(prefix, clock=now) as store:
            yield store
    else:
        s3 = await asyncio.to_thread(s3_server)
        async with gcs_front(s3) as front:
            monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", front.service_account_key)
            url = f"gs://{s3.bucket}/{prefix}?endpoint_url={front.url}"
            yield await _cloud(url, now)


async def _cloud(url: str, now: FixedClock) -> ObstoreAssetStore:
    store = await obstore_backend(url)
    assert isinstance(store, ObstoreAssetStore)
    store._clock = now
    return store


@pytest.fixture
async def ws(assets: AssetStore, now: FixedClock) -> AsyncIterator[Workspace]:
    """A workspace whose large content lies there."""
    records = MemoryRecordStore()
    async with workspace(id="w", namespace="n", records=records, assets=assets, clock=now) as made:
        yield made


async def held(assets: AssetStore) -> int:
    return len((await assets.list("", limit=1_000)).assets)


async def test_equal_content_of_two_writers_stays_when_one_rolls_back(
    ws: Workspace, assets: AssetStore, now: FixedClock
) -> None:
    data = b"equal" * 40_000

    class Undone(Exception):
        pass

    async def other() -> None:
        async with ws.transaction() as tx:
            await tx.write(B, data)
            await tx.copy(B, "/workspace/c.bin")
            raise Undone

    results = await asyncio.gather(ws.write(A, data), other(), return_exceptions=True)
    assert isinstance(results[1], Undone)
    assert await ws.read_bytes(A) == data
    assert not await ws.exists(B)
    assert await held(assets) == 1
    now.advance(2 * HOUR_MS)
    await ws.gc(dry_run=False)
    assert await ws.read_bytes(A) == data


async def test_collecting_harms_no_reader_and_no_writer(
    ws: Workspace, assets: AssetStore, now: FixedClock
) -> None:
    old = secrets.token_bytes(3_000_000)
    await ws.write(A, old)
    reading = ws.stream(A)
    first = await anext(reading)
    await ws.delete(A, purge=True)  # released; whoever reads it has the grace to end
    await asyncio.gather(
        *(ws.gc(dry_run=False) for _ in range(2)),
        *(ws.write(f"/workspace/{n}.bin", b"new" * 50_000) for n in range(4)),
    )
    rest = [chunk async for chunk in reading]
    assert first + b"".join(rest) == old
    assert await held(assets) == 5
    now.advance(HOUR_MS)
    await asyncio.gather(
        ws.gc(dry_run=False),
        *(ws.write(f"/workspace/{n}.bin", b"newer" * 50_000) for n in range(4)),
    )
    for n in range(4):
        assert await ws.read_bytes(f"/workspace/{n}.bin") == b"newer" * 50_000
    assert await held(assets) == 8, "the old one is gone, every version is kept"


Opened = Callable[[str], Awaitable[AssetStore]]


@pytest.fixture(params=["folder", "obstore folder", pytest.param("s3", marks=pytest.mark.s3)])
async def beside(
    request: pytest.FixtureRequest, now: FixedClock, tmp_path: Path
) -> AsyncIterator[Opened]:
    """Opens assets at places whose names the caller chooses."""
    async with AsyncExitStack() as stack:
        root = secrets.token_hex(6)

        async def opened(name: str) -> AssetStore:
            if request.param == "folder":
                return LocalFilesAssetStore(tmp_path / name, clock=now)
            if request.param == "obstore folder":
                return await _cloud(f"obstore+file://{tmp_path / name}", now)
            store = await s3_assets(f"{root}/{name}", clock=now)
            return await stack.enter_async_context(store)

        yield opened


@pytest.mark.parametrize(
    "names", [("a", "ab"), ("a", "a/w"), ("a", "a/w/n"), ("a", "a/w/n/w/n")], ids="-".join
)
async def test_a_place_beside_or_below_another_one_loses_nothing_to_its_collection(
    names: tuple[str, str], beside: Opened, now: FixedClock
) -> None:
    places = [await beside(name) for name in names]
    spaces = [
        workspace(id="w", namespace="n", records=MemoryRecordStore(), assets=place, clock=now)
        for place in places
    ]
    for number, ws in enumerate(spaces):
        await ws.write(A, bytes([number]) * 100_000)
        await ws.write(B, bytes([number + 8]) * 100_000)
        await ws.delete(B, purge=True)
        await places[number].put(b"orphan", PutOptions(key=f"w/n/{'0' * 32}", mime_type="x/y"))
    now.advance(2 * HOUR_MS)
    for ws in (*spaces, *spaces):
        await ws.gc(dry_run=False)
    for number, ws in enumerate(spaces):
        assert await ws.read_bytes(A) == bytes([number]) * 100_000
        listed = (await places[number].list("w/n/", limit=9)).assets
        assert len([info for info in listed if info.ref.count("/") == 2]) == 1, "orphans are gone"
        await ws.drop_namespace("n")
    await spaces[0].gc(dry_run=False)
    assert (await places[1].list("w/n/", limit=9)).assets, "only its own collection may take it"
    for ws in spaces:
        await ws.aclose()


async def test_a_process_whose_clock_is_ahead_loses_nothing_of_the_others(
    assets: AssetStore, now: FixedClock
) -> None:
    """It sweeps what somebody else is uploading: that commit is refused, and nothing that was acknowledged is touched."""
    ahead = FixedClock()
    ahead.advance(3 * HOUR_MS)
    records = MemoryRecordStore()
    retention = Retention(asset_grace_ms=HOUR_MS)
    async with (
        workspace(
            id="w", namespace="n", records=records, assets=assets, clock=now, retention=retention
        ) as ours,
        workspace(
            id="w", namespace="n", records=records, assets=assets, clock=ahead, retention=retention
        ) as theirs,
    ):
        await ours.write(A, b"kept" * 50_000)
        await assets.put(b"orphan", PutOptions(key=f"w/n/{'0' * 32}", mime_type="x/y"))
        with pytest.raises(ConflictError):
            async with ours.transaction() as tx:
                await tx.write(B, b"late" * 50_000)
                assert (await theirs.gc(dry_run=False)).assets == 2
        assert await ours.read_bytes(A) == b"kept" * 50_000
        assert not await ours.exists(B)
        assert await held(assets) == 1
        now.advance(3 * HOUR_MS)  # its clock is set right
        await ours.write(B, b"again" * 50_000)
        assert await theirs.read_bytes(B) == b"again" * 50_000
