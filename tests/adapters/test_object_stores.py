"""Assets by obstore when things go wrong, on a real S3 server behind a proxy that breaks it, and on Google's and Azure's ways."""

from __future__ import annotations

import asyncio
import base64
import secrets
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from obstore.store import S3Store

from crux_workspace import workspace
from crux_workspace.errors import (
    ErrorCode,
    InvalidInputError,
    StateError,
    StorageError,
    UnsupportedError,
)
from crux_workspace.storage import AssetNotFound, AssetTooLarge, MemoryRecordStore, PutOptions
from crux_workspace.testing import FixedClock
from crux_workspace.testing.asset_checks.shelf import chunks, payload
from storage_adapters.object_stores import ObstoreAssetStore, obstore_backend
from tests.support.azurite import KEY, azurite
from tests.support.gcs_server import GcsFront, gcs_front
from tests.support.http_faults import Action, HttpFaults, busy, http_faults, times
from tests.support.ports import free_port
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
    timeout_s: float = 2,
    retries: int = 2,
) -> ObstoreAssetStore:
    identity = who or server.member
    store = S3Store(
        bucket or server.bucket,
        endpoint=endpoint,
        region="us-east-1",
        access_key_id=identity.access_key,
        secret_access_key=identity.secret_key,
        client_options={"allow_http": True, "timeout": timedelta(seconds=timeout_s)},
        retry_config={
            "max_retries": retries,
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


Call = Callable[[ObstoreAssetStore, str], Awaitable[object]]


async def _stream(store: ObstoreAssetStore, ref: str) -> None:
    async for _ in store.stream(ref):
        pass


CALLS: dict[str, Call] = {
    "put": lambda store, _: store.put(b"x", options()),
    "put of parts": lambda store, _: store.put(chunks(LARGE, 1 << 20), options()),
    "get": lambda store, ref: store.get(ref),
    "stream": _stream,
    "delete": lambda store, ref: store.delete(ref),
    "list": lambda store, _: store.list("w/", limit=9),
}


@pytest.mark.parametrize("name", CALLS)
async def test_silence_is_a_timeout(
    name: str, server: S3Server, prefix: str, faults: HttpFaults
) -> None:
    store = opened(server, prefix, faults.url, timeout_s=0.3, retries=0)
    faults.rule = times(None, Action(wait_s=30))
    with pytest.raises(StorageError) as caught:
        await CALLS[name](store, "w/n/x.1700000000000")
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.STORE_TIMEOUT, True)


@pytest.mark.parametrize("hours", [-2, 2])
@pytest.mark.parametrize("name", CALLS)
async def test_a_clock_that_is_wrong_says_so(
    hours: int, name: str, server: S3Server, prefix: str, faults: HttpFaults
) -> None:
    """The server looks at the time of a request before the signature. A stream begins with HEAD, whose answer has no text."""
    store = opened(server, prefix, faults.url)
    asset = await store.put(b"there", options())
    wrong = datetime.now(UTC) + timedelta(hours=hours)
    header = ("x-amz-date", wrong.strftime("%Y%m%dT%H%M%SZ"))
    faults.rule = times(None, Action(headers=(header,)))
    told = "check keys, rights and clock" if name == "stream" else "clock is too far"
    with pytest.raises(StorageError, match=told) as caught:
        await CALLS[name](store, asset.ref)
    assert not caught.value.retryable
    assert await left(server, prefix) == ([f"{prefix}/{asset.ref}"], [])


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
    for call in (
        *(store.put(b"x", options()) for store in denied),
        denied[0].list("w/", limit=9),
        denied[0].delete("w/n/x.1700000000000"),
    ):
        with pytest.raises(StorageError, match="may not do that") as caught:
            await call
        assert not caught.value.retryable
    nowhere = opened(server, prefix, there, bucket="nowhere", who=server.admin)
    for call in (
        nowhere.put(b"x", options()),
        nowhere.get("w/n/x.1700000000000"),
        nowhere.list("w/", limit=9),
    ):
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


_SECRET = "s3cr3t-and-shown-nowhere"  # noqa: S105 - it opens nothing


@pytest.mark.parametrize(
    "url",
    [
        f"az://container/p?account=somebody&endpoint_url=http://127.0.0.1:{free_port()}/somebody",
        f"obstore+s3://bucket/p?region=us-east-1&endpoint_url=http://127.0.0.1:{free_port()}",
    ],
    ids=["azure", "s3"],
)
async def test_credentials_are_in_no_error(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers, and no URL that obstore asked for, with its signature or token, stands in a cause."""
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, _SECRET)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    token = f"sv=2023-11-03&ss=b&srt=sco&sp=rwdl&se=2040-01-01T00:00:00Z&sig={_SECRET}"
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", token)
    store = await obstore_backend(f"{url}&max_retries=0")
    for call in (
        store.put(b"x", options()),
        store.put(chunks(LARGE, 1 << 20), options()),
        store.get("w/n/x.1700000000000"),
        store.list("w/", limit=9),
        store.delete("w/n/x.1700000000000"),
    ):
        with pytest.raises(StorageError) as caught:
            await call
        assert _SECRET not in "".join(traceback.format_exception(caught.value))
    assert _SECRET not in repr(store) + repr(vars(store))


@pytest.mark.parametrize(
    "url",
    [
        f"obstore+s3://bucket/p?endpoint_url=http://user:{_SECRET}@127.0.0.1:9",
        f"az://container/p?account=a&endpoint_url=https://user:{_SECRET}@127.0.0.1:9/a",
        f"gs://bucket/p?endpoint_url=https://{_SECRET}@127.0.0.1:9",
        f"gs://bucket/p?endpoint_url=https://[{_SECRET}",
        f"gs://bucket/p?endpoint_url=ftp://{_SECRET}",
        f"obstore+s3://user:{_SECRET}@bucket/p",
        f"obstore+s3://bucket/p?secret_access_key={_SECRET}",
        f"obstore+s3://bucket/p?max_retries={_SECRET}",
    ],
)
async def test_a_url_with_credentials_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        await obstore_backend(url)
    assert _SECRET not in str(caught.value)
    assert _SECRET not in repr(caught.value.to_dict())


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


# -- Google and Azure


@dataclass
class Cloud:
    """Where one of them answers, and what names its bucket."""

    url: Callable[[str], str]
    """The URL of a prefix."""
    nowhere: str
    """A URL of a bucket that does not exist."""
    account: str
    """The environment's name for the credentials."""
    wrong: str
    """Credentials that are not the right ones."""

    async def open(self, prefix: str) -> ObstoreAssetStore:
        store = await obstore_backend(self.url(prefix) + "&max_retries=0")
        assert isinstance(store, ObstoreAssetStore)
        return store


@pytest.fixture(params=["google", "azure"])
async def cloud(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Cloud]:
    """Each of them in turn."""
    if request.param == "azure":
        blobs = await asyncio.to_thread(azurite)
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
        nowhere = blobs.url("p").replace("container", "nowhere")
        wrong = base64.b64encode(b"another key").decode()
        yield Cloud(blobs.url, nowhere, "AZURE_STORAGE_ACCOUNT_KEY", wrong)
        return
    server = await asyncio.to_thread(s3_server)
    async with gcs_front(server) as front:
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", front.service_account_key)
        where = f"?endpoint_url={front.url}"
        yield Cloud(
            lambda prefix: f"gs://{server.bucket}/{prefix}{where}",
            f"gs://nowhere/p{where}",
            "GOOGLE_SERVICE_ACCOUNT_KEY",
            GcsFront(server).service_account_key,
        )


async def test_clouds_say_what_is_wrong(
    cloud: Cloud, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await cloud.open(prefix)
    asset = await store.put(b"there", options())
    with pytest.raises(AssetNotFound):
        await store.get("w/n/x.1700000000000")
    nowhere = await obstore_backend(f"{cloud.nowhere}&max_retries=0")
    for call in (
        lambda: nowhere.put(b"x", options()),
        lambda: nowhere.get(asset.ref),
        lambda: nowhere.list("w/", limit=9),
    ):
        with pytest.raises(StorageError) as caught:
            await call()
        assert caught.value.code == ErrorCode.STORE_UNAVAILABLE
    monkeypatch.setenv(cloud.account, cloud.wrong)
    stranger = await cloud.open(prefix)
    with pytest.raises(StorageError, match="may not do that") as caught:
        await stranger.get(asset.ref)
    assert not caught.value.retryable
    assert await store.get(asset.ref) == b"there"


async def test_a_cloud_creates_only_what_is_not_there(cloud: Cloud, prefix: str) -> None:
    store = await cloud.open(prefix)
    store._clock = lambda: 1_700_000_000_000
    key = PutOptions(key=f"w/n/{'a' * 32}", mime_type="text/plain")
    asset = await store.put(b"first", key)
    assert await store.put(b"first", key) == asset, "its answer may have been lost"
    with pytest.raises(StorageError):
        await store.put(b"other", key)
    assert await store.get(asset.ref) == b"first"


async def test_clouds_sign_plain_names_and_refuse_others(cloud: Cloud, prefix: str) -> None:
    store = await cloud.open(prefix)
    asset = await store.put(b"signed", options())
    url = await store.presign(asset.ref, expires_s=60)
    answer = await asyncio.to_thread(httpx.get, url)
    assert answer.content == b"signed"
    for changed in (url.replace(prefix, "other"), url[:-2] + ("00" if url[-2:] != "00" else "11")):
        assert (await asyncio.to_thread(httpx.get, changed)).status_code == 403
    odd = await store.put(b"x", PutOptions(key=f"w%20/n/{'a' * 32}", mime_type="text/plain"))
    with pytest.raises(UnsupportedError):
        await store.presign(odd.ref, expires_s=60)


@pytest.mark.parametrize("size", [0, 1, (8 << 20) - 1, 8 << 20, (8 << 20) + 1])
async def test_clouds_keep_every_size_around_a_part(cloud: Cloud, prefix: str, size: int) -> None:
    store = await cloud.open(prefix)
    data = payload(size)
    for source in (data, chunks(data, 700_001)):
        asset = await store.put(source, options(size))
        assert asset.size == size
        assert await store.get(asset.ref) == data
        assert b"".join([c async for c in store.stream(asset.ref, 3)]) == data[3:]


async def test_a_workspace_on_a_cloud_collects_what_it_let_go(cloud: Cloud, prefix: str) -> None:
    clock = FixedClock()
    store = await cloud.open(prefix)
    records = MemoryRecordStore()
    async with workspace(
        id="w ö", namespace="n/1", records=records, assets=store, clock=clock
    ) as ws:
        for number in range(3):
            await ws.write(f"/workspace/{number}.bin", bytes([number]) * 300_000)
        await ws.delete("/workspace/1.bin", purge=True)
        clock.advance(3_600_000)
        await ws.gc(dry_run=False)
        assert len((await store.list("", limit=9)).assets) == 2
        for number in (0, 2):
            assert await ws.read_bytes(f"/workspace/{number}.bin") == bytes([number]) * 300_000
