"""Asset stores that are wrong; part of `crux_workspace.testing.gallery`."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from urllib.parse import unquote

from crux_workspace.storage.assets import (
    AssetNotFound,
    AssetPage,
    AssetTooLarge,
    PutOptions,
    StoredAsset,
)
from crux_workspace.storage.memory import MemoryAssetStore

__all__ = [
    "DecodesKeys",
    "DeletesAllButTheLast",
    "DeletesOnce",
    "FailsBeyondTheEnd",
    "ForgetsLastListing",
    "HashesLastChunk",
    "IgnoresMaxBytes",
    "KeepsBrokenStreams",
    "KeepsCancelledPuts",
    "LengthIsTheEnd",
    "ListsFoldersOnly",
    "MissingIsEmpty",
    "MissingIsKeyError",
    "ReadsStreamsWhole",
    "SharesEqualBytes",
    "StreamsInOnePiece",
]


class _KeepsParts(MemoryAssetStore):
    """Keeps what arrived when a stream ends in `ending`."""

    ending: type[BaseException] = Exception

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        if isinstance(data, bytes):
            return await super().put(data, options)
        parts = bytearray()
        try:
            async for chunk in data:
                parts += chunk
        except self.ending:
            await super().put(bytes(parts), options)
            raise
        return await super().put(bytes(parts), options)


class KeepsBrokenStreams(_KeepsParts):
    """Leaves the part of a stream that came before it broke."""


class KeepsCancelledPuts(_KeepsParts):
    """Leaves the part of a stream that came before the put was cancelled."""

    ending = asyncio.CancelledError


class IgnoresMaxBytes(MemoryAssetStore):
    """Takes assets of any size."""

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        """Forget the ceiling."""
        return await super().put(data, replace(options, max_bytes=None))


class ReadsStreamsWhole(MemoryAssetStore):
    """Judges the size of a stream when it has all of it."""

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        """Read first, judge then."""
        if not isinstance(data, bytes):
            size = 0
            parts: list[bytes] = []
            async for chunk in data:
                size += len(chunk)
                parts.append(chunk)
            if options.max_bytes is not None and size > options.max_bytes:
                raise AssetTooLarge(options.max_bytes)
            data = b"".join(parts)
        return await super().put(data, options)


class DecodesKeys(MemoryAssetStore):
    """Undoes the percent-encoding of keys."""

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        """Decode the key."""
        return await super().put(data, replace(options, key=unquote(options.key)))


class SharesEqualBytes(MemoryAssetStore):
    """Stores equal bytes once, so one delete takes both."""

    def __init__(self) -> None:
        super().__init__()
        self._by_digest: dict[str, StoredAsset] = {}

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        """Return an asset that is there already."""
        asset = await super().put(data, options)
        return self._by_digest.setdefault(asset.sha256, asset)


class HashesLastChunk(MemoryAssetStore):
    """Tells the hash of a stream's last chunk."""

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        """Forget the earlier chunks."""
        asset = await super().put(data, options)
        if isinstance(data, bytes):
            return asset
        tail = (await self.get(asset.ref))[-1:]
        return replace(asset, sha256=hashlib.sha256(tail).hexdigest())


class MissingIsKeyError(MemoryAssetStore):
    """Lets its dictionary's error out."""

    async def get(self, ref: str) -> bytes:
        """Do not translate the error."""
        return self._assets[ref][0]


class MissingIsEmpty(MemoryAssetStore):
    """Streams nothing for an asset that is not there."""

    async def stream(
        self, ref: str, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """Swallow the error."""
        try:
            async for chunk in super().stream(ref, offset, length):
                yield chunk
        except AssetNotFound:
            return


class FailsBeyondTheEnd(MemoryAssetStore):
    """Takes an offset beyond the end for an error."""

    async def stream(
        self, ref: str, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """Judge the offset."""
        if offset > len(await self.get(ref)):
            message = "the range cannot be satisfied"
            raise ValueError(message)
        async for chunk in super().stream(ref, offset, length):
            yield chunk


class LengthIsTheEnd(MemoryAssetStore):
    """Takes the length of a range for its end."""

    async def stream(
        self, ref: str, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """Mistake the length."""
        end = length if length is None else max(0, length - offset)
        async for chunk in super().stream(ref, offset, end):
            yield chunk


class StreamsInOnePiece(MemoryAssetStore):
    """Reads an asset whole to stream it."""

    async def stream(
        self, ref: str, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """Yield one chunk."""
        data = await self.get(ref)
        piece = data[offset:] if length is None else data[offset : offset + length]
        if piece:
            yield piece


class DeletesOnce(MemoryAssetStore):
    """Takes a second delete for an error."""

    async def delete(self, ref: str) -> None:
        """Insist that the asset is there."""
        await self.get(ref)
        await super().delete(ref)


class ForgetsLastListing(MemoryAssetStore):
    """Ends a listing before a short page."""

    async def list(self, prefix: str, *, after: str | None = None, limit: int) -> AssetPage:
        """Drop `next` before a short page."""
        page = await super().list(prefix, after=after, limit=limit)
        rest = await super().list(prefix, after=page.next, limit=limit)
        return page if len(rest.assets) == limit else replace(page, next=None)


class ListsFoldersOnly(MemoryAssetStore):
    """Takes a prefix for a folder."""

    async def list(self, prefix: str, *, after: str | None = None, limit: int) -> AssetPage:
        """Add the slash that was not there."""
        return await super().list(prefix.rstrip("/") + "/", after=after, limit=limit)


class DeletesAllButTheLast(MemoryAssetStore):
    """Forgets the last of many."""

    async def delete_many(self, refs: Sequence[str]) -> None:
        """Delete the others."""
        for ref in refs[:-1]:
            await self.delete(ref)
