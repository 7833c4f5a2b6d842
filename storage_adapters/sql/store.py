"""Records in one SQLite file, shared by any number of processes of one machine."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from crux_workspace.errors import StorageError, UnsupportedError
from crux_workspace.storage.failures import closed_error, forked_error, wrong_loop_error
from crux_workspace.storage.records import (
    Batch,
    Committed,
    Contains,
    Page,
    PartitionPage,
    Plan,
    Record,
)
from storage_adapters.sql import reading
from storage_adapters.sql.committing import CAPABILITIES
from storage_adapters.sql.failures import translated
from storage_adapters.sql.opening import Durability, open_connections
from storage_adapters.sql.readers import Readers
from storage_adapters.sql.writer import Writer

__all__ = ["SqliteRecordStore"]

_NEAR_RECORDS = 256
_NEAR_BODIES = 64


class SqliteRecordStore:
    """A `RecordStore` over one SQLite database.

    Commits run in one thread, many to a transaction, each planned and judged under the write lock. Small reads run in place on the
    loop. A store belongs to the process and the loop that opened it; several processes may open the same file.
    """

    capabilities = CAPABILITIES

    def __init__(self, path: Path, writer: Writer, readers: Readers) -> None:
        """Use `open`."""
        self._path = path
        self._writer = writer
        self._readers = readers
        self._loop = writer.loop
        self._pid = os.getpid()
        self._closing = False
        self._finalizer = weakref.finalize(self, writer.abandon)
        self._finalizer.atexit = False

    def __repr__(self) -> str:
        state = "closed" if self._closing else "open"
        return f"SqliteRecordStore({self._path.name!r}, {state})"

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "full",
        create: bool = True,
    ) -> SqliteRecordStore:
        """Open a database, creating it or bringing its schema up to date where needed.

        A file that is no database of this library is left as it is.

        Args:
            path: The database's file; its folder must exist.
            durability: ``full`` makes every acknowledged commit survive a power cut; with ``normal`` the last ones may be lost
                then, but never half of one.
            create: False refuses a missing file.

        Raises:
            StorageError: The file or its folder is missing, cannot be opened (``STORE_UNAVAILABLE``), or is no database of this
                library (``RECORD_CORRUPT``).
            StateError: A newer version of the library wrote the database (``SCHEMA_OUT_OF_DATE``).
        """
        file = Path(path).absolute()  # noqa: ASYNC240 - looks at no file
        writer = Writer(
            lambda: open_connections(file, durability=durability, create=create),
            name=f"crux-writer-{file.name}",
        )
        try:
            connections = await writer.opened()
        except sqlite3.Error as error:
            raise translated(error) from error
        except OSError as error:
            raise StorageError(
                "the database cannot be opened; check its folder's rights"
            ) from error
        return cls(file, writer, Readers(file, connections.reader))

    async def __aenter__(self) -> SqliteRecordStore:
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
        """See `RecordStore.get_many`; one statement in place, so one snapshot."""
        self._check()
        if 0 < len(keys) <= _NEAR_RECORDS:
            asked = reading.asking_for(partition, keys, bodies=bodies)
            if (rows := self._readers.at_once(*asked)) is not None:
                return reading.in_order(keys, rows)
        return await self._readers.far(lambda: reading.get_many(partition, keys, bodies=bodies))

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
        """See `RecordStore.scan`; small pages in place, searches and long pages in a thread."""
        self._check()

        def query() -> reading.Query[Page]:
            return reading.scan(
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

        if filter is not None or limit > (_NEAR_BODIES if bodies else _NEAR_RECORDS):
            return await self._readers.far(query)
        return await self._readers.near(query)

    async def commit(self, partition: str, batch: Batch) -> Committed:
        """See `RecordStore.commit`."""
        self._check()
        return _committed(await self._writer.submit(partition, batch))

    async def commit_planned(self, partition: str, plan: Plan) -> Committed:
        """See `RecordStore.commit_planned`; the plan runs in the writer's thread."""
        self._check()
        return _committed(await self._writer.submit(partition, plan))

    async def sequences(self, partitions: Sequence[str]) -> list[int]:
        """See `RecordStore.sequences`."""
        self._check()
        query = self._readers.near if len(partitions) <= _NEAR_RECORDS else self._readers.far
        return await query(lambda: reading.sequences(partitions))

    async def partitions(
        self, prefix: str, *, after: str | None = None, limit: int
    ) -> PartitionPage:
        """See `RecordStore.partitions`."""
        self._check()
        query = self._readers.near if limit <= _NEAR_RECORDS else self._readers.far
        return await query(lambda: reading.find_partitions(prefix, after=after, limit=limit))

    async def drop(self, partition: str) -> None:
        """See `RecordStore.drop`; one transaction, however large the partition."""
        self._check()
        await self._writer.submit(partition, None)

    async def aclose(self) -> None:
        """See `RecordStore.aclose`. In a forked child it does nothing: what is open belongs to the parent."""
        if os.getpid() != self._pid or (self._closing and not self._finalizer.alive):
            return
        if asyncio.get_running_loop() is not self._loop:
            raise wrong_loop_error()
        self._closing = True
        await self._readers.aclose()
        await self._writer.aclose()
        self._finalizer.detach()

    def _check(self) -> None:
        if os.getpid() != self._pid:
            raise forked_error()
        if self._closing:
            raise closed_error()
        if asyncio.get_running_loop() is not self._loop:
            raise wrong_loop_error()


def _committed(verdict: Committed | None) -> Committed:
    if verdict is None:
        raise UnsupportedError("a commit ended without a verdict")
    return verdict
