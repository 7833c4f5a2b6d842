"""The asset store contract: where bytes live that are too large, or not text, for a record."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

__all__ = [
    "AssetInfo",
    "AssetNotFound",
    "AssetPage",
    "AssetStore",
    "AssetTooLarge",
    "PutOptions",
    "StoredAsset",
]


class AssetNotFound(Exception):
    """There is no asset with this ref."""


class AssetTooLarge(Exception):
    """The bytes passed `PutOptions.max_bytes`; nothing was kept."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit


@dataclass(frozen=True, slots=True, kw_only=True)
class PutOptions:
    """How to store one asset."""

    key: str
    """Physical key, unique per put: percent-encoded segments separated by ``/``; its last segment is 32 hex digits."""
    mime_type: str
    max_bytes: int | None = None
    """Refuse (`AssetTooLarge`) as soon as more bytes than this arrived."""


@dataclass(frozen=True, slots=True)
class StoredAsset:
    """One stored asset. `ref` is opaque to the engine and stable for the store's lifetime."""

    ref: str
    uri: str
    """Where a person would look for it; carries no credentials."""
    size: int
    sha256: str
    created_at: int
    """ms since the epoch."""


@dataclass(frozen=True, slots=True)
class AssetInfo:
    """What a listing tells of an asset."""

    ref: str
    size: int
    created_at: int


@dataclass(frozen=True, slots=True)
class AssetPage:
    """One page of a listing, ordered by ref."""

    assets: list[AssetInfo]
    next: str | None = None


@runtime_checkable
class AssetStore(Protocol):
    """Immutable bytes by ref. A put is wholly there or absent; bytes never change after a put."""

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        """Store the bytes; a stream is stored in constant memory, and one that breaks leaves nothing behind (A-010)."""
        ...

    async def get(self, ref: str) -> bytes:
        """Return all bytes, or raise `AssetNotFound`."""
        ...

    def stream(self, ref: str, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """Iterate over a range of the bytes in chunks, in constant memory; `AssetNotFound` at the first step."""
        ...

    async def delete(self, ref: str) -> None:
        """Delete the bytes; an absent ref is no error."""
        ...

    async def list(self, prefix: str, *, after: str | None = None, limit: int) -> AssetPage:
        """List assets whose put key starts with `prefix`, by ref."""
        ...

    async def aclose(self) -> None:
        """Release what this store opened; idempotent."""
        ...
