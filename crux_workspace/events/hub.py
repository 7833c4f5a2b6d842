"""Word of commits made in this process: a hint that wakes watchers at once, while polling stays the truth."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from weakref import WeakValueDictionary

from crux_workspace.storage.records import RecordStore

__all__ = ["Hub", "Notice", "hub_of"]

Notice = Callable[[str, int], None]
"""Told (partition, sequence) of an applied commit, on whichever thread commits; sequence 0: the partition was dropped."""


class Hub:
    """Everybody who commits through one record-store object, and everybody who wants to hear of it."""

    def __init__(self, records: RecordStore) -> None:
        self.records = records
        self._listeners: tuple[Notice, ...] = ()
        self._numbers = itertools.count(1)
        self._open: dict[int, str] = {}
        self._waiting: list[tuple[set[int], asyncio.Future[None]]] = []
        self._queues: WeakValueDictionary[tuple[int, str, str], asyncio.Lock] = (
            WeakValueDictionary()
        )

    def listen(self, listener: Notice) -> Callable[[], None]:
        """Call `listener` for each commit from now on; returns what ends it."""
        self._listeners = (*self._listeners, listener)

        def leave() -> None:
            self._listeners = tuple(known for known in self._listeners if known is not listener)

        return leave

    def begin(self, partition: str) -> int:
        """Note that a commit is handed to the store; returns what `end` takes."""
        ticket = next(self._numbers)
        self._open[ticket] = partition
        return ticket

    def end(self, ticket: int) -> None:
        """Note that the store answered, whatever it said."""
        self._open.pop(ticket, None)
        if self._waiting:
            self._release(ticket)

    def queue(self, partition: str, path: str) -> asyncio.Lock:
        """Return the queue of those on this loop who prepare content for one path: one at a time, or all of them would be late."""
        loop = id(asyncio.get_running_loop())
        return self._queues.setdefault((loop, partition, path), asyncio.Lock())

    def committed(self, partition: str, sequence: int) -> None:
        """Tell everybody of an applied commit."""
        for listener in self._listeners:
            listener(partition, sequence)

    def dropped(self, partition: str) -> None:
        """Tell everybody that a partition was removed."""
        self.committed(partition, 0)

    async def settled(self, partition: str) -> None:
        """Wait until the commits that are handed over now are answered, and told of if they were applied."""
        pending = {ticket for ticket, owner in self._open.items() if owner == partition}
        if not pending:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (pending, future)
        self._waiting.append(entry)
        try:
            await future
        finally:
            self._waiting.remove(entry)

    def _release(self, ticket: int) -> None:
        for pending, future in self._waiting:
            pending.discard(ticket)
            if not pending:
                with contextlib.suppress(RuntimeError):  # its loop is closed
                    future.get_loop().call_soon_threadsafe(_resolve, future)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


_hubs: WeakValueDictionary[int, Hub] = WeakValueDictionary()


def hub_of(records: RecordStore) -> Hub:
    """Return the one hub of a record-store object; it lives as long as somebody holds it."""
    hub = _hubs.get(id(records))
    if hub is None:
        hub = _hubs[id(records)] = Hub(records)
    return hub
