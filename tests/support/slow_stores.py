"""Stores whose every call is really awaited: before its effect and after it, the loop turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

from crux_workspace.storage.assets import AssetPage, PutOptions, StoredAsset
from crux_workspace.storage.records import Batch, Committed, Contains, Page, Record, RecordStore
from crux_workspace.testing import CommitOnlyRecordStore, DelegatingAssetStore

__all__ = ["Gaps", "TurningAssetStore", "TurningRecordStore"]

T = TypeVar("T")
Gap = Callable[[], Awaitable[None]]


async def turn() -> None:
    """Let the loop turn once."""
    await asyncio.sleep(0)


async def _around(gap: Gap, call: Callable[[], Awaitable[T]]) -> T:
    await gap()
    result = await call()
    await gap()
    return result


class Gaps:
    """Counts the gaps between store calls and does something in one of them."""

    def __init__(self, number: int | None, what: Gap) -> None:
        self.number = number
        self.what = what
        self.count = 0

    async def __call__(self) -> None:
        """Pass a gap."""
        self.count += 1
        if self.count == self.number:
            await self.what()


class TurningRecordStore(CommitOnlyRecordStore):
    """Passes a gap before and after each read, those of plans included, and each commit."""

    def __init__(self, inner: RecordStore, gap: Gap = turn) -> None:
        super().__init__(inner)
        self.gap = gap

    async def get_many(
        self, partition: str, keys: Sequence[str], *, bodies: bool = True
    ) -> list[Record | None]:
        """See `RecordStore.get_many`."""
        read = super().get_many
        return await _around(self.gap, lambda: read(partition, keys, bodies=bodies))

    async def scan(
        self,
        partition: str,
        prefix: str,
        *,
        after: str | None = None,
        before: str | None = None,
        reverse: bool = False,
        limit: int,
        bodies: bool = False,
        delimiter: str | None = None,
        filter: Contains | None = None,
    ) -> Page:
        """See `RecordStore.scan`."""
        read = super().scan
        return await _around(
            self.gap,
            lambda: read(
                partition,
                prefix,
                after=after,
                before=before,
                reverse=reverse,
                limit=limit,
                bodies=bodies,
                delimiter=delimiter,
                filter=filter,
            ),
        )

    async def commit(self, partition: str, batch: Batch) -> Committed:
        """See `RecordStore.commit`."""
        return await _around(self.gap, lambda: self.inner.commit(partition, batch))


class TurningAssetStore(DelegatingAssetStore):
    """Lets the loop turn before and after each call."""

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        """See `AssetStore.put`."""
        return await _around(turn, lambda: self.inner.put(data, options))

    async def get(self, ref: str) -> bytes:
        """See `AssetStore.get`."""
        return await _around(turn, lambda: self.inner.get(ref))

    async def delete(self, ref: str) -> None:
        """See `AssetStore.delete`."""
        await _around(turn, lambda: self.inner.delete(ref))

    async def list(self, prefix: str, *, after: str | None = None, limit: int) -> AssetPage:
        """See `AssetStore.list`."""
        return await _around(turn, lambda: self.inner.list(prefix, after=after, limit=limit))
