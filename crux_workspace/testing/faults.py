"""Stores that fail on the n-th call, before or after its effect: for sweeps over every call of an operation."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Literal, TypeVar

from crux_workspace.storage.assets import AssetPage, AssetStore, PutOptions, StoredAsset
from crux_workspace.storage.records import (
    Batch,
    Committed,
    Contains,
    OutcomeUnknown,
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

__all__ = ["FaultyAssetStore", "FaultyRecordStore"]

When = Literal["before", "after"]
Fault = Exception | type[Exception]
T = TypeVar("T")


class _Fuse:
    """Numbers calls from 1 and says which one fails."""

    def __init__(
        self, fail_on_call: int | None, when: When, error: Fault | None, *, and_later: bool
    ) -> None:
        self._lock = threading.Lock()
        self._fail_on_call = fail_on_call
        self._and_later = and_later
        self._error = error
        self.when = when
        self.calls: list[str] = []
        self.failed = 0

    def burns(self, name: str) -> bool:
        """Number the call; tell whether it is one that fails."""
        with self._lock:
            self.calls.append(name)
            number, wanted = len(self.calls), self._fail_on_call
            hit = wanted is not None and (number == wanted or (self._and_later and number > wanted))
            self.failed += hit
            return hit

    def error(self, name: str) -> Fault:
        if self._error is not None:
            return self._error
        if name == "commit" and self.when == "after":
            return OutcomeUnknown(f"{name}: the answer was lost")
        return ConnectionError(f"{name}: broken on purpose")

    async def run(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        """Make the call, or fail before or after it; a lost answer hides a refusal too."""
        if not self.burns(name):
            return await call()
        if self.when == "before":
            raise self.error(name)
        try:
            await call()
        except Exception as exc:
            raise self.error(name) from exc
        raise self.error(name)


class FaultyRecordStore(DelegatingRecordStore):
    """Fails one numbered call of a record store.

    Every call has a number, from 1: `get_many`, `scan`, `commit`, `sequences`, `partitions`, `drop`, each read that a plan makes,
    and the commit behind each run of a plan (`commit_planned` itself has none). With ``when="before"`` the call has no effect; with
    ``when="after"`` it has, and the answer is lost: `OutcomeUnknown` for a commit, `ConnectionError` for the rest.

    Attributes:
        calls: Names of the calls so far; a dry run with ``fail_on_call=None`` tells how far to sweep.
        failed: How many calls were failed.
    """

    def __init__(
        self,
        inner: RecordStore,
        *,
        fail_on_call: int | None = None,
        when: When = "before",
        error: Fault | None = None,
        and_later: bool = False,
    ) -> None:
        """Wrap a store.

        Args:
            inner: The store that does the work.
            fail_on_call: Number of the call to fail; None fails none.
            when: Before or after the call's effect.
            error: What to raise instead of the default.
            and_later: Fail every later call as well, like a store that went away.
        """
        super().__init__(inner)
        self._fuse = _Fuse(fail_on_call, when, error, and_later=and_later)

    @property
    def calls(self) -> list[str]:
        """Names of the calls so far."""
        return list(self._fuse.calls)

    @property
    def failed(self) -> int:
        """How many calls were failed."""
        return self._fuse.failed

    def plan_reader(self, reader: Reader) -> Reader:
        """Number what a plan reads."""
        return _FaultyReader(reader, self._fuse)

    async def get_many(
        self, partition: str, keys: Sequence[str], *, bodies: bool = True
    ) -> list[Record | None]:
        """See `RecordStore.get_many`."""
        return await self._fuse.run(
            "get_many", lambda: self.inner.get_many(partition, keys, bodies=bodies)
        )

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
        return await self._fuse.run(
            "scan",
            lambda: self.inner.scan(
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
        return await self._fuse.run("commit", lambda: self.inner.commit(partition, batch))

    async def commit_planned(self, partition: str, plan: Plan) -> Committed:
        """Number the plan's reads, and the commit behind each of its runs."""
        lost = False

        async def numbered(reader: Reader) -> Batch:
            nonlocal lost
            if lost:
                raise self._fuse.error("commit")
            batch = await plan(self.plan_reader(reader))
            if self._fuse.burns("commit"):
                if self._fuse.when == "before":
                    raise self._fuse.error("commit")
                lost = True
            return batch

        try:
            committed = await self.inner.commit_planned(partition, numbered)
        except Exception as exc:
            if lost:
                raise self._fuse.error("commit") from exc
            raise
        if lost:
            raise self._fuse.error("commit")
        return committed

    async def sequences(self, partitions: Sequence[str]) -> list[int]:
        """See `RecordStore.sequences`."""
        return await self._fuse.run("sequences", lambda: self.inner.sequences(partitions))

    async def partitions(
        self, prefix: str, *, after: str | None = None, limit: int
    ) -> PartitionPage:
        """See `RecordStore.partitions`."""
        return await self._fuse.run(
            "partitions", lambda: self.inner.partitions(prefix, after=after, limit=limit)
        )

    async def drop(self, partition: str) -> None:
        """See `RecordStore.drop`."""
        await self._fuse.run("drop", lambda: self.inner.drop(partition))


class _FaultyReader(DelegatingReader):
    def __init__(self, inner: Reader, fuse: _Fuse) -> None:
        super().__init__(inner)
        self._fuse = fuse

    async def get_many(self, keys: Sequence[str], *, bodies: bool = True) -> list[Record | None]:
        return await self._fuse.run("get_many", lambda: self.inner.get_many(keys, bodies=bodies))

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
        return await self._fuse.run(
            "scan",
            lambda: self.inner.scan(
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


class FaultyAssetStore(DelegatingAssetStore):
    """Fails one numbered call of an asset store, before or after its effect; a stream is one call."""

    def __init__(
        self,
        inner: AssetStore,
        *,
        fail_on_call: int | None = None,
        when: When = "before",
        error: Fault | None = None,
        and_later: bool = False,
    ) -> None:
        """Wrap a store; see `FaultyRecordStore`."""
        super().__init__(inner)
        self._fuse = _Fuse(fail_on_call, when, error, and_later=and_later)

    @property
    def calls(self) -> list[str]:
        """Names of the calls so far."""
        return list(self._fuse.calls)

    @property
    def failed(self) -> int:
        """How many calls were failed."""
        return self._fuse.failed

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        """See `AssetStore.put`."""
        return await self._fuse.run("put", lambda: self.inner.put(data, options))

    async def get(self, ref: str) -> bytes:
        """See `AssetStore.get`."""
        return await self._fuse.run("get", lambda: self.inner.get(ref))

    async def stream(
        self, ref: str, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """See `AssetStore.stream`."""
        fails = self._fuse.burns("stream")
        if fails and self._fuse.when == "before":
            raise self._fuse.error("stream")
        async for chunk in self.inner.stream(ref, offset, length):
            yield chunk
        if fails:
            raise self._fuse.error("stream")

    async def delete(self, ref: str) -> None:
        """See `AssetStore.delete`."""
        await self._fuse.run("delete", lambda: self.inner.delete(ref))

    async def list(self, prefix: str, *, after: str | None = None, limit: int) -> AssetPage:
        """See `AssetStore.list`."""
        return await self._fuse.run(
            "list", lambda: self.inner.list(prefix, after=after, limit=limit)
        )
