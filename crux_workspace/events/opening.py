"""Where a watch begins: found at once where the store answers in place, else when somebody waits for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from crux_workspace.events.cursors import (
    AFTER_COMMIT,
    NO_MARK,
    EventCursor,
    invalid_cursor,
    start_cursor,
)
from crux_workspace.events.forward import find_end, find_oldest
from crux_workspace.events.hub import Hub
from crux_workspace.events.instant import Later, begin
from crux_workspace.events.tailer import Tailer
from crux_workspace.model.events import WatchStart

__all__ = ["Beginning", "NamespaceSource"]


@dataclass(slots=True)
class _Heard:
    """The first commit that was told of in each partition since the watch was made; 0 when one was dropped."""

    first: dict[str, int]

    def note(self, partition: str, sequence: int) -> None:
        known = self.first.get(partition)
        self.first[partition] = sequence if known is None else min(known, sequence)


class NamespaceSource:
    """The namespace of a watch: known at once, or told by a callable that has to be waited for."""

    def __init__(self, found: Coroutine[Any, Any, str]) -> None:
        answer, rest = begin(found)
        self.known = None if isinstance(answer, Later) else answer
        self._task: asyncio.Task[str] | None = None
        if rest is not None:
            self._task = asyncio.get_running_loop().create_task(rest)
            self._task.add_done_callback(_retrieve)

    async def get(self) -> str:
        """Return the namespace."""
        if self.known is None and self._task is not None:
            self.known = await asyncio.shield(self._task)
        assert self.known is not None
        return self.known

    def cancel(self) -> None:
        """Nobody wants to know any more."""
        if self._task is not None:
            self._task.cancel()


class Beginning:
    """Finds the place where a watch begins.

    Without a cursor it is the log's end as of the making of this object: asked for in place where the store plans under its lock, and
    so answers without waiting; else the end found later, moved back to before the first commit of this process that came since.
    """

    def __init__(
        self,
        hub: Hub,
        start: WatchStart,
        cursor: EventCursor | None,
        finish: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        """Begin listening.

        Args:
            hub: The hub of the record store.
            start: Where to begin without a cursor.
            cursor: The cursor, if there is one.
            finish: Runs what is left of a question that turned out to need waiting.
        """
        self._hub = hub
        self._start = start
        self._cursor = cursor
        self._finish = finish
        self._heard = _Heard({})
        self._leave: Callable[[], None] | None = None
        if cursor is None and start == "tail":
            self._leave = hub.listen(self._heard.note)
        self.place: EventCursor | None = None

    def try_now(self, tailer: Tailer) -> None:
        """Find the log's end without waiting, if the store can."""
        if self._leave is None or not self._hub.records.capabilities.plans_under_lock:
            return
        try:
            place, rest = begin(find_end(tailer.reader, tailer.mark))
        except Exception:
            return
        if rest is not None:
            self._finish(_quietly(rest))
        elif not isinstance(place, Later):
            self._found(place)

    async def find(self, tailer: Tailer) -> EventCursor:
        """Find the place.

        Raises:
            InvalidInputError: The cursor belongs to another namespace (``INVALID_CURSOR``).
        """
        if self.place is not None:
            return self.place
        if self._cursor is not None:
            if self._cursor.partition != tailer.mark:
                raise invalid_cursor()
            return self._found(self._cursor)
        if self._start == "oldest":
            return self._found(await find_oldest(tailer.reader, tailer.mark))
        end = await find_end(tailer.reader, tailer.mark)
        await self._hub.settled(tailer.partition)
        first = self._heard.first.get(tailer.partition)
        if first is not None and first <= end.sequence:
            end = _before(end, first)
        return self._found(end)

    def close(self) -> None:
        """Stop listening."""
        if self._leave is not None:
            self._leave()
            self._leave = None

    def _found(self, place: EventCursor) -> EventCursor:
        self.place = place
        self.close()
        return place


def _before(end: EventCursor, sequence: int) -> EventCursor:
    """Return the place before commit `sequence` of the log that ends at `end`."""
    if sequence <= 1:
        return start_cursor(end.partition)
    return EventCursor(end.partition, end.incarnation, sequence - 1, AFTER_COMMIT, NO_MARK)


async def _quietly(rest: Awaitable[object]) -> None:
    with contextlib.suppress(Exception):
        await rest


def _retrieve(task: asyncio.Task[str]) -> None:
    if not task.cancelled():
        task.exception()
