"""What works in the background of a process: polling for watchers, and the upkeep of the namespaces in use."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self
from weakref import WeakSet, WeakValueDictionary

from crux_workspace.errors import ErrorCode, RuntimeRequiredError, StateError
from crux_workspace.events.hub import Hub
from crux_workspace.events.poller import Poller
from crux_workspace.events.upkeep import Upkeep, UpkeepJob
from crux_workspace.model.options import MOST, whole_number

__all__ = ["LocalRuntime", "Watching"]


class Watching:
    """A watch that a runtime drives and ends when it is closed."""

    async def stop(self) -> None:
        """End it."""
        raise NotImplementedError


class LocalRuntime:
    """A runtime inside this process; make one with `local_runtime`.

    It belongs to the event loop that first uses it and to the process that made it. While nothing is watched and nothing is due it is
    a timer; it holds no thread and no connection.
    """

    def __init__(
        self, *, sweep_interval_ms: int | None = 30_000, gc_interval_ms: int | None = 3_600_000
    ) -> None:
        """Use `local_runtime`."""
        whole_number("sweep_interval_ms", sweep_interval_ms, least=1, most=MOST)
        whole_number("gc_interval_ms", gc_interval_ms, least=1, most=MOST)
        self._upkeep = Upkeep(sweep_interval_ms, gc_interval_ms, self._spawn)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = os.getpid()
        self._closed = False
        self._is_over = False
        self._pollers: WeakValueDictionary[Hub, Poller] = WeakValueDictionary()
        self._watches: WeakSet[Watching] = WeakSet()
        self._tasks: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"LocalRuntime({'closed' if self._closed else 'open'})"

    @property
    def closed(self) -> bool:
        """Whether `aclose` was called."""
        return self._closed

    def check(self) -> asyncio.AbstractEventLoop:
        """Return the loop it works on, the running one.

        Raises:
            StateError: It belongs to another loop or process (``WRONG_LOOP``, ``FORKED``).
            RuntimeRequiredError: It is closed (``RUNTIME_REQUIRED``).
        """
        if self._process != os.getpid():
            raise StateError(
                "The runtime was made before the process forked and does not work in the child; make one there.",
                code=ErrorCode.FORKED,
            )
        if self._closed:
            raise RuntimeRequiredError("The runtime is closed; make another one.")
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None and not self._loop.is_closed():
                raise StateError(
                    "The runtime belongs to another event loop; make one per loop.",
                    code=ErrorCode.WRONG_LOOP,
                )
            self._pollers.clear()
            self._tasks.clear()
            self._upkeep.restart(loop)
            self._loop = loop
        return loop

    def poller(self, hub: Hub) -> Poller:
        """Return the poller of a record store."""
        loop = self.check()
        found = self._pollers.get(hub)
        if found is None:
            found = self._pollers[hub] = Poller(hub, loop, self._spawn)
        return found

    def drive(self, watch: Watching) -> None:
        """End this watch when the runtime is closed."""
        self._watches.add(watch)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a delivery; it is cancelled when the runtime is closed."""
        self.check()
        return self._spawn(work)

    def keep(self, partition: str, hub: Hub, job: UpkeepJob) -> bool:
        """Sweep and collect a namespace from now on; False when it cannot, because it belongs elsewhere."""
        try:
            self.check()
        except StateError:
            return False
        self._upkeep.add((hub, partition), job)
        return True

    async def release(self, owner: object) -> None:
        """Forget the namespaces of an owner; waits for an upkeep of them that is running."""
        await self._upkeep.release(owner)

    async def aclose(self) -> None:
        """End its watches and its upkeep; idempotent. In a forked child it does nothing."""
        if self._is_over or self._process != os.getpid():
            return
        self._closed = True
        for watch in list(self._watches):
            await watch.stop()
        for poller in list(self._pollers.values()):
            poller.close()
        self._pollers.clear()
        await self._upkeep.aclose()
        current = asyncio.current_task()
        left = {task for task in self._tasks if task is not current}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
        self._is_over = True

    async def __aenter__(self) -> Self:
        self.check()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            with contextlib.suppress(Exception):
                task.exception()  # retrieved, so that nobody is warned of it
