"""Deleting in the background what is gone already: rows of dropped partitions, and uploads that nobody ended."""

from __future__ import annotations

import asyncio
import logging

from crux_workspace.errors import WorkspaceError
from crux_workspace.storage.records import StoreError
from storage_adapters.sql.postgres.database import Database

__all__ = ["ABANDONED_MS", "Sweeper"]

ABANDONED_MS = 86_400_000
"""An upload to which nothing came for so long is taken for abandoned, and fails when it goes on after all."""

_ROWS = 1_000

_log = logging.getLogger("crux_workspace")


class Sweeper:
    """Deletes in small statements; several processes share the work, none waits for another."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._task: asyncio.Task[None] | None = None
        self._again = False

    def start(self) -> None:
        """Sweep until nothing is left."""
        self._again = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._sweep())

    async def settled(self) -> None:
        """Wait until nothing is left to sweep, as far as this process knows."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def aclose(self) -> None:
        """Stop; what is left is swept by whoever opens the database next."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _sweep(self) -> None:
        database = self._database
        try:
            while self._again:
                self._again = False
                more = True
                while more:
                    [[more]] = await database.change(database.texts.sweep, (_ROWS,))
                found: object = True
                while found:
                    found = await database.change(database.texts.sweep_uploads, (ABANDONED_MS,))
        except (WorkspaceError, StoreError) as error:
            _log.debug("sweeping stopped: %s", type(error).__name__)
