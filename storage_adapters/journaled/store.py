"""A record store over a minimal one."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import TracebackType
from typing import TypeVar

from crux_workspace.errors import ErrorCode, StateError, StorageError
from crux_workspace.storage.capabilities import StoreCapabilities
from crux_workspace.storage.layout import check_size
from crux_workspace.storage.minimal import CreatingStore
from crux_workspace.storage.planning import commit_replanned
from crux_workspace.storage.records import (
    Batch,
    BatchTooLarge,
    Committed,
    Contains,
    Page,
    PartitionPage,
    Plan,
    Record,
)
from storage_adapters.journaled.entries import Entry, size_of
from storage_adapters.journaled.forward import roll_forward
from storage_adapters.journaled.journal import Journal
from storage_adapters.journaled.judging import end_entry, make_entry
from storage_adapters.journaled.keys import PartitionKeys
from storage_adapters.journaled.owner import SoleProcess
from storage_adapters.journaled.snapshot import Snapshot
from storage_adapters.journaled.tree import Gone, gathered

__all__ = ["JournaledRecordStore"]

T = TypeVar("T")

_JOURNALS = 512
_RELOADS = 20
_LISTED = 1_000
_log = logging.getLogger("crux_workspace")


class JournaledRecordStore:
    """A `RecordStore` over a minimal store; `journaled` makes it.

    Per commit: one get that looks for newer entries, the nodes that are not held yet, and one create; now and then a checkpoint.
    """

    def __init__(
        self,
        store: CreatingStore,
        prefix: str,
        capabilities: StoreCapabilities,
        max_value_bytes: int | None,
    ) -> None:
        """Use `journaled`."""
        self._store = store
        self._prefix = prefix
        self._capabilities = capabilities
        self._max_value_bytes = max_value_bytes
        self._journals: OrderedDict[str, Journal] = OrderedDict()
        self._named: set[str] = set()
        self._at_work: set[asyncio.Task[object]] = set()
        self._closed = False

    def __repr__(self) -> str:
        return f"JournaledRecordStore({type(self._store).__name__})"

    @property
    def capabilities(self) -> StoreCapabilities:
        """See `RecordStore.capabilities`."""
        return self._capabilities

    async def __aenter__(self) -> JournaledRecordStore:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def get_many(
        self, partition: str, keys: Sequence[str], *, bodies: bool = True
    ) -> list[Record | None]:
        """See `RecordStore.get_many`."""

        async def look(snapshot: Snapshot) -> list[Record | None]:
            rows = await snapshot.rows(keys)
            return await snapshot.records([rows[key] for key in keys], bodies=bodies)

        return await self._on_snapshot(partition, look)

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
        """See `RecordStore.scan`; the filter is left to the reader."""
        del filter
        return await self._on_snapshot(
            partition,
            lambda snapshot: snapshot.scan(
                prefix,
                after=after,
                before=before,
                reverse=reverse,
                limit=limit,
                bodies=bodies,
                delimiter=delimiter,
            ),
        )

    async def commit(self, partition: str, batch: Batch) -> Committed:
        """See `RecordStore.commit`."""
        check_size(batch, self._capabilities)
        identity = secrets.token_hex(8)
        taken = _Taken()
        while True:

            async def make(snapshot: Snapshot) -> tuple[int, Entry]:
                return snapshot.position + 1, await make_entry(snapshot, batch, identity)

            position, entry = await self._on_snapshot(partition, make)
            if self._max_value_bytes is not None:
                size = size_of(entry)
                if size > self._max_value_bytes:
                    raise BatchTooLarge("bytes", size, self._max_value_bytes)
            if await self._publish(partition, position, entry):
                return Committed(entry.sequence, entry.at)
            await taken.again(position)

    async def commit_planned(self, partition: str, plan: Plan) -> Committed:
        """See `RecordStore.commit_planned`."""
        return await commit_replanned(self, partition, plan)

    async def sequences(self, partitions: Sequence[str]) -> list[int]:
        """See `RecordStore.sequences`; one get a partition."""

        async def sequence(snapshot: Snapshot) -> int:
            return snapshot.sequence

        return await gathered([partial(self._on_snapshot, p, sequence) for p in partitions])

    async def partitions(
        self, prefix: str, *, after: str | None = None, limit: int
    ) -> PartitionPage:
        """See `RecordStore.partitions`; reads the names of all partitions."""
        self._check()
        names: set[str] = set()
        cursor: str | None = None
        while True:
            page = await self._store.list(f"{self._prefix}name/", limit=_LISTED, cursor=cursor)
            names.update(str(value.get("name")) for _, value in page.entries)
            if page.cursor is None:
                break
            cursor = page.cursor
        wanted = sorted(n for n in names if n.startswith(prefix) and (after is None or n > after))
        found: list[str] = []
        for start in range(0, len(wanted), limit + 1):
            chunk = wanted[start : start + limit + 1]
            living = await self.sequences(chunk)
            found += [name for name, sequence in zip(chunk, living, strict=True) if sequence]
            if len(found) > limit:
                return PartitionPage(found[:limit], found[limit - 1] if limit else None)
        return PartitionPage(found)

    async def drop(self, partition: str) -> None:
        """See `RecordStore.drop`: one create; then the partition's records are removed."""
        taken = _Taken()
        while True:

            async def make(snapshot: Snapshot) -> tuple[int, Entry] | None:
                if snapshot.meta is None:
                    return None
                return snapshot.position + 1, end_entry(snapshot, secrets.token_hex(8))

            ending = await self._on_snapshot(partition, make)
            if ending is None:
                await self._forward(self._journal(partition))
                return
            if await self._publish(partition, *ending):
                return
            await taken.again(ending[0])

    async def aclose(self) -> None:
        """See `RecordStore.aclose`; the minimal store stays open."""
        self._closed = True
        if self._at_work:
            await asyncio.wait(self._at_work)
        if isinstance(self._store, SoleProcess):
            await self._store.aclose()

    async def _publish(self, partition: str, position: int, entry: Entry) -> bool:
        """Write an entry in a task that `aclose` waits for; whether it is ours."""
        task = asyncio.get_running_loop().create_task(
            self._write(partition, self._journal(partition), position, entry)
        )
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    async def _write(self, partition: str, journal: Journal, position: int, entry: Entry) -> bool:
        if partition not in self._named:
            await self._store.put(journal.keys.name(), {"name": partition})
            self._named.add(partition)
        if not await journal.publish(position, entry):
            return False
        journal.learn(position, entry)
        await self._forward(journal)
        return True

    async def _forward(self, journal: Journal) -> None:
        """Make the checkpoints that are due; the commit that is made stands in any case, and the next one tries again."""
        try:
            await roll_forward(journal)
        except Exception as error:
            _log.warning("a checkpoint was not made (%s); it is tried again", type(error).__name__)

    async def _on_snapshot(self, partition: str, look: Callable[[Snapshot], Awaitable[T]]) -> T:
        """Look at the partition as it is now; again when what was looked at has been replaced meanwhile."""
        self._check()
        journal = self._journal(partition)
        for attempt in range(_RELOADS):
            snapshot = await journal.current()
            try:
                return await look(snapshot)
            except Gone:
                journal.forget()
                await asyncio.sleep(0.01 * attempt)
        raise StorageError(
            "Records are gone from the store that its last checkpoint refers to; restore it from a backup.",
            code=ErrorCode.RECORD_CORRUPT,
        )

    def _journal(self, partition: str) -> Journal:
        journal = self._journals.get(partition)
        if journal is None:
            keys = PartitionKeys.of(self._prefix, partition)
            journal = self._journals[partition] = Journal(self._store, keys)
            if len(self._journals) > _JOURNALS:
                self._journals.popitem(last=False)
        self._journals.move_to_end(partition)
        return journal

    def _check(self) -> None:
        if self._closed:
            raise StateError(
                "The record store is closed; make another one.", code=ErrorCode.WORKSPACE_CLOSED
            )


class _Taken:
    """Counts how often a position was taken that nobody has written to."""

    def __init__(self) -> None:
        self._position = 0
        self._times = 0

    async def again(self, position: int) -> None:
        """Note that a position is taken; whoever took it shows with the next read.

        Raises:
            StorageError: It never does.
        """
        self._times = self._times + 1 if position == self._position else 0
        self._position = position
        if self._times >= _RELOADS:
            raise StorageError(
                "The store says that a journal entry is there, and returns none; certify it with check_minimal_store."
            )
        await asyncio.sleep(0.005 * self._times)
