"""Wrappers that hand every call on to an inner store; the doubles override what they watch or break."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from crux_workspace.storage.assets import (
    AbortsStaleUploads,
    AssetPage,
    AssetStore,
    PutOptions,
    StoredAsset,
)
from crux_workspace.storage.capabilities import StoreCapabilities
from crux_workspace.storage.records import (
    Batch,
    Committed,
    Contains,
    NotifyingRecordStore,
    Page,
    PartitionPage,
    Plan,
    Reader,
    Record,
    RecordStore,
)

__all__ = ["DelegatingAssetStore", "DelegatingReader", "DelegatingRecordStore"]


class DelegatingRecordStore:
    """A record store that is another one: every call goes to `inner`.

    A plan handed to `commit_planned` gets its reader from `plan_reader`, so a wrapper sees the reads made under the inner
    store's lock too. What a wrapper does there must not wait: such a plan may be driven on another thread.
    """

    def __init__(self, inner: RecordStore) -> None:
        self.inner = inner

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    @property
    def capabilities(self) -> StoreCapabilities:
        """See `RecordStore.capabilities`."""
        return self.inner.capabilities

    def plan_reader(self, reader: Reader) -> Reader:
        """Return the reader that a plan gets in place of the inner store's own."""
        return reader

    async def get_many(
        self, partition: str, keys: Sequence[str], *, bodies: bool = True
    ) -> list[Record | None]:
        """See `RecordStore.get_many`."""
        return await self.inner.get_many(partition, keys, bodies=bodies)

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
        return await self.inner.scan(
            partition,
            prefix,
            after=after,
            before=before,
            reverse=reverse,
            limit=limit,
            bodies=bodies,
            delimiter=delimiter,
            filter=filter,
        )

    async def commit(self, partition: str, batch: Batch) -> Committed:
        """See `RecordStore.commit`."""
        return await self.inner.commit(partition, batch)

    async def commit_planned(self, partition: str, plan: Plan) -> Committed:
        """See `RecordStore.commit_planned`."""

        async def watched(reader: Reader) -> Batch:
            return await plan(self.plan_reader(reader))

        return await self.inner.commit_planned(partition, watched)

    async def sequences(self, partitions: Sequence[str]) -> list[int]:
        """See `RecordStore.sequences`."""
        return await self.inner.sequences(partitions)

    async def partitions(
        self, prefix: str, *, after: str | None = None, limit: int
    ) -> PartitionPage:
        """See `RecordStore.partitions`."""
        return await self.inner.partitions(prefix, after=after, limit=limit)

    async def drop(self, partition: str) -> None:
        """See `RecordStore.drop`."""
        await self.inner.drop(partition)

    def listen(self, partition: str, heard: Callable[[int], None]) -> Callable[[], None]:
        """See `NotifyingRecordStore.listen`; only asked where `notify` is declared."""
        if not isinstance(self.inner, NotifyingRecordStore):
            raise NotImplementedError
        return self.inner.listen(partition, heard)

    async def aclose(self) -> None:
        """See `RecordStore.aclose`."""
        await self.inner.aclose()


class DelegatingReader:
    """A plan's reader that is another one."""

    def __init__(self, inner: Reader) -> None:
        self.inner = inner

    async def get_many(self, keys: Sequence[str], *, bodies: bool = True) -> list[Record | None]:
        """See `RecordStore.get_many`."""
        return await self.inner.get_many(keys, bodies=bodies)

    async def scan(
        self,
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
        return await self.inner.scan(
            prefix,
            after=after,
            before=before,
            reverse=reverse,
            limit=limit,
            bodies=bodies,
            delimiter=delimiter,
            filter=filter,
        )


class DelegatingAssetStore:
    """An asset store that is another one: every call goes to `inner`."""

    def __init__(self, inner: AssetStore) -> None:
        self.inner = inner

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        """See `AssetStore.put`."""
        return await self.inner.put(data, options)

    async def get(self, ref: str) -> bytes:
        """See `AssetStore.get`."""
        return await self.inner.get(ref)

    def stream(self, ref: str, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """See `AssetStore.stream`."""
        return self.inner.stream(ref, offset, length)

    async def delete(self, ref: str) -> None:
        """See `AssetStore.delete`."""
        await self.inner.delete(ref)

    async def list(self, prefix: str, *, after: str | None = None, limit: int) -> AssetPage:
        """See `AssetStore.list`."""
        return await self.inner.list(prefix, after=after, limit=limit)

    async def abort_stale_uploads(self, *, older_than_ms: int) -> int:
        """See `AbortsStaleUploads`; nothing to do where the inner store leaves nothing behind."""
        if not isinstance(self.inner, AbortsStaleUploads):
            return 0
        return await self.inner.abort_stale_uploads(older_than_ms=older_than_ms)

    async def aclose(self) -> None:
        """See `AssetStore.aclose`."""
        await self.inner.aclose()
