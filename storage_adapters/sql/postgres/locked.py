"""What a plan reads with while its transaction holds the lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import asyncpg

from crux_workspace.storage.records import Contains, Page, Record
from storage_adapters.sql.postgres import reading
from storage_adapters.sql.postgres.database import Database, Query
from storage_adapters.sql.postgres.failures import LOST, translated
from storage_adapters.sql.postgres.pool import Connection

__all__ = ["LockedReader"]

T = TypeVar("T")


class LockedReader:
    """A `Reader` over one partition, on the connection that holds its lock: nobody commits there meanwhile."""

    def __init__(self, database: Database, connection: Connection, partition: str) -> None:
        self._database = database
        self._connection = connection
        self._partition = partition

    async def get_many(self, keys: Sequence[str], *, bodies: bool = True) -> list[Record | None]:
        """See `Reader.get_many`."""
        texts = self._database.texts
        return await self._run(reading.get_many(texts, self._partition, keys, bodies=bodies))

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
        """See `Reader.scan`."""
        return await self._run(
            reading.scan(
                self._database.texts,
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
        )

    async def _run(self, query: Query[T]) -> T:
        try:
            return await self._database.run(self._connection, query)
        except (asyncpg.PostgresError, *LOST) as error:
            raise translated(error) from error
