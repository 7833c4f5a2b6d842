"""Rounds over the namespaces in use: what is due is swept, and now and then what nobody needs is collected."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from crux_workspace.errors import StateError

__all__ = ["Upkeep", "UpkeepJob"]

MAX_NAMESPACES = 4096
"""Most namespaces that are kept up; the ones that came first are dropped. What is not swept is invisible all the same."""
_log = logging.getLogger("crux_workspace")


@dataclass(frozen=True, slots=True)
class UpkeepJob:
    """What a round does to one namespace; both only call what they were given."""

    owner: object
    sweep: Callable[[], Awaitable[object]]
    collect: Callable[[], Awaitable[object]]


class Upkeep:
    """The namespaces that one runtime keeps up."""

    def __init__(
        self,
        sweep_interval_ms: int | None,
        gc_interval_ms: int | None,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._intervals = {"sweep": sweep_interval_ms, "collect": gc_interval_ms}
        self._spawn = spawn
        self._jobs: dict[object, UpkeepJob] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: tuple[object, asyncio.Task[None]] | None = None
        self._turn = asyncio.Lock()
        self._closed = False

    def restart(self, loop: asyncio.AbstractEventLoop) -> None:
        """Work on this loop; what was known of another, closed one is forgotten."""
        self._jobs.clear()
        self._timers.clear()
        self._running = None
        self._turn = asyncio.Lock()
        self._loop = loop

    def add(self, place: object, job: UpkeepJob) -> None:
        """Keep a namespace up; the newest job for it is the one that counts."""
        self._jobs.pop(place, None)
        self._jobs[place] = job
        if len(self._jobs) > MAX_NAMESPACES:
            del self._jobs[next(iter(self._jobs))]
        for kind in self._intervals:
            self._arm(kind)

    async def release(self, owner: object) -> None:
        """Forget the namespaces of an owner, and stop what is being done to one of them."""
        self._jobs = {place: job for place, job in self._jobs.items() if job.owner is not owner}
        running = self._running
        if running is None or running[0] is not owner:
            return
        running[1].cancel()
        if running[1] is not asyncio.current_task():
            await asyncio.wait({running[1]})

    async def aclose(self) -> None:
        """Stop."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._jobs.clear()
        if self._running is not None:
            await self.release(self._running[0])

    def _arm(self, kind: str) -> None:
        interval = self._intervals[kind]
        if interval is None or self._loop is None or self._closed or kind in self._timers:
            return
        # A timer must not keep alive what nobody holds any more.
        self._timers[kind] = self._loop.call_later(interval / 1000, _due, weakref.ref(self), kind)

    def due(self, kind: str) -> None:
        """Start a round."""
        self._timers.pop(kind, None)
        if self._jobs and not self._closed:
            self._spawn(self._round(kind))

    async def _round(self, kind: str) -> None:
        async with self._turn:
            for place, job in list(self._jobs.items()):
                if self._jobs.get(place) is job:
                    await self._one(kind, place, job)
        if self._jobs:
            self._arm(kind)

    async def _one(self, kind: str, place: object, job: UpkeepJob) -> None:
        async def work() -> None:
            await (job.sweep() if kind == "sweep" else job.collect())

        task = self._spawn(work())
        self._running = (job.owner, task)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            self._running = None
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, StateError):
            self._jobs.pop(place, None)  # closed, or of another loop: never again
        _log.info("upkeep of a namespace failed: %s", type(error).__name__)


def _due(upkeep: weakref.ref[Upkeep], kind: str) -> None:
    found = upkeep()
    if found is not None:
        found.due(kind)
