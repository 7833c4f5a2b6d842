"""Checks of `put`, `get` and `delete`."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import suppress

from crux_workspace.storage.assets import (
    AssetNotFound,
    AssetStore,
    AssetTooLarge,
    DeletesMany,
    StoredAsset,
)
from crux_workspace.testing.asset_checks.shelf import (
    ASSET_CHECKS,
    FreshAssets,
    chunks,
    joined,
    keep,
    listed,
    options,
    payload,
    shelf,
)
from crux_workspace.testing.checks import NotApplicable, holds, raises, same

__all__: list[str] = []


class _SourceBroke(Exception):
    """Raised by a source of ours."""


def _told(asset: StoredAsset, data: bytes) -> None:
    same(asset.size, len(data), "size")
    same(asset.sha256, hashlib.sha256(data).hexdigest(), "sha256")
    holds(asset.ref and asset.uri, "ref and uri are not empty")
    holds(
        type(asset.created_at) is int and asset.created_at > 0, "created_at is ms since the epoch"
    )


@ASSET_CHECKS.add()
async def check_broken_stream(store: AssetStore, fresh: FreshAssets) -> None:
    """A-010: a put whose stream breaks raises what the stream raised, and leaves nothing behind."""
    prefix = shelf(fresh)
    for sent in (0, 1, 300_000, 3 << 20):
        error = _SourceBroke(sent)

        async def broken(sent: int = sent, error: Exception = error) -> AsyncIterator[bytes]:
            async for chunk in chunks(payload(sent), 64 << 10):
                yield chunk
            raise error

        put = options(prefix)
        async with raises(_SourceBroke, "a stream that breaks") as caught:
            await store.put(broken(), put)
        same(caught.error is error, True, "the stream's own exception")
        same(await listed(store, fresh, prefix), [], f"assets after {sent} bytes and a break")
        asset = await store.put(b"again", put)
        same(await store.get(asset.ref), b"again", "the same key afterwards")
        await store.delete(asset.ref)


@ASSET_CHECKS.add()
async def check_put_bytes(store: AssetStore, fresh: FreshAssets) -> None:
    """A-011: bytes that were put come back as they were, with their size and hash."""
    prefix = shelf(fresh)
    for data in (b"x", bytes(range(256)), b"\r\n\x00\xff" * 50, payload(1 << 20)):
        asset = await keep(store, prefix, data)
        _told(asset, data)
        got = await store.get(asset.ref)
        same((type(got), got == data), (bytes, True), f"{len(data)} bytes")


@ASSET_CHECKS.add()
async def check_put_stream(store: AssetStore, fresh: FreshAssets) -> None:
    """A-012: a stream that was put comes back as its bytes, whatever its chunks."""
    prefix = shelf(fresh)
    for size, chunk in ((1, 1), (1_000, 7), (300_000, 299_999), (9 << 20, 100_000)):
        data = payload(size)
        asset = await store.put(chunks(data, chunk), options(prefix))
        _told(asset, data)
        same(await store.get(asset.ref) == data, True, f"{size} bytes in chunks of {chunk}")


@ASSET_CHECKS.add()
async def check_empty_asset(store: AssetStore, fresh: FreshAssets) -> None:
    """A-013: an asset may be empty, put as bytes or as a stream."""
    prefix = shelf(fresh)
    for data in (b"", chunks(b"", 1)):
        asset = await store.put(data, options(prefix, max_bytes=0))
        _told(asset, b"")
        same(await store.get(asset.ref), b"", "get")
        same(await joined(store, asset.ref), b"", "stream")
        same(await joined(store, asset.ref, 0, 10), b"", "a range")
    same([a.size for a in await listed(store, fresh, prefix)], [0, 0], "listed sizes")


@ASSET_CHECKS.add()
async def check_max_bytes(store: AssetStore, fresh: FreshAssets) -> None:
    """A-014: bytes beyond max_bytes are refused and not kept; as many as max_bytes are taken."""
    prefix = shelf(fresh)
    async with raises(AssetTooLarge, "one byte too many") as caught:
        await store.put(payload(101), options(prefix, max_bytes=100))
    same(caught.error.limit, 100, "limit that the refusal tells")
    same(await listed(store, fresh, prefix), [], "assets after a refusal")
    asset = await store.put(payload(100), options(prefix, max_bytes=100))
    same(asset.size, 100, "size of an asset as large as allowed")


@ASSET_CHECKS.add()
async def check_max_bytes_of_stream(store: AssetStore, fresh: FreshAssets) -> None:
    """A-015: a stream is refused as soon as it passes max_bytes, not read to its end, and not kept."""
    prefix = shelf(fresh)
    for size, limit in ((64 << 10, 100_000), (1 << 20, 6 << 20)):
        sent = 0

        async def endless(size: int = size) -> AsyncIterator[bytes]:
            nonlocal sent
            while sent < 40 << 20:
                sent += size
                yield bytes(size)

        source = endless()
        async with raises(AssetTooLarge, "a stream without end"):
            await store.put(source, options(prefix, max_bytes=limit))
        with suppress(AttributeError):
            await source.aclose()  # type: ignore[attr-defined]
        holds(sent <= limit + 16 * size, f"{sent} bytes were read for a limit of {limit}")
        same(await listed(store, fresh, prefix), [], "assets after a refusal")
    data = payload(100_000)
    asset = await store.put(chunks(data, 999), options(prefix, max_bytes=len(data)))
    same(await store.get(asset.ref) == data, True, "a stream as large as allowed")


@ASSET_CHECKS.add()
async def check_cancelled_put(store: AssetStore, fresh: FreshAssets) -> None:
    """A-016: a put that is cancelled while its stream stalls leaves nothing behind."""
    prefix = shelf(fresh)
    for sent in (0, 1_000, 6 << 20):
        stalled = asyncio.Event()

        async def stalling(
            sent: int = sent, stalled: asyncio.Event = stalled
        ) -> AsyncIterator[bytes]:
            async for chunk in chunks(payload(sent), 1 << 20):
                yield chunk
            stalled.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(store.put(stalling(), options(prefix)))
        await asyncio.wait_for(stalled.wait(), 30)
        task.cancel()
        async with raises(asyncio.CancelledError, "a cancelled put"):
            await task
        same(await listed(store, fresh, prefix), [], f"assets after {sent} bytes and a cancel")


@ASSET_CHECKS.add()
async def check_get_missing(store: AssetStore, fresh: FreshAssets) -> None:
    """A-020: get of an absent ref raises AssetNotFound."""
    asset = await keep(store, shelf(fresh), b"x")
    await store.delete(asset.ref)
    async with raises(AssetNotFound, "get of a deleted asset"):
        await store.get(asset.ref)


@ASSET_CHECKS.add()
async def check_delete(store: AssetStore, fresh: FreshAssets) -> None:
    """A-021: delete removes one asset, and removing it again is no error."""
    prefix = shelf(fresh)
    first, second = await keep(store, prefix, b"same"), await keep(store, prefix, b"same")
    holds(first.ref != second.ref, "two puts share a ref")
    for _ in range(3):
        await store.delete(first.ref)
    same(await store.get(second.ref), b"same", "an asset with the same bytes")
    same([a.ref for a in await listed(store, fresh, prefix)], [second.ref], "assets left")


@ASSET_CHECKS.add()
async def check_concurrent_puts(store: AssetStore, fresh: FreshAssets) -> None:
    """A-022: puts at the same time do not mix."""
    prefix = shelf(fresh)
    bodies = [payload(40_000 + n, seed=n * 100_000) for n in range(16)]

    async def slow(data: bytes) -> AsyncIterator[bytes]:
        async for chunk in chunks(data, 5_000):
            await asyncio.sleep(0)
            yield chunk

    puts = [store.put(slow(b) if n % 2 else b, options(prefix)) for n, b in enumerate(bodies)]
    assets = await asyncio.gather(*puts)
    same(len({a.ref for a in assets}), len(bodies), "refs")
    found = await asyncio.gather(*(store.get(a.ref) for a in assets))
    same([f == b for f, b in zip(found, bodies, strict=True)], [True] * 16, "bytes of each asset")
    for asset, data in zip(assets, bodies, strict=True):
        _told(asset, data)


@ASSET_CHECKS.add()
async def check_bytes_are_isolated(store: AssetStore, fresh: FreshAssets) -> None:
    """A-023: what a source does with its buffer afterwards changes no asset."""
    buffer = bytearray(b"first")

    async def reusing() -> AsyncIterator[bytes]:
        yield bytes(buffer)
        buffer[:] = b"other"
        yield bytes(buffer)

    asset = await store.put(reusing(), options(shelf(fresh)))
    buffer[:] = b"third"
    same(await store.get(asset.ref), b"firstother", "bytes of the asset")
    same(type(await store.get(asset.ref)), bytes, "type of what get returns")


@ASSET_CHECKS.add()
async def check_delete_many(store: AssetStore, fresh: FreshAssets) -> None:
    """A-025: a store that deletes many assets in one call deletes those and no others, absent ones being no error."""
    if not isinstance(store, DeletesMany):
        raise NotApplicable("delete_many is not declared")
    prefix = shelf(fresh)
    assets = [await keep(store, f"{prefix}{name}/", b"x") for name in ("a", "a%20b", "a+b", "c")]
    await store.delete_many([])
    await store.delete_many([a.ref for a in assets[:3]] + [assets[0].ref])
    same([a.ref for a in await listed(store, fresh, prefix)], [assets[3].ref], "assets left")
    await store.delete_many([a.ref for a in assets])
    same(await listed(store, fresh, prefix), [], "assets after deleting all")


@ASSET_CHECKS.add()
async def check_aclose(store: AssetStore, fresh: FreshAssets) -> None:
    """A-024: a store can be closed again and again."""
    await keep(store, shelf(fresh), b"x")
    await store.aclose()
    await store.aclose()
