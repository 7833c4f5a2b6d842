"""`commit_planned` for stores that cannot run a plan under their lock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from crux_workspace.model.pausing import jitter_s
from crux_workspace.storage.records import (
    Committed,
    Contains,
    Page,
    Plan,
    PreconditionFailed,
    Record,
)

if TYPE_CHECKING:
    from crux_workspace.storage.records import RecordStore

__all__ = ["MAX_PLANS", "PartitionReader", "commit_replanned", "replanned"]

MAX_PLANS = 10
_FIRST_PAUSE_S = 0.004
_LONGEST_PAUSE_S = 2.0


class PartitionReader:
    """A `Reader` over one partition of a store."""

    __slots__ = ("_partition", "_store")

    def __init__(self, store: RecordStore, partition: str) -> None:
        self._store = store
        self._partition = partition

    def get_many(
        self, keys: Sequence[str], *, bodies: bool = True
    ) -> Coroutine[Any, Any, list[Record | None]]:
        """See `RecordStore.get_many`."""
        return self._store.get_many(self._partition, keys, bodies=bodies)

    def scan(
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
    ) -> Coroutine[Any, Any, Page]:
        """See `RecordStore.scan`."""
        return self._store.scan(
            self._partition,
            prefix,
            after=after,
            before=before,
            reverse=reverse,
            limit=limit,
            bodies=bodies,
            delimiter=delimiter,
            filter=filter,
        )


async def commit_replanned(store: RecordStore, partition: str, plan: Plan) -> Committed:
    """Plan, commit, and plan again when the batch was refused; see `replanned`."""
    reader = PartitionReader(store, partition)

    async def once() -> Committed:
        return await store.commit(partition, await plan(reader))

    return await replanned(once)


async def replanned(
    once: Callable[[], Awaitable[Committed]], attempts: int = MAX_PLANS
) -> Committed:
    """Plan and commit by `once`, and again while it is refused: at most `attempts` times, pausing with jitter.

    Raises:
        PreconditionFailed: The last refusal, when every attempt was refused.
    """
    for attempt in range(1, attempts + 1):
        try:
            return await once()
        except PreconditionFailed:
            if attempt == attempts:
                raise
            await asyncio.sleep(jitter_s(attempt, first_s=_FIRST_PAUSE_S, most_s=_LONGEST_PAUSE_S))
    raise AssertionError("unreachable")
