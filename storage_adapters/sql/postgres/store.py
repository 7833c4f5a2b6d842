"""Records in a PostgreSQL database, shared by any number of processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from crux_workspace.storage.ending import Ending
from crux_workspace.storage.failures import closed_error
from crux_workspace.storage.records import (
    Batch,
    Committed,
    Contains,
    Page,
    PartitionPage,
    Plan,
    Record,
)
from storage_adapters.sql.postgres import reading
from storage_adapters.sql.postgres.address import parse
from storage_adapters.sql.postgres.committing import CAPABILITIES
from storage_adapters.sql.postgres.database import Database, Query
from storage_adapters.sql.postgres.sweeping import Sweeper
from storage_adapters.sql.postgres.texts import Texts
from storage_adapters.sql.postgres.versions import check_version
from storage_adapters.sql.postgres.waking import Waker
from storage_adapters.sql.postgres.writing import Writer

__all__ = ["PostgresRecordStore"]


class PostgresRecordStore:
    """A `RecordStore` over one schema of a PostgreSQL database.

    A commit is planned by what the store knows or by plain reads, and judged by a function of the database under the namespace's
    lock: one round trip, which commits to several namespaces share. Who is refused again and again plans while it holds the lock, so
    nobody starves. A store belongs to the process and the loop that opened it.
    """

    capabilities = CAPABILITIES

    def __init__(self, database: Database) -> None:
        """Use `open`, or share a database that is open."""
        self._database = database.enter()
        self._waker = Waker(database)
        self._sweeper = Sweeper(database)
        self._writer = Writer(database)
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._ending = Ending()

    def __repr__(self) -> str:
        state = "closed" if self._ending.has_begun else "open"
        return f"PostgresRecordStore({self._database.address.shown!r}, {state})"

    @property
    def database(self) -> Database:
        """The connections, for stores that share them."""
        return self._database

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect to a database whose schema is up to date.

        Args:
            url: ``postgresql://…``; see `docs/deploy.md` for its options.

        Raises:
            StorageError: The server cannot be reached, or refuses (``STORE_UNAVAILABLE``).
            StateError: The database was not migrated, or by a version that this one cannot work with (``SCHEMA_OUT_OF_DATE``).
        """
        database = Database(parse(url))
        store = cls(database)
        try:
            if await check_version(database):
                store._sweeper.start()
        except BaseException:
            await store.aclose()
            raise
        return store

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    # -- reads

    async def get_many(
        self, partition: str, keys: Sequence[str], *, bodies: bool = True
    ) -> list[Record | None]:
        """See `RecordStore.get_many`; one statement, so one snapshot."""
        texts = self._reading()
        return await self._database.read(
            lambda: reading.get_many(texts, partition, keys, bodies=bodies)
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
        texts = self._reading()

        def query() -> Query[Page]:
            return reading.scan(
                texts,
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

        return await self._database.read(query)

    async def sequences(self, partitions: Sequence[str]) -> list[int]:
        """See `RecordStore.sequences`."""
        texts = self._reading()
        return await self._database.read(lambda: reading.sequences(texts, partitions))

    async def partitions(
        self, prefix: str, *, after: str | None = None, limit: int
    ) -> PartitionPage:
        """See `RecordStore.partitions`."""
        texts = self._reading()
        return await self._database.read(
            lambda: reading.find_partitions(texts, prefix, after=after, limit=limit)
        )

    # -- commits

    async def commit(self, partition: str, batch: Batch) -> Committed:
        """See `RecordStore.commit`; one round trip."""
        with self._flying():
            return self._told(partition, await self._writer.commit(partition, batch))

    async def commit_planned(self, partition: str, plan: Plan) -> Committed:
        """See `RecordStore.commit_planned`; the first plans run outside the lock, later ones under it."""
        with self._flying():
            return self._told(partition, await self._writer.commit_planned(partition, plan))

    async def drop(self, partition: str) -> None:
        """See `RecordStore.drop`; its rows are deleted in the background."""
        with self._flying():
            await self._database.change(self._database.texts.drop, (partition,))
        self._writer.forget(partition)
        self._waker.tell(partition, 0)
        self._sweeper.start()

    # -- word of commits

    def listen(self, partition: str, heard: Callable[[int], None]) -> Callable[[], None]:
        """See `NotifyingRecordStore.listen`."""
        self._reading()
        return self._waker.listen(partition, heard)

    async def aclose(self) -> None:
        """See `RecordStore.aclose`. In a forked child it does nothing: what is open belongs to the parent.

        Whoever is cancelled meanwhile only does not wait for the end.
        """
        if self._database.is_elsewhere or self._ending.is_over:
            return
        self._database.check_loop()
        await self._ending.reach(self._end)

    async def _end(self) -> None:
        await self._idle.wait()
        await self._writer.aclose()
        await self._sweeper.aclose()
        await self._waker.aclose()
        await self._database.leave()

    def _reading(self) -> Texts:
        if self._ending.has_begun:
            raise closed_error()
        self._database.check()
        return self._database.texts

    @contextmanager
    def _flying(self) -> Iterator[None]:
        """Have `aclose` wait for the block."""
        self._reading()
        self._in_flight += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    def _told(self, partition: str, committed: Committed) -> Committed:
        self._waker.tell(partition, committed.sequence)
        return committed
