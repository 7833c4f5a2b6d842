"""Checks of `stream`."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from urllib.request import urlopen

from crux_workspace.errors import UnsupportedError
from crux_workspace.storage.assets import AssetNotFound, AssetStore, Presigns
from crux_workspace.testing.asset_checks.shelf import (
    ASSET_CHECKS,
    FreshAssets,
    joined,
    keep,
    payload,
    shelf,
)
from crux_workspace.testing.checks import NotApplicable, holds, raises, same

__all__: list[str] = []


@ASSET_CHECKS.add()
async def check_whole_stream(store: AssetStore, fresh: FreshAssets) -> None:
    """A-030: the chunks of a stream are the asset, in pieces of at most 8 MiB."""
    data = payload(12 << 20)
    asset = await keep(store, shelf(fresh), data)
    parts = [chunk async for chunk in store.stream(asset.ref)]
    same(b"".join(parts) == data, True, "bytes of the stream")
    holds(len(parts) > 1, "12 MiB came as one chunk")
    holds(max(map(len, parts)) <= 8 << 20, "a chunk is larger than 8 MiB")
    holds(all(parts), "a chunk is empty")


@ASSET_CHECKS.add()
async def check_ranges(store: AssetStore, fresh: FreshAssets) -> None:
    """A-031: a range starts at offset and has at most length bytes."""
    for size in (10, 700_001):
        data = payload(size)
        asset = await keep(store, shelf(fresh), data)
        offsets = {0, 1, 3, size // 2, (1 << 18) - 1, 1 << 18, size - 1}
        for offset in sorted(o for o in offsets if o < size):
            for length in (None, 0, 1, 2, 5, size // 3, size - offset, size, size * 2):
                end = size if length is None else offset + length
                got = await joined(store, asset.ref, offset, length)
                same(got == data[offset:end], True, f"{length} bytes from {offset} of {size}")


@ASSET_CHECKS.add()
async def check_beyond_the_end(store: AssetStore, fresh: FreshAssets) -> None:
    """A-032: a range at or beyond the end is empty, no error."""
    asset = await keep(store, shelf(fresh), b"0123456789")
    for offset in (10, 11, 1 << 20, 1 << 40):
        for length in (None, 0, 1, 1 << 20):
            same(await joined(store, asset.ref, offset, length), b"", f"{length} from {offset}")


@ASSET_CHECKS.add()
async def check_stream_missing(store: AssetStore, fresh: FreshAssets) -> None:
    """A-033: a stream of an absent ref raises AssetNotFound at its first step, not when it is made."""
    asset = await keep(store, shelf(fresh), b"x")
    await store.delete(asset.ref)
    for arguments in ((), (5,), (0, 0), (0, 1), (1 << 30, 1)):
        stream = store.stream(asset.ref, *arguments)
        async with raises(AssetNotFound, f"a stream{arguments} of a deleted asset"):
            await anext(stream)


@ASSET_CHECKS.add()
async def check_abandoned_stream(store: AssetStore, fresh: FreshAssets) -> None:
    """A-034: a stream may be left before its end, and several may be read at the same time."""
    data = payload(2 << 20)
    asset = await keep(store, shelf(fresh), data)
    left, kept = store.stream(asset.ref), store.stream(asset.ref, 5)
    first, second = await anext(left), await anext(kept)
    same((data.startswith(first), data[5:].startswith(second)), (True, True), "first chunks")
    close = getattr(left, "aclose", None)
    if close is not None:
        await close()
    rest = [chunk async for chunk in kept]
    same(second + b"".join(rest) == data[5:], True, "the other stream")
    await store.delete(asset.ref)


@ASSET_CHECKS.add()
async def check_presigned(store: AssetStore, fresh: FreshAssets) -> None:
    """A-060: a presigned URL gives the bytes to whoever has it, given a ref or a URI."""
    if not isinstance(store, Presigns):
        raise NotApplicable("presign is not declared")
    asset = await keep(store, f"{shelf(fresh)}a%20b/", b"presigned")

    def fetch(url: str) -> bytes:
        holds(url.startswith(("http://", "https://")), "the URL is one for the web")
        with urlopen(url, timeout=30) as answer:  # noqa: S310 - its scheme was looked at
            data: bytes = answer.read()
            return data

    try:
        urls = [await store.presign(ref, expires_s=60) for ref in (asset.ref, asset.uri)]
    except UnsupportedError:
        raise NotApplicable("presign is not declared") from None
    with suppress(UnsupportedError):
        urls.append(await store.presign(asset.ref, expires_s=60, filename="a + b ä.bin"))
    for url in urls:
        same(await asyncio.to_thread(fetch, url), b"presigned", "the bytes behind the URL")
