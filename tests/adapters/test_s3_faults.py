"""S3 when things go wrong: lost answers, storms, silence, damage, wrong settings. The server is real, a proxy breaks it."""

from __future__ import annotations

import asyncio
import datetime
import gc
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import botocore.auth
import pytest

from crux_workspace.errors import ErrorCode, InvalidInputError, StateError, StorageError
from crux_workspace.storage import AssetNotFound, PutOptions
from crux_workspace.testing.asset_checks.shelf import chunks, payload
from storage_adapters.s3 import S3AssetStore, S3Settings
from tests.support.adapted import s3_assets
from tests.support.fault_proxy import FaultProxy, Faults, fault_proxy
from tests.support.http_faults import Action, HttpFaults, Request, busy, http_faults, times
from tests.support.s3_server import S3Server, s3_server

pytestmark = pytest.mark.s3

QUICK = S3Settings(connect_timeout_s=1, read_timeout_s=1, max_attempts=3, part_bytes=5 << 20)
LARGE = payload(6 << 20)


def options(key: str | None = None) -> PutOptions:
    return PutOptions(key=f"w/n/{key or secrets.token_hex(16)}", mime_type="text/plain")


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


@pytest.fixture
async def store(faults: HttpFaults, prefix: str) -> AsyncIterator[S3AssetStore]:
    async with await s3_assets(prefix, settings=QUICK, endpoint=faults.url) as opened:
        yield opened


@pytest.fixture
async def wire(server: S3Server) -> AsyncIterator[FaultProxy]:
    parts = urlsplit(server.endpoint)
    assert parts.hostname is not None
    assert parts.port is not None
    async with fault_proxy((parts.hostname, parts.port)) as proxy:
        yield proxy


@pytest.fixture
async def wired(wire: FaultProxy, prefix: str) -> AsyncIterator[S3AssetStore]:
    endpoint = f"http://127.0.0.1:{wire.port}"
    async with await s3_assets(prefix, settings=QUICK, endpoint=endpoint) as opened:
        yield opened


async def left(server: S3Server, prefix: str) -> tuple[list[str], list[str]]:
    """Return the objects and the unfinished uploads below a prefix."""
    keys = await asyncio.to_thread(server.keys, prefix)
    return keys, await asyncio.to_thread(server.uploads, prefix)


def puts_object(request: Request) -> bool:
    return request.method == "PUT" and "partNumber" not in request.query


def sends_part(request: Request) -> bool:
    return request.method == "PUT" and "partNumber" in request.query


def completes(request: Request) -> bool:
    return request.method == "POST" and "uploadId" in request.query


# -- answers that are lost


async def test_a_put_whose_answer_was_lost_is_recognised(
    store: S3AssetStore, faults: HttpFaults, server: S3Server, prefix: str
) -> None:
    faults.rule = times(1, Action(lose=True), puts_object)
    asset = await store.put(b"once", options())
    assert [r.headers.get("if-none-match") for r in faults.seen if puts_object(r)] == ["*", "*"]
    assert await store.get(asset.ref) == b"once"
    assert await left(server, prefix) == ([f"{prefix}/{asset.ref}"], [])


async def test_a_multipart_put_whose_answers_were_lost_is_recognised(
    store: S3AssetStore, faults: HttpFaults, server: S3Server, prefix: str
) -> None:
    lost = [
        times(1, Action(lose=True), which)
        for which in (sends_part, completes, lambda r: "uploads" in r.query)
    ]

    def rule(request: Request) -> Action | None:
        return next((action for one in lost if (action := one(request)) is not None), None)

    faults.rule = rule
    asset = await store.put(chunks(LARGE, 1 << 20), options())
    assert faults.broken == 3
    assert await store.get(asset.ref) == LARGE
    keys, uploads = await left(server, prefix)
    assert keys == [f"{prefix}/{asset.ref}"]
    # An upload that was begun and whose id was lost waits for the sweep of stale uploads.
    assert len(uploads) <= 1
    assert await store.abort_stale_uploads(older_than_ms=-60_000) == len(uploads)
    assert await left(server, prefix) == (keys, [])


async def test_a_key_that_is_taken_is_refused_and_not_replaced(
    faults: HttpFaults, prefix: str
) -> None:
    server = s3_server()
    client = server.client()
    store = S3AssetStore(client, server.bucket, prefix, clock=lambda: 1_700_000_000_000)
    asset = await store.put(b"first", options("a" * 32))
    with pytest.raises(InvalidInputError, match="used once"):
        await store.put(b"other", options("a" * 32))
    assert await store.get(asset.ref) == b"first"
    assert await store.put(b"first", options("a" * 32)) == asset
    await store.aclose()


# -- storms and silence


async def test_a_short_storm_is_weathered(store: S3AssetStore, faults: HttpFaults) -> None:
    faults.rule = times(2, busy())
    asset = await store.put(LARGE, options())
    for action in (busy(), busy("500 Internal Server Error", "InternalError")):
        faults.rule = times(2, action)
        assert await store.get(asset.ref) == LARGE
    faults.rule = times(2, busy())
    assert [a.ref for a in (await store.list("w/", limit=9)).assets] == [asset.ref]
    faults.rule = times(2, busy())
    await store.delete(asset.ref)


Call = Callable[[S3AssetStore, str], Awaitable[object]]


async def _stream(store: S3AssetStore, ref: str) -> None:
    async for _ in store.stream(ref):
        pass


CALLS: dict[str, Call] = {
    "put": lambda store, _: store.put(b"x", options()),
    "put of parts": lambda store, _: store.put(LARGE, options()),
    "get": lambda store, ref: store.get(ref),
    "stream": _stream,
    "delete": lambda store, ref: store.delete(ref),
    "delete_many": lambda store, ref: store.delete_many([ref]),
    "list": lambda store, _: store.list("w/", limit=9),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_storm_without_end_is_a_typed_error(
    name: str, store: S3AssetStore, faults: HttpFaults, server: S3Server, prefix: str
) -> None:
    asset = await store.put(b"there", options())
    faults.rule = times(None, busy())
    with pytest.raises(StorageError) as caught:
        await CALLS[name](store, asset.ref)
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.STORE_UNAVAILABLE, True)
    assert caught.value.__cause__ is not None
    faults.rule = lambda _: None
    await store.aclose()  # waits for what is being taken back
    assert await left(server, prefix) == ([f"{prefix}/{asset.ref}"], [])


@pytest.mark.parametrize("name", CALLS)
async def test_silence_is_a_timeout(
    name: str, faults: HttpFaults, server: S3Server, prefix: str
) -> None:
    settings = S3Settings(read_timeout_s=0.3, max_attempts=1)
    store = await s3_assets(prefix, settings=settings, endpoint=faults.url)
    asset = await store.put(b"there", options())
    faults.rule = times(None, Action(wait_s=1.5))
    with pytest.raises(StorageError) as caught:
        await CALLS[name](store, asset.ref)
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.STORE_TIMEOUT, True)
    faults.rule = lambda _: None
    await store.aclose()


async def test_a_server_that_is_down_is_a_typed_error(
    wire: FaultProxy, wired: S3AssetStore
) -> None:
    wire.faults.refuse = True
    with pytest.raises(StorageError) as caught:
        await wired.get("w/n/x.1700000000000")
    assert caught.value.code == ErrorCode.STORE_UNAVAILABLE
    wire.faults.refuse = False
    with pytest.raises(AssetNotFound):
        await wired.get("w/n/x.1700000000000")


async def test_a_slow_server_slows_nobody_else(wire: FaultProxy, wired: S3AssetStore) -> None:
    wire.faults.delay_s = 0.005
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.001)
            turns += 1

    counting = asyncio.create_task(count())
    asset = await wired.put(chunks(LARGE, 1 << 20), options())
    assert await wired.get(asset.ref) == LARGE
    counting.cancel()
    assert turns > 100


# -- damage


@pytest.mark.parametrize("data", [b"small", LARGE], ids=["one request", "parts"])
@pytest.mark.parametrize("streamed", [False, True], ids=["bytes", "stream"])
async def test_damage_on_the_way_back_is_noticed(
    data: bytes, streamed: bool, store: S3AssetStore, faults: HttpFaults
) -> None:
    asset = await store.put(chunks(data, 1 << 20) if streamed else data, options())
    faults.rule = times(None, Action(damage_answer=True), lambda request: request.reads)
    for call in (CALLS["get"], CALLS["stream"]):
        with pytest.raises(StorageError) as caught:
            await call(store, asset.ref)
        assert caught.value.code == ErrorCode.RECORD_CORRUPT
    faults.rule = lambda _: None
    assert await store.get(asset.ref) == data


@pytest.mark.parametrize("data", [b"small", LARGE], ids=["one request", "parts"])
async def test_damage_on_the_way_there_is_refused_and_leaves_nothing(
    data: bytes, store: S3AssetStore, faults: HttpFaults, server: S3Server, prefix: str
) -> None:
    faults.rule = times(None, Action(damage_request=True), lambda request: request.method == "PUT")
    with pytest.raises(StorageError):
        await store.put(data, options())
    faults.rule = lambda _: None
    await store.aclose()
    assert await left(server, prefix) == ([], [])


@pytest.mark.parametrize("cut", [200_000, 3 << 20, 5 << 20])
async def test_a_body_that_breaks_is_taken_up_where_it_broke(
    cut: int, wire: FaultProxy, wired: S3AssetStore
) -> None:
    asset = await wired.put(LARGE, options())
    wire.faults.cut_after_answer = cut
    assert await wired.get(asset.ref) == LARGE
    wire.faults.cut_after_answer = cut
    parts = [chunk async for chunk in wired.stream(asset.ref, 7, (5 << 20) + 500)]
    assert b"".join(parts) == LARGE[7 : 7 + (5 << 20) + 500]
    assert wire.faults == Faults(), "both cuts have struck"
    assert wire.connections > 3


async def test_a_body_that_always_breaks_is_an_error(wire: FaultProxy, wired: S3AssetStore) -> None:
    asset = await wired.put(LARGE, options())

    async def break_again() -> None:
        while True:
            if wire.faults.cut_after_answer is None:
                wire.faults.cut_after_answer = 100_000
            await asyncio.sleep(0)

    breaking = asyncio.create_task(break_again())
    await asyncio.sleep(0)
    seen = 0
    try:
        with pytest.raises(StorageError) as caught:
            async for chunk in wired.stream(asset.ref):
                seen += len(chunk)
    finally:
        breaking.cancel()
    assert caught.value.code in (ErrorCode.STORE_UNAVAILABLE, ErrorCode.STORE_TIMEOUT)
    assert seen < len(LARGE)


# -- wrong settings


@pytest.mark.parametrize("name", [name for name in CALLS if name != "delete"])
async def test_a_missing_bucket_says_so(name: str, server: S3Server) -> None:
    store = S3AssetStore(
        server.client(server.admin, settings=QUICK), "nowhere", "p", settings=QUICK
    )
    with pytest.raises(StorageError, match="does not exist") as caught:
        await CALLS[name](store, "w/n/x.1700000000000")
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.STORE_UNAVAILABLE, False)
    await store.aclose()


@pytest.mark.parametrize(
    ("key", "secret", "match"),
    [("nobody", "x", "access key"), ("TESTMEMBER", "wrong", "secret key")],
)
@pytest.mark.parametrize("name", CALLS)
async def test_wrong_credentials_say_so(
    name: str, key: str, secret: str, match: str, server: S3Server
) -> None:
    identity = type(server.member)(key, secret)
    store = S3AssetStore(server.client(identity, settings=QUICK), server.bucket, settings=QUICK)
    with pytest.raises(StorageError, match=match) as caught:
        await CALLS[name](store, "w/n/x.1700000000000")
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.STORE_UNAVAILABLE, False)
    assert secret not in str(caught.value)
    await store.aclose()


async def test_missing_rights_say_so(server: S3Server, prefix: str) -> None:
    writer = await s3_assets(prefix)
    asset = await writer.put(b"x", options())
    client = server.client(server.reader, settings=QUICK)
    reader = S3AssetStore(client, server.bucket, prefix, settings=QUICK)
    assert await reader.get(asset.ref) == b"x"
    for call in (CALLS["put"], CALLS["put of parts"], CALLS["delete"]):
        with pytest.raises(StorageError, match="may not do that") as caught:
            await call(reader, asset.ref)
        assert not caught.value.retryable
    assert await writer.get(asset.ref) == b"x"
    await reader.aclose()
    await writer.aclose()


async def test_no_credentials_say_so(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    settings = S3Settings(endpoint_url=server.endpoint, region="us-east-1")
    async with await S3AssetStore.open(server.bucket, settings=settings) as store:
        with pytest.raises(StorageError, match="no credentials"):
            await store.put(b"x", options())


async def test_a_clock_that_is_wrong_says_so(
    server: S3Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = vars(botocore.auth)["get_current_datetime"]
    monkeypatch.setattr(
        "botocore.auth.get_current_datetime",
        lambda *args, **kwargs: now(*args, **kwargs) + datetime.timedelta(hours=2),
    )
    store = S3AssetStore(server.client(settings=QUICK), server.bucket, prefix, settings=QUICK)
    with pytest.raises(StorageError, match="clock") as caught:
        await store.get("w/n/x.1700000000000")
    assert not caught.value.retryable
    await store.aclose()


# -- servers that know less


async def test_a_server_without_conditions_is_asked_once(
    store: S3AssetStore, faults: HttpFaults
) -> None:
    faults.rule = times(
        None, busy("501 Not Implemented", "NotImplemented"), lambda r: "if-none-match" in r.headers
    )
    for _ in range(3):
        asset = await store.put(b"x", options())
        assert await store.get(asset.ref) == b"x"
    assert faults.broken == 1


async def test_a_server_without_batch_deletes_gets_single_ones(
    store: S3AssetStore, faults: HttpFaults
) -> None:
    faults.rule = times(
        None, busy("501 Not Implemented", "NotImplemented"), lambda r: "delete" in r.query
    )
    refs = [(await store.put(b"x", options())).ref for _ in range(3)]
    await store.delete_many(refs)
    assert (await store.list("w/", limit=9)).assets == []


async def test_without_checksum_headers_bytes_are_still_held_to_their_hash(
    faults: HttpFaults, prefix: str
) -> None:
    settings = S3Settings(max_attempts=2, checksums="when_required")
    async with await s3_assets(prefix, settings=settings, endpoint=faults.url) as store:
        small, large = await store.put(b"small", options()), await store.put(LARGE, options())
        assert (await store.get(small.ref), await store.get(large.ref)) == (b"small", LARGE)
        assert not any("checksum-crc32" in name for r in faults.seen for name in r.headers)
        faults.rule = times(None, Action(damage_answer=True), lambda request: request.reads)
        with pytest.raises(StorageError) as caught:
            await store.get(small.ref)
        assert caught.value.code == ErrorCode.RECORD_CORRUPT


# -- sizes


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("parts", [0, 1, 2])
async def test_every_size_around_a_part_is_kept(
    parts: int, more: int, server: S3Server, prefix: str
) -> None:
    size = max(0, parts * QUICK.part_bytes + more)
    data = payload(size)
    store = await s3_assets(prefix, settings=QUICK)
    limit = PutOptions(key=f"w/n/{secrets.token_hex(16)}", mime_type="x/y", max_bytes=size)
    for source in (data, chunks(data, 700_001)):
        asset = await store.put(source, limit)
        assert asset.size == size
        assert await store.get(asset.ref) == data
        assert await asyncio.to_thread(server.uploads, prefix) == []
        await store.delete(asset.ref)
    await store.aclose()


async def test_parts_that_fail_together_are_one_error(
    store: S3AssetStore, faults: HttpFaults, caplog: pytest.LogCaptureFixture
) -> None:
    faults.rule = times(None, busy(), sends_part)
    with pytest.raises(StorageError):
        await store.put(payload(16 << 20), options())
    await store.aclose()
    gc.collect()
    assert "never retrieved" not in caplog.text


# -- cancelling and closing


@pytest.mark.parametrize("data", [b"small", LARGE], ids=["one request", "parts"])
async def test_a_cancelled_put_is_taken_back_behind_the_caller(
    data: bytes, store: S3AssetStore, faults: HttpFaults, server: S3Server, prefix: str
) -> None:
    faults.rule = times(None, Action(wait_s=0.2), lambda r: r.method == "PUT")
    task = asyncio.create_task(store.put(data, options()))
    await faults.struck.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await store.aclose()
    assert await left(server, prefix) == ([], [])


async def test_a_stream_that_is_left_gives_its_connection_back(store: S3AssetStore) -> None:
    asset = await store.put(LARGE, options())
    for _ in range(40):
        stream = store.stream(asset.ref)
        assert await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]
    assert await store.get(asset.ref) == LARGE


async def test_a_closed_store_says_so(prefix: str) -> None:
    store = await s3_assets(prefix)
    await store.aclose()
    await store.aclose()
    with pytest.raises(StateError):
        await store.get("w/n/x.1700000000000")


# -- the rights that the page asks for

_ACTIONS = {
    ("PUT", ""): "s3:PutObject",
    ("PUT", "uploadId"): "s3:PutObject",
    ("POST", "uploads"): "s3:PutObject",
    ("POST", "uploadId"): "s3:PutObject",
    ("GET", ""): "s3:GetObject",
    ("DELETE", "uploadId"): "s3:AbortMultipartUpload",
    ("DELETE", ""): "s3:DeleteObject",
    ("POST", "delete"): "s3:DeleteObject",
    ("GET", "list-type"): "s3:ListBucket",
    ("GET", "uploads"): "s3:ListBucketMultipartUploads",
}
"""By method and sub-resource, what S3 calls the right to a request."""


def _right_to(request: Request) -> str:
    named = dict(parse_qsl(request.query, keep_blank_values=True))
    told = [name for name in ("uploadId", "uploads", "delete", "list-type") if name in named]
    return _ACTIONS[request.method, "".join(told)]


async def test_what_is_asked_for_needs_the_rights_of_the_page_and_no_others(
    faults: HttpFaults, prefix: str, server: S3Server
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "deploy-s3.md").read_text(encoding="utf-8")
    policy = json.loads(page.partition("```json\n")[2].partition("```")[0])
    granted: dict[str, str] = {}
    for statement in policy["Statement"]:
        actions = statement["Action"]
        for action in actions if isinstance(actions, list) else [actions]:
            granted[action] = statement["Resource"]
    async with await s3_assets(prefix, settings=QUICK, endpoint=faults.url) as store:
        small, large = await store.put(b"x", options()), await store.put(LARGE, options())
        assert await store.get(small.ref) == b"x"
        assert len([chunk async for chunk in store.stream(large.ref, 5, 6)]) == 1
        with pytest.raises(AssetNotFound):
            await store.get("w/n/x.1700000000000")
        await store.list("w/", limit=9)
        await asyncio.to_thread(
            server.client().create_multipart_upload, Bucket=server.bucket, Key=f"{prefix}/w/n/stale"
        )
        assert await store.abort_stale_uploads(older_than_ms=-60_000) == 1
        await store.delete(small.ref)
        await store.delete_many([large.ref])
    asked = [(_right_to(request), request) for request in faults.seen]
    assert {action for action, _ in asked} == set(granted)
    for action, request in asked:
        if granted[action].endswith("/*") and "delete" not in request.query:
            assert request.path.startswith(f"/{server.bucket}/{prefix}/"), "below the prefix only"
        if action == "s3:ListBucket":
            assert f"prefix={prefix}%2F" in request.query


# -- what is not ours


async def test_stale_uploads_are_aborted_and_only_below_the_prefix(
    server: S3Server, prefix: str
) -> None:
    client = server.client()

    def begin(key: str) -> None:
        client.create_multipart_upload(Bucket=server.bucket, Key=key)

    for key in (f"{prefix}/in/w/n/a.1700000000000", f"{prefix}/beside/a"):
        await asyncio.to_thread(begin, key)
    store = await s3_assets(f"{prefix}/in")
    assert await store.abort_stale_uploads() == 0  # they are younger than a day
    old = S3AssetStore(
        client,
        server.bucket,
        f"{prefix}/in",
        settings=QUICK,
        clock=lambda: _now_ms() + 2 * 86_400_000,
    )
    await old.put(LARGE, options())  # the first large put sweeps
    _, uploads = await left(server, prefix)
    assert uploads == [f"{prefix}/beside/a"]
    client.abort_multipart_upload(
        Bucket=server.bucket,
        Key=uploads[0],
        UploadId=client.list_multipart_uploads(Bucket=server.bucket, Prefix=uploads[0])["Uploads"][
            0
        ]["UploadId"],
    )
    await old.aclose()
    await store.aclose()


def _now_ms() -> int:
    return int(datetime.datetime.now(tz=datetime.UTC).timestamp() * 1000)
