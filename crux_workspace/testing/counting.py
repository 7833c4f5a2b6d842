"""Stores that count their calls: a cost budget is asserted with them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import AsyncIterator, Sequence

from crux_workspace.storage.assets import AssetPage, AssetStore, PutOptions, StoredAsset
from crux_workspace.storage.records import (
    Batch,
    Committed,
    Contains,
    Page,
    PartitionPage,
    Plan,
    Reader,
    Record,
    RecordStore,
)
from crux_workspace.testing.delegating import (
    DelegatingAssetStore,
    DelegatingReader,
    DelegatingRecordStore,
)

__all__ = ["CountingAssetStore", "CountingRecordStore"]


class _Tally:
    """Counts calls by name; plans may run on other threads, so it locks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def add(self, name: str) -> None:
        with self._lock:
            self._counts[name] += 1

    def reset(self) -> None:
        with self._lock:
            self._counts.clear()

    def copy(self) -> Counter[str]:
        with self._lock:
            return Counter(self._counts)


class CountingRecordStore(DelegatingRecordStore):
    """Counts calls. A read that a plan makes through its reader counts like any other read."""

    def __init__(self, inner: RecordStore) -> None:
        super().__init__(inner)
        self._tally = _Tally()

    @property
    def counts(self) -> Counter[str]:
        """Calls by name since the last reset; ``plan`` counts how often a plan was run."""
        return self._tally.copy()

    @property
    def reads(self) -> int:
        """`get_many` and `scan` calls, those of plans included."""
        counts = self.counts
        return counts["get_many"] + counts["scan"]

    @property
    def commits(self) -> int:
        """`commit` and `commit_planned` calls."""
        counts = self.counts
        return counts["commit"] + counts["commit_planned"]

    def reset(self) -> None:
        """Start from nought."""
        self._tally.reset()

    def plan_reader(self, reader: Reader) -> Reader:
        """Count a run of a plan, and what it reads."""
        self._tally.add("plan")
        return _CountingReader(reader, self._tally)

    async def get_many(
        self, partition: str, keys: Sequence[str], *, bodies: bool = True
    ) -> list[Record | None]:
        """See `RecordStore.get_many`."""
        self._tally.add("get_many")
        return await super().get_many(partition, keys, bodies=bodies)

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
        self._tally.add("scan")
        return await super().scan(
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
        self._tally.add("commit")
        return await super().commit(partition, batch)

    async def commit_planned(self, partition: str, plan: Plan) -> Committed:
        """See `RecordStore.commit_planned`."""
        self._tally.add("commit_planned")
        return await super().commit_planned(partition, plan)

    async def sequences(self, partitions: Sequence[str]) -> list[int]:
        """See `RecordStore.sequences`."""
        self._tally.add("sequences")
        return await super().sequences(partitions)

    async def partitions(
        self, prefix: str, *, after: str | None = None, limit: int
    ) -> PartitionPage:
        """See `RecordStore.partitions`."""
        self._tally.add("partitions")
        return await super().partitions(prefix, after=after, limit=limit)

    async def drop(self, partition: str) -> None:
        """See `RecordStore.drop`."""
        self._tally.add("drop")
        await super().drop(partition)


class _CountingReader(DelegatingReader):
    def __init__(self, inner: Reader, tally: _Tally) -> None:
        super().__init__(inner)
        self._tally = tally

    async def get_many(self, keys: Sequence[str], *, bodies: bool = True) -> list[Record | None]:
        self._tally.add("get_many")
        return await super().get_many(keys, bodies=bodies)

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
        self._tally.add("scan")
        return await super().scan(
            prefix,
            after=after,
            before=before,
            reverse=reverse,
            limit=limit,
            bodies=bodies,
            delimiter=delimiter,
            filter=filter,
        )


class CountingAssetStore(DelegatingAssetStore):
    """Counts calls of an asset store by name."""

    def __init__(self, inner: AssetStore) -> None:
        super().__init__(inner)
        self._tally = _Tally()

    @property
    def counts(self) -> Counter[str]:
        """Calls by name since the last reset."""
        return self._tally.copy()

    def reset(self) -> None:
        """Start from nought."""
        self._tally.reset()

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        """See `AssetStore.put`."""
        self._tally.add("put")
        return await super().put(data, options)

    async def get(self, ref: str) -> bytes:
        """See `AssetStore.get`."""
        self._tally.add("get")
        return await super().get(ref)

    def stream(self, ref: str, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """See `AssetStore.stream`."""
        self._tally.add("stream")
        return super().stream(ref, offset, length)

    async def delete(self, ref: str) -> None:
        """See `AssetStore.delete`."""
        self._tally.add("delete")
        await super().delete(ref)

    async def list(self, prefix: str, *, after: str | None = None, limit: int) -> AssetPage:
        """See `AssetStore.list`."""
        self._tally.add("list")
        return await super().list(prefix, after=after, limit=limit)
