"""Stand-ins for tests: stores that count, delay or re-plan, a clock and an id source that do as they are told.

The stores that count are in `crux_workspace.testing.counting`, those that fail on purpose in `crux_workspace.testing.faults`; their
names are here too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

from crux_workspace.storage.capabilities import StoreCapabilities
from crux_workspace.storage.planning import commit_replanned
from crux_workspace.storage.records import (
    Batch,
    Committed,
    Contains,
    Page,
    Plan,
    Reader,
    Record,
    RecordStore,
)
from crux_workspace.testing.counting import CountingAssetStore, CountingRecordStore
from crux_workspace.testing.delegating import DelegatingRecordStore
from crux_workspace.testing.faults import FaultyAssetStore, FaultyRecordStore

__all__ = [
    "CommitOnlyRecordStore",
    "CountingAssetStore",
    "CountingRecordStore",
    "FaultyAssetStore",
    "FaultyRecordStore",
    "FixedClock",
    "LatencyRecordStore",
    "SequentialIds",
]


class CommitOnlyRecordStore(DelegatingRecordStore):
    """A store that knows no lock to plan under: it re-plans with `commit_replanned`.

    Attributes:
        between: Awaited between each plan and its commit; the place for an interfering writer. It may be set at any time.
    """

    def __init__(
        self, inner: RecordStore, *, between: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        super().__init__(inner)
        self.between = between

    @property
    def capabilities(self) -> StoreCapabilities:
        """Those of the inner store, without `plans_under_lock`."""
        return replace(self.inner.capabilities, plans_under_lock=False)

    async def commit_planned(self, partition: str, plan: Plan) -> Committed:
        """Plan, let `between` interfere, commit; plan again when refused."""

        async def interrupted(reader: Reader) -> Batch:
            batch = await plan(self.plan_reader(reader))
            if self.between is not None:
                await self.between()
            return batch

        return await commit_replanned(self, partition, interrupted)


class LatencyRecordStore(CommitOnlyRecordStore):
    """Makes each call take at least `delay_ms`, like a store across a network.

    Plans are not run under a lock, so each of their reads, and the commit, takes its own time.
    """

    def __init__(self, inner: RecordStore, *, delay_ms: float = 1.0) -> None:
        super().__init__(inner)
        self.delay_ms = delay_ms

    async def _wait(self) -> None:
        await asyncio.sleep(self.delay_ms / 1000)

    async def get_many(
        self, partition: str, keys: Sequence[str], *, bodies: bool = True
    ) -> list[Record | None]:
        """See `RecordStore.get_many`."""
        await self._wait()
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
        await self._wait()
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
        await self._wait()
        return await super().commit(partition, batch)

    async def sequences(self, partitions: Sequence[str]) -> list[int]:
        """See `RecordStore.sequences`."""
        await self._wait()
        return await super().sequences(partitions)


@dataclass(slots=True)
class FixedClock:
    """A clock that stands still until it is told otherwise."""

    now: int = 1_700_000_000_000
    """ms since the epoch; may be set, backwards too."""

    def __call__(self) -> int:
        """Return the time."""
        return self.now

    def advance(self, ms: int) -> int:
        """Move on by `ms` and return the new time."""
        self.now += ms
        return self.now


class SequentialIds:
    """An id source that counts: 32 hex digits each, from 1."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self) -> str:
        """Return the next id."""
        return f"{next(self._numbers):032x}"
