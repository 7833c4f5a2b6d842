"""What a plan reads with: the connection that its batch will go by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import asyncpg

from crux_workspace.storage.records import Contains, Page, Record
from storage_adapters.sql.postgres import reading
from storage_adapters.sql.postgres.database import Database, Query
from storage_adapters.sql.postgres.failures import LOST, is_lost, translated
from storage_adapters.sql.postgres.pool import Connection

__all__ = ["HeldReader"]

T = TypeVar("T")


class HeldReader:
    """A `Reader` over one partition, on one connection; where that holds the partition's lock, nobody commits meanwhile."""

    def __init__(self, database: Database, connection: Connection, partition: str) -> None:
        self._database = database
        self._connection = connection
        self._partition = partition
        self.lost = False
        """Whether the connection broke while it was read from."""

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
            self.lost = self.lost or (is_lost(error) and not isinstance(error, TimeoutError))
            raise translated(error) from error
