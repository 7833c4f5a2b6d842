"""Asking one record store for news: one call for all namespaces that are watched on it."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from crux_workspace.errors import WorkspaceError
from crux_workspace.events.hub import Hub
from crux_workspace.events.tailer import Follower, Tailer
from crux_workspace.storage.failures import unavailable
from crux_workspace.storage.records import NotifyingRecordStore

__all__ = ["MAX_DELAY_MS", "Poller", "as_known", "back_off_ms"]

MAX_DELAY_MS = 5_000
Spawn = Callable[[Coroutine[Any, Any, None]], object]


def back_off_ms(interval_ms: int, failures: int) -> int:
    """Return how long to wait after a number of failures: doubling from the poll interval up to `MAX_DELAY_MS`."""
    doubled: int = interval_ms << min(failures - 1, 16)
    return max(interval_ms, min(MAX_DELAY_MS, doubled))


def as_known(error: Exception) -> Exception:
    """Return a store's failure as the error that users know, the original chained to it."""
    if isinstance(error, WorkspaceError):
        return error
    known = unavailable("record store", error)
    known.__cause__ = error
    return known


class Poller:
    """The tailers of one record store, woken by the hub at once and by polling in any case.

    It polls only while somebody follows a tailer, as often as the most impatient of them asked for. Between two polls there is only
    a timer.
    """

    def __init__(self, hub: Hub, loop: asyncio.AbstractEventLoop, spawn: Spawn) -> None:
        self._hub = hub
        self._loop = loop
        self._spawn = spawn
        self._tailers: WeakValueDictionary[str, Tailer] = WeakValueDictionary()
        self._hearing: WeakKeyDictionary[Tailer, Callable[[], None]] = WeakKeyDictionary()
        self._timer: asyncio.TimerHandle | None = None
        self._polling = False
        self._failures = 0
        self._leave: Callable[[], None] | None = None
        self._closed = False
        self.sleeping: set[Follower] = set()
        """Followers that wait for news: they must live until they are woken."""

    def tailer(self, partition: str) -> Tailer:
        """Return the one tailer of a partition."""
        found = self._tailers.get(partition)
        if found is None:
            found = self._tailers[partition] = Tailer(self._hub.records, partition)
        return found

    def follow(self, tailer: Tailer, follower: Follower) -> None:
        """Wake the follower from now on, as long as it is held by somebody."""
        tailer.followers.add(follower)
        if tailer not in self._hearing:
            self._hear(tailer)
        if self._leave is None:
            self._leave = self._hub.listen(self._noticed)
        if not self._polling:
            self._arm(self._interval_ms())

    def close(self) -> None:
        """Stop polling."""
        self._closed = True
        self._rest()
        for leave in list(self._hearing.values()):
            leave()

    def _hear(self, tailer: Tailer) -> None:
        """Have a store that hears of other processes' commits tell of them, as long as the tailer is there."""
        records = self._hub.records
        if not records.capabilities.notify or not isinstance(records, NotifyingRecordStore):
            return
        leave = records.listen(tailer.partition, partial(self._noticed, tailer.partition))
        self._hearing[tailer] = leave
        weakref.finalize(tailer, leave)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._leave is not None:
            self._leave()
            self._leave = None

    def _noticed(self, partition: str, sequence: int) -> None:
        if partition not in self._tailers or self._loop.is_closed():
            return
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._hint(partition, sequence)
        else:
            with contextlib.suppress(RuntimeError):  # the loop is being closed
                self._loop.call_soon_threadsafe(self._hint, partition, sequence)

    def _hint(self, partition: str, sequence: int) -> None:
        tailer = self._tailers.get(partition)
        if tailer is not None:
            tailer.hint(sequence)

    def _followers(self) -> list[Follower]:
        return [one for tailer in list(self._tailers.values()) for one in tailer.followers]

    def _interval_ms(self) -> int:
        return min((one.interval_ms for one in self._followers()), default=0)

    def _arm(self, delay_ms: int) -> None:
        due = self._loop.time() + delay_ms / 1000
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._due)

    def _due(self) -> None:
        self._timer = None
        if self._closed or self._polling:
            return
        if not self._interval_ms():
            self._rest()
            return
        self._polling = True
        self._spawn(self._poll())

    async def _poll(self) -> None:
        tailers = [tailer for tailer in list(self._tailers.values()) if tailer.followers]
        hints = [tailer.hints for tailer in tailers]
        delay = 0
        try:
            if not tailers:
                return
            try:
                found = await self._hub.records.sequences([one.partition for one in tailers])
            except Exception as error:
                self._failures += 1
                delay = back_off_ms(self._interval_ms() or 1, self._failures)
                self._report(tailers, as_known(error), delay)
            else:
                self._failures = 0
                delay = self._interval_ms()
                for tailer, sequence, known in zip(tailers, found, hints, strict=True):
                    tailer.polled(sequence, known)
        finally:
            self._polling = False
            del tailers
            if delay and not self._closed:
                self._arm(delay)
            else:
                self._rest()

    def _report(self, tailers: list[Tailer], error: Exception, delay_ms: int) -> None:
        """Tell all followers; one who takes long to hear it keeps nobody waiting."""
        for tailer in tailers:
            for follower in list(tailer.followers):
                self._spawn(follower.poll_failed(error, self._failures, delay_ms))
