"""The asset store contract: where bytes live that are too large, or not text, for a record."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

__all__ = [
    "AbortsStaleUploads",
    "AssetInfo",
    "AssetNotFound",
    "AssetPage",
    "AssetStore",
    "AssetTooLarge",
    "DeletesMany",
    "Presigns",
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
    """Physical key, unique per put: percent-encoded segments separated by ``/``, none of them ``.`` or ``..``; the last is 32 hex."""
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
class AbortsStaleUploads(Protocol):
    """What an asset store has as well whose uploads leave something behind when their process dies."""

    async def abort_stale_uploads(self, *, older_than_ms: int) -> int:
        """Remove what is left of uploads that nobody goes on with; return how many.

        Args:
            older_than_ms: An upload of which it is not known whether its process is dead goes when nothing came for so long.
        """
        ...


@runtime_checkable
class AssetStore(Protocol):
    """Immutable bytes by ref. A put is wholly there or absent; bytes never change after a put."""

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        """Store the bytes; a stream is stored in constant memory.

        Must: leave nothing behind of a stream that breaks (A-010) or a put that is cancelled (A-016); keep bytes (A-011) and
        streams (A-012), empty ones too (A-013), under any key (A-040, A-041, A-042), apart from each other (A-022, A-023), and
        tell their size and hash; refuse more than `max_bytes` and keep nothing of it (A-014), of a stream before it ends (A-015).
        """
        ...

    async def get(self, ref: str) -> bytes:
        """Return all bytes, or raise `AssetNotFound` (A-020)."""
        ...

    def stream(self, ref: str, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """Iterate over a range of the bytes in chunks, in constant memory; `AssetNotFound` at the first step.

        Must: give the bytes in pieces (A-030), from `offset` and at most `length` of them (A-031), none beyond the end (A-032);
        raise at the first step, not before (A-033); let itself be left before its end (A-034).
        """
        ...

    async def delete(self, ref: str) -> None:
        """Delete the bytes; an absent ref is no error (A-021)."""
        ...

    async def list(self, prefix: str, *, after: str | None = None, limit: int) -> AssetPage:
        """List assets whose put key starts with `prefix`, by ref.

        Must: tell what the put told (A-050); page each asset once (A-051); take the prefix as it is (A-052); list nothing as one
        empty page (A-053).
        """
        ...

    async def aclose(self) -> None:
        """Release what this store opened; idempotent (A-024)."""
        ...


@runtime_checkable
class DeletesMany(Protocol):
    """An asset store may also delete many assets in few calls; collecting uses it where it is there."""

    async def delete_many(self, refs: Sequence[str]) -> None:
        """Delete the assets, absent ones too (A-025); when it fails, some of them may be left."""
        ...


@runtime_checkable
class Presigns(Protocol):
    """An asset store may also give out URLs that let others read one asset, without credentials, for a while."""

    async def presign(
        self, ref: str, *, expires_s: int = 3_600, filename: str | None = None
    ) -> str:
        """Return a URL whose GET gives the asset's bytes (A-060); whether the asset is there is not asked.

        Args:
            ref: A ref or URI of this store.
            expires_s: How long it is valid.
            filename: The name under which a browser saves it.
        """
        ...
