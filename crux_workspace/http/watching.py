"""`HttpWatchHandle`: what a program holds of a watch over HTTP."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Self

from crux_workspace.errors import InvalidInputError
from crux_workspace.events.cursors import parse_event_cursor
from crux_workspace.events.delivery import Callbacks, EventCallback
from crux_workspace.http.calling import Caller, Stoppable
from crux_workspace.http.feed import Feed, Reporter, Wanted
from crux_workspace.http.sending import any_path
from crux_workspace.model.events import OnError, WatchStart, WorkspaceChangeEvent, check_watch
from crux_workspace.model.paths import PathLike

__all__ = ["HttpWatchHandle", "begin_watch"]


class HttpWatchHandle(Stoppable):
    """A running watch over HTTP; get one with `HttpWorkspace.watch`, end it with `stop` or ``async with``.

    It is its own iterator, and callbacks given to `on` each get all events, as with `WatchHandle`. When the connection breaks, or the
    service restarts, it goes on right behind the last event: nothing is lost, and nothing comes twice.
    """

    def __init__(self, caller: Caller, wanted: Wanted, on_error: OnError | None) -> None:
        """Use `HttpWorkspace.watch`."""
        self._report = Reporter(on_error)
        self._first = Feed(caller, wanted, self._report)
        self._forgotten = weakref.finalize(self, self._first.abandon)
        self._forgotten.atexit = False
        self._loop_feed: Feed | None = None
        self._callback_feed: Feed | None = None
        self._callbacks = Callbacks(self._report)
        self._delivery: asyncio.Task[None] | None = None
        self._stopped = False

    def __repr__(self) -> str:
        return f"HttpWatchHandle({'stopped' if self._stopped else 'open'})"

    @property
    def tried(self) -> asyncio.Future[None]:
        """Done when it knows where it begins, or failed to find out at once."""
        return self._first.tried

    @property
    def stopped(self) -> bool:
        """Whether the watch has ended."""
        return self._stopped

    @property
    def cursor(self) -> str | None:
        """The place behind everything that is done with, as `WatchHandle.cursor`; None until it is known."""
        feeds = [self._loop_feed]
        if self._callbacks or self._loop_feed is None:
            feeds.append(self._callback_feed)
        places = [one.acknowledged for one in feeds if one is not None]
        known = [place for place in places if place is not None]
        if not known:
            return self._first.acknowledged
        return known[0] if len(known) == 1 else min(known, key=_rank)

    async def ready(self) -> None:
        """Wait until the watch knows where it begins, as `WatchHandle.ready`; it waits for a service that is not there.

        Raises:
            InvalidInputError: The cursor belongs to another namespace (``INVALID_CURSOR``).
            AccessDeniedError: The token may not see what is watched (``PERMISSION_DENIED``, ``OUTSIDE_MOUNTS``).
            StorageError: The service answers with something unusable (``RECORD_CORRUPT``).
        """
        if not self._stopped:
            await self._first.ready()

    async def stop(self) -> None:
        """End the watch: its iteration ends and a callback that is running is cancelled; idempotent."""
        self._stopped = True
        self._forgotten.detach()
        for feed in {self._first, self._loop_feed, self._callback_feed} - {None}:
            assert feed is not None
            await feed.stop()
        delivery = self._delivery
        if delivery is None or delivery.done() or delivery is asyncio.current_task():
            return
        delivery.cancel()
        await asyncio.wait({delivery})

    async def __aenter__(self) -> Self:
        try:
            await self.ready()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WorkspaceChangeEvent:
        if self._stopped:
            raise StopAsyncIteration
        if self._loop_feed is None:
            self._loop_feed = self._feed()
        event = await self._loop_feed.next()
        if event is None:
            raise StopAsyncIteration
        return event

    def on(self, callback: EventCallback) -> Callable[[], None]:
        """Call `callback` with each event after the handle's cursor, as `WatchHandle.on` does; returns what ends it.

        Raises:
            InvalidInputError: It cannot be called (``INVALID_ARGUMENT``).
        """
        if not callable(callback):
            raise InvalidInputError("callback must be callable.")
        if self._stopped:
            return lambda: None
        unsubscribe = self._callbacks.add(callback)
        if self._delivery is None or self._delivery.done():
            self._delivery = asyncio.create_task(self._callbacks.serve(self._delivering))
        return unsubscribe

    async def _delivering(self) -> Feed | None:
        if self._callback_feed is None and not self._stopped:
            self._callback_feed = self._feed()
        return self._callback_feed

    def _feed(self) -> Feed:
        """Return the feed that is open already to the first consumer, and one that goes on where it is to the second."""
        other = self._loop_feed or self._callback_feed
        return self._first if other is None else other.then()


def _rank(cursor: str) -> tuple[int, int]:
    try:
        place = parse_event_cursor(cursor)
    except InvalidInputError:
        return (0, 0)
    return (place.sequence, place.index)


def begin_watch(
    caller: Caller,
    path: PathLike | None,
    *,
    recursive: bool | None,
    cursor: str | None,
    start: WatchStart,
    poll_interval_ms: int,
    limit: int,
    on_error: OnError | None,
    namespace: str | None,
) -> HttpWatchHandle:
    """Begin a watch; its options are checked as those of a local one are."""
    core = caller.core
    core.enter()
    caller.named(namespace)
    check_watch(
        recursive=recursive,
        start=start,
        on_error=on_error,
        poll_interval_ms=poll_interval_ms,
        limit=limit,
    )
    if cursor is not None:
        parse_event_cursor(cursor)
    arguments = {
        "path": None if path is None else any_path(path),
        "recursive": recursive,
        "poll_interval_ms": min(max(poll_interval_ms, 10), 60_000),
    }
    wanted = Wanted(
        arguments=arguments,
        namespace=namespace,
        place=cursor,
        start=start,
        interval_ms=poll_interval_ms,
    )
    handle = HttpWatchHandle(caller, wanted, on_error)
    core.watches.add(handle)
    if not handle.tried.done():
        core.openings.add(handle.tried)
        handle.tried.add_done_callback(core.openings.discard)
    return handle
