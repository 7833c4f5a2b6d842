"""The writer: one thread per store that owns the writing connection, and its side on the loop.

The loop appends jobs to a list and hands the list over once per tick: everything that became ready in one tick is one group. While
only one client writes, its job goes out at once. One queue put goes out and one `call_soon_threadsafe` comes back, whatever the size
of the group. A cancelled task cancels only its
future: what was handed over is committed, or refused, as if nobody had left.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

from crux_workspace.storage.futures import PromptFuture
from crux_workspace.storage.records import Batch, Committed, Plan
from storage_adapters.sql.groups import MAX_GROUP_JOBS, GroupRunner, Job, Verdict
from storage_adapters.sql.opening import Connections

__all__ = ["Writer"]

T = TypeVar("T")


class _Channel:
    """What the thread tells the loop; silent once the loop is closed."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def call(self, callback: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:
            if not self._loop.is_closed():
                raise


class Writer:
    """The loop's side of the writer's thread."""

    def __init__(self, connect: Callable[[], Connections], *, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[list[Job] | None] = SimpleQueue()
        self._jobs: list[Job] = []
        self._scheduled = False
        self._handed_over = 0
        self._is_crowded = False
        """Whether the last group had several jobs: then there will be more in this tick."""
        self._closing = False
        self._opened: asyncio.Future[Connections] = self._loop.create_future()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        channel = _Channel(self._loop)
        self._thread = threading.Thread(
            target=_run,
            args=(connect, self._queue, channel, self._deliver, self._opened, self._closed),
            name=name,
            daemon=True,
        )
        self._thread.start()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that opened the store."""
        return self._loop

    async def opened(self) -> Connections:
        """Wait until the thread has opened the database; when that fails or is cancelled, the thread ends."""
        try:
            return await asyncio.shield(self._opened)
        except BaseException:
            self._queue.put(None)
            raise

    def submit(self, partition: str, work: Plan | Batch | None) -> asyncio.Future[Committed | None]:
        """Let a job join this tick's group."""
        future: PromptFuture[Committed | None] = PromptFuture(loop=self._loop)
        self._jobs.append(Job(partition, work, future))
        if not self._scheduled and not self._handed_over:
            if self._is_crowded:
                self._hand_over_soon()
            else:
                self._hand_over()
        return future

    async def aclose(self) -> None:
        """Wait for the jobs that were submitted, then for the thread's end."""
        self._closing = True
        self._stop_when_idle()
        await asyncio.shield(self._closed)
        self._thread.join()

    def abandon(self) -> None:
        """Let the thread end without waiting for it; for a store that nobody holds any more."""
        self._queue.put(None)

    def _stop_when_idle(self) -> None:
        if self._closing and not self._jobs and not self._handed_over:
            self._queue.put(None)

    def _hand_over_soon(self) -> None:
        """Hand over behind everybody who is awake already, so that their jobs come along."""
        self._scheduled = True
        self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self._scheduled = False
        jobs = self._jobs[:MAX_GROUP_JOBS]
        if jobs and not self._handed_over:
            del self._jobs[:MAX_GROUP_JOBS]
            self._handed_over = len(jobs)
            self._is_crowded = len(jobs) > 1
            self._queue.put(jobs)

    def _deliver(self, verdicts: list[Verdict]) -> None:
        self._handed_over -= len(verdicts)
        for job, verdict in verdicts:
            if job.future.done():  # cancelled
                continue
            if isinstance(verdict, BaseException):
                job.future.set_exception(verdict)
            else:
                job.future.set_result(verdict)
        if not self._handed_over:
            if self._jobs and not self._scheduled:
                self._hand_over_soon()
            self._stop_when_idle()


def _run(
    connect: Callable[[], Connections],
    queue: SimpleQueue[list[Job] | None],
    channel: _Channel,
    deliver: Callable[[list[Verdict]], None],
    opened: asyncio.Future[Connections],
    closed: asyncio.Future[None],
) -> None:
    """Open, run groups until told to stop, close: the whole life of the thread."""
    try:
        connections = connect()
    except Exception as error:
        channel.call(_fail, opened, error)
        channel.call(_resolve, closed, None)
        return
    try:
        channel.call(_resolve, opened, connections)
        runner = GroupRunner(connections.writer, connections.lock)
        while (jobs := queue.get()) is not None:
            runner.run(jobs, lambda verdicts: channel.call(deliver, verdicts))
    finally:
        try:
            connections.close()
        finally:
            channel.call(_resolve, closed, None)


def _resolve(future: asyncio.Future[T], value: T) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: asyncio.Future[T], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # whoever opened may be gone; that is no reason to complain
