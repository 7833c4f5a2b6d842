"""A workspace whose assets lie in S3: uploads nobody refers to, places side by side, missing objects, URLs.

What it promises as all places of assets do stands in test_assets_alike.py.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from crux_workspace import Retention, Workspace, open_workspace, workspace
from crux_workspace.errors import ConflictError, ErrorCode, StorageError
from crux_workspace.storage import AssetStore, MemoryRecordStore, PutOptions, StoredAsset, storage
from crux_workspace.testing import DelegatingAssetStore, FixedClock
from storage_adapters import open_storage
from storage_adapters.s3 import S3AssetStore
from tests.support.adapted import s3_assets
from tests.support.s3_server import S3Server, s3_server

pytestmark = pytest.mark.s3

HOUR_MS = 3_600_000
A, B = "/workspace/a.bin", "/workspace/b.bin"


@pytest.fixture
async def server() -> S3Server:
    return await asyncio.to_thread(s3_server)


@pytest.fixture
def prefix() -> str:
    return secrets.token_hex(6)


@pytest.fixture
def now() -> FixedClock:
    return FixedClock()


@pytest.fixture
async def assets(server: S3Server, prefix: str, now: FixedClock) -> AsyncIterator[S3AssetStore]:
    async with S3AssetStore(server.client(), server.bucket, prefix, clock=now) as opened:
        yield opened


@pytest.fixture
async def ws(assets: S3AssetStore, now: FixedClock) -> AsyncIterator[Workspace]:
    bundle = storage(records=MemoryRecordStore(), assets=assets)
    made = workspace(id="w", namespace="n", storage=bundle, clock=now)
    yield made
    await made.aclose()


async def held(server: S3Server, prefix: str) -> int:
    return len(await asyncio.to_thread(server.keys, prefix))


async def test_the_one_line_form_keeps_everything(
    server: S3Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", server.member.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", server.member.secret_key)
    url = server.url(f"{prefix}/a b+c/ä")
    async with open_storage("memory://", url) as opened:
        ws = workspace(id="w ö+ .", namespace="thread:1/x y", storage=opened)
        await ws.write("/workspace/a b+ä.bin", b"\x00\xff" * 50_000)
        await ws.write("/workspace/large.md", "x" * 100_000)
        assert await ws.read_bytes("/workspace/a b+ä.bin") == b"\x00\xff" * 50_000
        assert await ws.read_text("/workspace/large.md") == "x" * 100_000
        file = await ws.stat("/workspace/a b+ä.bin")
        assert file is not None
        assert file.uri is not None
        assert file.uri.startswith(f"s3://bucket/{prefix}/a%20b+c/%C3%A4/w%20%C3%B6%2B%20%2E/")
        assert await ws.resolve(file.uri) == b"\x00\xff" * 50_000
        parts = [c async for c in ws.stream("/workspace/a b+ä.bin", offset=5, length=6)]
        assert b"".join(parts) == b"\xff\x00\xff\x00\xff\x00"
        await ws.aclose()
    assert "secret" not in repr(opened)


async def test_uploads_that_nothing_refers_to_go_after_their_grace(
    ws: Workspace, assets: S3AssetStore, now: FixedClock, server: S3Server, prefix: str
) -> None:
    await ws.write(A, b"kept" * 40_000)
    client = server.client()
    foreign = f"{prefix}/w/n/somebody-elses.txt"
    await asyncio.to_thread(
        lambda: client.put_object(Bucket=server.bucket, Key=foreign, Body=b"theirs")
    )
    for n in range(3):
        put = PutOptions(key=f"w/n/{n:032x}", mime_type="x/y")
        await assets.put(b"orphan", put)
    now.advance(HOUR_MS - 1)
    assert (await ws.gc(dry_run=False)).assets == 0
    now.advance(1)
    assert (await ws.gc()).assets == 3
    assert await held(server, prefix) == 5
    assert (await ws.gc(dry_run=False)).assets == 3
    assert await held(server, prefix) == 2  # the file's own, and what no put of ours made
    assert await ws.read_bytes(A) == b"kept" * 40_000


class _AnswersLate(DelegatingAssetStore):
    """Stores, and keeps the answer back until it is told to go on."""

    def __init__(self, inner: AssetStore) -> None:
        super().__init__(inner)
        self.stored, self.go_on = asyncio.Event(), asyncio.Event()

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        asset = await self.inner.put(data, options)
        self.stored.set()
        await self.go_on.wait()
        return asset


async def test_an_upload_that_is_swept_before_its_commit_is_refused(
    assets: S3AssetStore, server: S3Server, prefix: str, now: FixedClock
) -> None:
    records, late = MemoryRecordStore(), _AnswersLate(assets)
    options: dict[str, Any] = {"id": "w", "namespace": "n", "clock": now}
    options["retention"] = Retention(asset_grace_ms=1_000)
    slow = workspace(records=records, assets=late, **options)
    quick = workspace(records=records, assets=assets, **options)
    await quick.write(A, "x")
    writing = asyncio.create_task(slow.write(B, b"late" * 40_000))
    await late.stored.wait()
    now.advance(1_000)
    assert (await quick.gc(dry_run=False)).assets == 1
    assert await held(server, prefix) == 0
    late.go_on.set()
    with pytest.raises(ConflictError, match="try again"):
        await writing
    assert not await quick.exists(B)
    await slow.write(B, b"late" * 40_000)
    assert await quick.read_bytes(B) == b"late" * 40_000
    assert await held(server, prefix) == 1
    for made in (slow, quick):
        await made.aclose()


async def test_two_prefixes_of_one_bucket_do_not_meet(server: S3Server, prefix: str) -> None:
    stores = [await s3_assets(f"{prefix}/{name}") for name in ("a", "ab")]
    records = [MemoryRecordStore() for _ in stores]
    pairs = zip(records, stores, strict=True)
    both = [workspace(id="w", namespace="n", records=r, assets=a) for r, a in pairs]
    for number, ws in enumerate(both):
        await ws.write(A, bytes([number]) * 100_000)
    await both[0].delete(A, purge=True)
    await both[0].drop_namespace("n")
    assert await both[1].read_bytes(A) == b"\x01" * 100_000
    assert len((await stores[0].list("w/n/", limit=9)).assets) == 1
    assert len((await stores[1].list("w/n/", limit=9)).assets) == 1
    for ws in both:
        await ws.aclose()
    for store in stores:
        await store.aclose()


async def test_a_missing_object_is_told_apart_from_a_server_in_trouble(
    server: S3Server, prefix: str, tmp_path: object
) -> None:
    async with await s3_assets(prefix) as assets:
        ws = workspace(id="w", namespace="n", records=MemoryRecordStore(), assets=assets)
        await ws.write(A, b"x" * 100_000)
        client = server.client()
        for key in await asyncio.to_thread(server.keys, prefix):
            await asyncio.to_thread(partial(client.delete_object, Bucket=server.bucket, Key=key))
        for call in (ws.read_bytes(A), anext(ws.stream(A))):
            with pytest.raises(StorageError) as caught:
                await call
            assert caught.value.code == ErrorCode.ASSET_MISSING
        await ws.aclose()


async def test_an_unknown_option_opens_nothing(prefix: str) -> None:
    with pytest.raises(ValueError, match="knows the options"):
        async with open_workspace("memory://", f"s3://bucket/{prefix}?colour=blue"):
            pass


async def test_500_files_of_64_kib_are_one_commit(
    ws: Workspace, server: S3Server, prefix: str
) -> None:
    async with ws.transaction() as tx:
        for n in range(500):
            await tx.write(f"/workspace/{n}.bin", n.to_bytes(2, "big") * 32_768)
    assert len(await ws.log()) == 1
    assert await held(server, prefix) == 500
    assert await ws.read_bytes("/workspace/499.bin") == (499).to_bytes(2, "big") * 32_768
    assert (await ws.usage()).live_bytes == 500 * 65_536
