"""What the asset checks work with: keys under a fresh prefix, sources of bytes, listings read whole."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

from crux_workspace.storage.assets import AssetInfo, AssetStore, PutOptions, StoredAsset
from crux_workspace.testing.checks import Checks, Fresh, holds, same

__all__ = [
    "ASSET_CHECKS",
    "FreshAssets",
    "chunks",
    "joined",
    "keep",
    "listed",
    "options",
    "payload",
    "shelf",
]

FreshAssets = Fresh[AssetStore]
ASSET_CHECKS: Checks[AssetStore] = Checks()


def shelf(fresh: FreshAssets) -> str:
    """Return a fresh key prefix that ends with a slash."""
    return f"{fresh.name()}/"


def options(prefix: str, *, max_bytes: int | None = None) -> PutOptions:
    """Return put options with a key that nobody used."""
    return PutOptions(
        key=prefix + secrets.token_hex(16),
        mime_type="application/octet-stream",
        max_bytes=max_bytes,
    )


def payload(size: int, *, seed: int = 0) -> bytes:
    """Return bytes in which a misplaced piece shows."""
    words = range(seed, seed + size // 4 + 1)
    return b"".join(n.to_bytes(4, "big") for n in words)[:size]


async def chunks(data: bytes, size: int) -> AsyncIterator[bytes]:
    """Stream `data` in chunks, an empty one among them."""
    for start in range(0, len(data), size):
        yield data[start : start + size]
        if start == 0:
            yield b""


async def joined(store: AssetStore, ref: str, offset: int = 0, length: int | None = None) -> bytes:
    """Read a range through `stream`; every chunk must be bytes."""
    parts: list[bytes] = []
    async for chunk in store.stream(ref, offset, length):
        same(type(chunk), bytes, "type of a chunk")
        parts.append(chunk)
    return b"".join(parts)


async def keep(store: AssetStore, prefix: str, data: bytes) -> StoredAsset:
    """Put bytes under a fresh key."""
    return await store.put(data, options(prefix))


async def listed(
    store: AssetStore, fresh: FreshAssets, prefix: str, *, limit: int = 100
) -> list[AssetInfo]:
    """List everything under a prefix, page by page."""
    await fresh.settle(store)
    found: list[AssetInfo] = []
    after: str | None = None
    for _ in range(1_000):
        page = await store.list(prefix, after=after, limit=limit)
        holds(len(page.assets) <= limit, f"a page of more than {limit} assets")
        found += page.assets
        if page.next is None:
            return found
        holds(page.next != after, "next does not move on")
        after = page.next
    holds(False, "the paging of assets does not end")
    return found
