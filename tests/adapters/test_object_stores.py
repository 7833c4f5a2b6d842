"""Assets by obstore when things go wrong, on a real S3 server behind a proxy that breaks it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from obstore.store import S3Store

from crux_workspace.errors import ErrorCode, StateError, StorageError, UnsupportedError
from crux_workspace.storage import AssetNotFound, AssetTooLarge, PutOptions
from crux_workspace.testing.asset_checks.shelf import chunks, payload
from storage_adapters.object_stores import ObstoreAssetStore, obstore_backend
from tests.support.http_faults import Action, HttpFaults, busy, http_faults, times
from tests.support.s3_server import Identity, S3Server, s3_server

pytestmark = pytest.mark.s3

LARGE = payload(20 << 20)


def options(limit: int | None = None) -> PutOptions:
    key = f"w/n/{secrets.token_hex(16)}"
    return PutOptions(key=key, mime_type="text/plain", max_bytes=limit)


@pytest.fixture
async def server() -> S3Server:
    return await asyncio.to_thread(s3_server)


@pytest.fixture
def prefix() -> str:
    return secrets.token_hex(6)


@pytest.fixture
async def faults(server: S3Server) -> AsyncIterator[HttpFaults]:
    async with http_faults(server.endpoint) as proxy:
        yield proxy


def opened(
    server: S3Server,
    prefix: str,
    endpoint: str,
    *,
    who: Identity | None = None,
    bucket: str | None = None,
) -> ObstoreAssetStore:
    identity = who or server.member
    store = S3Store(
        bucket or server.bucket,
        endpoint=endpoint,
        region="us-east-1",
        access_key_id=identity.access_key,
        secret_access_key=identity.secret_key,
        client_options={"allow_http": True, "timeout": timedelta(seconds=2)},
        retry_config={
            "max_retries": 2,
            "retry_timeout": timedelta(seconds=5),
            "backoff": {
                "init_backoff": timedelta(milliseconds=10),
                "max_backoff": timedelta(milliseconds=50),
                "base": 2,
            },
        },
    )
    return ObstoreAssetStore(store, prefix)


async def left(server: S3Server, prefix: str) -> tuple[list[str], list[str]]:
    keys = await asyncio.to_thread(server.keys, prefix)
    return keys, await asyncio.to_thread(server.uploads, prefix)


async def test_a_put_whose_answer_was_lost_is_recognised(
    server: S3Server, prefix: str, faults: HttpFaults
) -> None:
    store = opened(server, prefix, faults.url)
    faults.rule = times(1, Action(lose=True), lambda r: r.method == "PUT")
    asset = await store.put(b"once", options())
    assert faults.broken == 1
    assert await store.get(asset.ref) == b"once"
    assert await left(server, prefix) == ([f"{prefix}/{asset.ref}"], [])


async def test_storms_are_weathered_or_told(
    server: S3Server, prefix: str, faults: HttpFaults
) -> None:
    store = opened(server, prefix, faults.url)
    faults.rule = times(2, busy())
    asset = await store.put(b"x", options())
    faults.rule = times(None, busy())
    for call in (store.get(asset.ref), store.put(b"y", options()), store.list("w/", limit=9)):
        with pytest.raises(StorageError) as caught:
            await call
        assert (caught.value.code, caught.value.retryable) == (ErrorCode.STORE_UNAVAILABLE, True)
    with pytest.raises(StorageError):
        await store.delete(asset.ref)


async def test_silence_is_a_timeout(server: S3Server, prefix: str, faults: HttpFaults) -> None:
    store = opened(server, prefix, faults.url)
    faults.rule = times(None, Action(wait_s=30))
    with pytest.raises(StorageError) as caught:
        await store.get("w/n/x.1700000000000")
    assert caught.value.code == ErrorCode.STORE_TIMEOUT


async def test_damage_on_the_way_back_is_noticed(
    server: S3Server, prefix: str, faults: HttpFaults
) -> None:
    store = opened(server, prefix, faults.url)
    asset = await store.put(b"small", options())
    faults.rule = times(None, Action(damage_answer=True), lambda r: r.reads)
    with pytest.raises(StorageError) as caught:
        await store.get(asset.ref)
    assert caught.value.code == ErrorCode.RECORD_CORRUPT


async def test_wrong_settings_say_so(server: S3Server, prefix: str) -> None:
    there = server.endpoint
    wrong = Identity(server.member.access_key, "wrong-secret")
    denied = [
        opened(server, prefix, there, who=wrong),
        opened(server, prefix, there, who=server.reader),
    ]
    for store in denied:
        with pytest.raises(StorageError, match="may not do that") as caught:
            await store.put(b"x", options())
        assert not caught.value.retryable
    nowhere = opened(server, prefix, there, bucket="nowhere", who=server.admin)
    for call in (nowhere.put(b"x", options()), nowhere.get("w/n/x.1700000000000")):
        with pytest.raises(StorageError, match="does not exist") as caught:
            await call
        assert not caught.value.retryable
    with pytest.raises(AssetNotFound):
        await opened(server, prefix, there).get("w/n/x.1700000000000")


async def test_a_stream_that_ends_badly_leaves_nothing(server: S3Server, prefix: str) -> None:
    store = opened(server, prefix, server.endpoint)
    stalled = asyncio.Event()

    class Broke(Exception):
        pass

    async def breaking() -> AsyncIterator[bytes]:
        async for chunk in chunks(LARGE, 1 << 20):
            yield chunk
        raise Broke

    async def stalling() -> AsyncIterator[bytes]:
        async for chunk in chunks(LARGE, 1 << 20):
            yield chunk
        stalled.set()
        await asyncio.Event().wait()

    with pytest.raises(Broke):
        await store.put(breaking(), options())
    with pytest.raises(AssetTooLarge):
        await store.put(chunks(LARGE, 1 << 20), options(len(LARGE) - 1))
    task = asyncio.create_task(store.put(stalling(), options()))
    await stalled.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await left(server, prefix) == ([], [])
    asset = await store.put(chunks(LARGE, 1 << 20), options(len(LARGE)))
    assert await store.get(asset.ref) == LARGE


async def test_only_what_is_asked_for_is_deleted(server: S3Server, prefix: str) -> None:
    store = opened(server, prefix, server.endpoint)
    refs = [(await store.put(b"x", options())).ref for _ in range(4)]
    await store.delete_many(["w/n/absent.1700000000000", *refs[:3]])
    assert (await left(server, prefix))[0] == [f"{prefix}/{refs[3]}"]


async def test_what_cannot_be_signed_says_so(
    server: S3Server, prefix: str, tmp_path: object
) -> None:
    local = await obstore_backend(f"obstore+file://{tmp_path}/assets")
    assert isinstance(local, ObstoreAssetStore)
    with pytest.raises(UnsupportedError):
        await local.presign("w/n/x.1700000000000")
    with pytest.raises(UnsupportedError):
        await opened(server, prefix, server.endpoint).presign("x.1700000000000", filename="a.txt")
    await local.aclose()
    with pytest.raises(StateError):
        await local.get("w/n/x.1700000000000")


@pytest.mark.parametrize("url", ["gs://bucket/a/b", "az://container/a?account=somebody"])
async def test_other_clouds_are_opened_without_asking_them(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")
    monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")
    store = await obstore_backend(url)
    assert isinstance(store, ObstoreAssetStore)
    assert "a2V5" not in repr(store)
    await store.aclose()
