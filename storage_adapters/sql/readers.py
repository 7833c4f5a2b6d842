"""Where reads run: in place on the loop when they are small, else in aiosqlite's thread.

In place a read takes microseconds and no hop; it never waits, and goes to the thread when somebody holds a lock.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote

import aiosqlite

from crux_workspace.storage.failures import closed_error
from storage_adapters.sql.failures import is_busy, translated
from storage_adapters.sql.opening import BUSY_TIMEOUT_S
from storage_adapters.sql.reading import Query, Row, run

__all__ = ["Readers"]

# At DEBUG aiosqlite writes every statement with its parameters: namespaces, paths and queries would be in the log.
logging.getLogger("aiosqlite").setLevel(logging.INFO)

T = TypeVar("T")


class Readers:
    """The reading connections of one store."""

    def __init__(self, path: Path, in_place: sqlite3.Connection) -> None:
        self._path = path
        self._in_place = in_place
        self._thread: aiosqlite.Connection | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    def at_once(self, text: str, parameters: Sequence[Any]) -> list[Row] | None:
        """Run a small statement in place; None when the database is busy."""
        try:
            return self._in_place.execute(text, parameters).fetchall()
        except sqlite3.Error as error:
            if is_busy(error):
                return None
            raise translated(error) from error

    async def near(self, query: Callable[[], Query[T]]) -> T:
        """Run a small query in place; in the thread when the database is busy."""
        try:
            return run(self._in_place, query())
        except sqlite3.Error as error:
            if not is_busy(error):
                raise translated(error) from error
        return await self.far(query)

    async def far(self, query: Callable[[], Query[T]]) -> T:
        """Run a query in the thread, statement by statement."""
        try:
            connection = self._thread or await self._open()
            steps = query()
            request = next(steps)
            while True:
                rows = await connection.execute_fetchall(*request)
                request = steps.send(cast("list[Row]", rows))
        except StopIteration as stop:
            value: T = stop.value
            return value
        except (sqlite3.Error, ValueError) as error:
            if self._closed:
                raise closed_error() from error
            raise translated(error) from error

    async def aclose(self) -> None:
        """Close the thread's connection; the one in place belongs to the writer."""
        self._closed = True
        async with self._opening:
            connection, self._thread = self._thread, None
            if connection is not None:
                await connection.close()

    async def _open(self) -> aiosqlite.Connection:
        async with self._opening:
            if self._closed:
                raise closed_error()
            if self._thread is None:
                self._thread = await aiosqlite.connect(
                    f"file:{quote(str(self._path.absolute()))}?mode=rw",
                    uri=True,
                    timeout=BUSY_TIMEOUT_S,
                    isolation_level=None,
                )
                await self._thread.execute_fetchall("pragma query_only = 1")
            return self._thread
