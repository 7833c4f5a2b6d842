"""What a plan reads with: the connection that holds its partition's lock, or any, together with other plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import asyncpg

from crux_workspace.storage.records import Contains, Page, Record
from storage_adapters.sql.postgres import reading
from storage_adapters.sql.postgres.database import Database, Query
from storage_adapters.sql.postgres.failures import LOST, translated
from storage_adapters.sql.postgres.grouping import Heads
from storage_adapters.sql.postgres.pool import Connection

__all__ = ["FreeReader", "HeldReader"]

T = TypeVar("T")


class _Reader:
    """A `Reader` over one partition."""

    def __init__(self, database: Database, partition: str) -> None:
        self._database = database
        self._partition = partition

    async def get_many(self, keys: Sequence[str], *, bodies: bool = True) -> list[Record | None]:
        """See `Reader.get_many`."""
        texts = self._database.texts
        return await self._run(
            lambda: reading.get_many(texts, self._partition, keys, bodies=bodies)
        )

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
            lambda: reading.scan(
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

    async def _run(self, query: Callable[[], Query[T]]) -> T:
        raise NotImplementedError


class HeldReader(_Reader):
    """Reads on the connection that holds the partition's lock: nobody commits meanwhile."""

    def __init__(self, database: Database, connection: Connection, partition: str) -> None:
        super().__init__(database, partition)
        self._connection = connection

    async def _run(self, query: Callable[[], Query[T]]) -> T:
        try:
            return await self._database.run(self._connection, query())
        except (asyncpg.PostgresError, *LOST) as error:
            raise translated(error) from error


class FreeReader(_Reader):
    """Reads on any connection, again when one breaks; heads together with what other plans read."""

    def __init__(self, database: Database, heads: Heads, partition: str) -> None:
        super().__init__(database, partition)
        self._heads = heads

    async def get_many(self, keys: Sequence[str], *, bodies: bool = True) -> list[Record | None]:
        """See `Reader.get_many`."""
        if bodies:
            return await super().get_many(keys, bodies=True)
        return await self._heads.read(
            self._partition, keys, lambda: super(FreeReader, self).get_many(keys, bodies=False)
        )

    async def _run(self, query: Callable[[], Query[T]]) -> T:
        return await self._database.read(query)
