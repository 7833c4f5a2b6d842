"""One reader of the log: a place that moves forward, event by event."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from crux_workspace.errors import StateError, WatchGapError
from crux_workspace.events.cursors import AFTER_COMMIT, EventCursor
from crux_workspace.events.forward import Gap, LoggedCommit, find_oldest
from crux_workspace.events.log import commit_name
from crux_workspace.events.matching import WatchedPath
from crux_workspace.events.poller import Poller, as_known, back_off_ms
from crux_workspace.events.tailer import Tailer
from crux_workspace.model.changes import Change
from crux_workspace.model.events import WatchError, WorkspaceChangeEvent

__all__ = ["Stream", "StreamOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """What all streams of a handle have in common."""

    workspace_id: str
    watched: WatchedPath
    interval_ms: int
    limit: int
    report: Callable[[WatchError], Awaitable[bool]]
    """Hand a problem to who asked for it; False when nobody did."""
    measure: Callable[[int], None]
    """Told the time of the commit of each event that is delivered."""


class Stream:
    """Delivers events in order, each once; it holds one page of commits and no more.

    Attributes:
        acknowledged: The place behind everything that the consumer is done with.
        stopped: No further event will come.
    """

    def __init__(
        self,
        options: StreamOptions,
        namespace: str,
        poller: Poller,
        tailer: Tailer,
        place: EventCursor,
    ) -> None:
        self._options = options
        self._namespace = namespace
        self._poller = poller
        self._tailer = tailer
        self._place = self.acknowledged = place
        self.stopped = False
        self._page: deque[LoggedCommit] = deque()
        self._at = 0
        self._alarms = -1
        self._failures = 0
        self._reporting = False
        self._turn = asyncio.Lock()
        self._sleeping: asyncio.Future[None] | None = None
        self._deaf = False
        self._rested = True
        poller.follow(tailer, self)

    @property
    def interval_ms(self) -> int:
        """How often it wants the store to be asked."""
        return self._options.interval_ms

    async def next(self) -> WorkspaceChangeEvent | None:
        """Wait for the next event; asking says that the one before is done with. None when stopped.

        Nothing is lost when the wait is cancelled.

        Raises:
            WatchGapError: Events are lost and nobody else wanted to know; the next call goes on at the oldest one.
            StateError: The storage is closed or belongs elsewhere.
        """
        async with self._turn:
            self.settle()
            while not self.stopped:
                event = self._take()
                if event is not None:
                    self._options.measure(event.at)
                    return event
                await self._advance()
        return None

    def settle(self) -> None:
        """The consumer is done with what it was given."""
        self.acknowledged = self._place

    def give_back(self) -> None:
        """Deliver again what was given and not settled."""
        self._go_to(self.acknowledged)

    def stop(self) -> None:
        """End the stream; who waits is woken."""
        self.stopped = True
        self._page.clear()
        self._tailer.followers.discard(self)
        _resolve(self._sleeping)

    def wake(self) -> None:
        """There may be something new."""
        if not self._deaf:
            _resolve(self._sleeping)

    async def poll_failed(self, error: Exception, failures: int, delay_ms: int) -> None:
        """Report that the store could not be asked, unless something is being reported already."""
        if self.stopped or self._failures or self._reporting:
            return
        self._reporting = True
        try:
            await self._options.report(WatchError(error, failures, delay_ms))
        finally:
            self._reporting = False

    def _take(self) -> WorkspaceChangeEvent | None:
        """Return the next event of the page that matches; pass over the others."""
        while self._page:
            commit = self._page[0]
            while self._at < len(commit.changes):
                change = commit.changes[self._at]
                self._at += 1
                if self._options.watched.matches(change):
                    self._move(commit)
                    return self._event(commit, change)
            self._at = len(commit.changes)
            self._move(commit)
            self.settle()
        return None

    def _move(self, commit: LoggedCommit) -> None:
        """Move the place to where the page has been read to."""
        is_over = self._at >= len(commit.changes)
        index = AFTER_COMMIT if is_over else self._at
        self._place = EventCursor(
            self._tailer.mark, commit.incarnation, commit.sequence, index, commit.mark
        )
        if is_over:
            self._page.popleft()
            self._at = 0

    def _event(self, commit: LoggedCommit, change: Change) -> WorkspaceChangeEvent:
        return WorkspaceChangeEvent(
            type=change.type,
            workspace_id=self._options.workspace_id,
            namespace=self._namespace,
            path=change.path,
            from_path=change.from_path,
            replaced=change.replaced,
            at=commit.at,
            cursor=self._place.encode(),
            version=change.version,
            sequence=commit.sequence,
            commit=commit_name(commit.sequence, commit.commit_id),
        )

    async def _advance(self) -> None:
        """Get the next page, or wait for something to happen."""
        try:
            try:
                await self._fill()
            except Gap as gap:
                self._go_to(await find_oldest(self._tailer.reader, self._tailer.mark))
                lost = _gap_error(gap)
            else:
                return
        except StateError:
            raise
        except Exception as error:
            await self._failed(as_known(error))
            return
        self._failures = 0
        if not await self._options.report(WatchError(lost, 1, 0)):
            raise lost

    async def _fill(self) -> None:
        place, alarms = self._place, self._tailer.alarms
        if self._alarms == alarms and self._tailer.newest <= place.sequence and not place.is_inside:
            await self._sleep()
            return
        if not self._rested:
            await asyncio.sleep(0)  # stores that answer in place never let others run
        self._rested = False
        commits = await self._tailer.read(place, limit=self._options.limit)
        self._alarms = alarms
        self._failures = 0
        self._page.extend(commits)
        self._at = place.index if place.is_inside else 0

    async def _failed(self, error: Exception) -> None:
        self._failures += 1
        delay_ms = back_off_ms(self.interval_ms, self._failures)
        await self._options.report(WatchError(error, self._failures, delay_ms))
        if not self.stopped:
            await self._sleep(delay_ms / 1000)

    async def _sleep(self, seconds: float | None = None) -> None:
        """Wait to be woken; with a time, wait that long, and only stopping ends it sooner."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, _resolve, future)
        self._sleeping, self._deaf = future, seconds is not None
        self._poller.sleeping.add(self)
        try:
            await future
        finally:
            self._poller.sleeping.discard(self)
            self._sleeping = None
            if timer is not None:
                timer.cancel()
        self._rested = True

    def _go_to(self, place: EventCursor) -> None:
        self._place = self.acknowledged = place
        self._page.clear()
        self._at = 0
        self._alarms = -1


def _resolve(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)


def _gap_error(gap: Gap) -> WatchGapError:
    return WatchGapError(
        f"Events are lost: {gap}. Delivery goes on at the oldest event that is left.",
        hint="Read the state again; then go on.",
    )
