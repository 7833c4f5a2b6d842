"""`WatchHandle`: what a program holds of a watch."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from crux_workspace.errors import InvalidInputError, StateError
from crux_workspace.events.cursors import EventCursor
from crux_workspace.events.delivery import Callbacks, EventCallback, awaited
from crux_workspace.events.hub import Hub
from crux_workspace.events.matching import WatchedPath
from crux_workspace.events.opening import Beginning, NamespaceSource
from crux_workspace.events.poller import as_known, back_off_ms
from crux_workspace.events.runtime import LocalRuntime, Watching
from crux_workspace.events.stream import Stream, StreamOptions
from crux_workspace.events.tailer import Tailer
from crux_workspace.model.events import OnError, WatchError, WatchStart, WorkspaceChangeEvent
from crux_workspace.storage.layout import partition_name

__all__ = ["WatchHandle", "WatchRequest"]

_log = logging.getLogger("crux_workspace")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """A watch as it was asked for, and what it needs."""

    workspace_id: str
    namespace: NamespaceSource
    hub: Hub
    runtime: LocalRuntime
    watched: WatchedPath
    cursor: EventCursor | None
    start: WatchStart
    interval_ms: int
    limit: int
    on_error: OnError | None
    opened: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]
    """Runs the opening as the public operation that it is."""
    measure: Callable[[int], None]
    """Told the time of the commit of each event that is delivered."""


class WatchHandle(Watching):
    """A running watch; get one with `Workspace.watch`, end it with `stop` or ``async with``.

    It is its own iterator: ``async for event in handle``; a second loop goes on where the first one was left, and two loops at once
    share the events between them. Callbacks given to `on` each get all events.
    """

    def __init__(self, request: WatchRequest) -> None:
        """Use `Workspace.watch`."""
        self._request = request
        self._poller = request.runtime.poller(request.hub)
        self._beginning = Beginning(
            request.hub, request.start, request.cursor, request.runtime.spawn
        )
        self._forgotten = weakref.finalize(self, self._beginning.close)
        self._forgotten.atexit = False
        self._options = StreamOptions(
            workspace_id=request.workspace_id,
            watched=request.watched,
            interval_ms=request.interval_ms,
            limit=request.limit,
            report=self._report,
            measure=request.measure,
        )
        self._opening = asyncio.Lock()
        self._tailer: Tailer | None = None
        self._ready = False
        self._stopped = False
        self._pause: asyncio.Future[None] | None = None
        self._loop_stream: Stream | None = None
        self._callback_stream: Stream | None = None
        self._callbacks = Callbacks(self._report)
        self._delivery: asyncio.Task[None] | None = None
        if request.namespace.known is not None:
            self._beginning.try_now(self._locate(request.namespace.known))
        request.runtime.drive(self)

    def __repr__(self) -> str:
        state = "stopped" if self._stopped else "ready" if self._ready else "opening"
        return f"WatchHandle(id={self._request.workspace_id!r}, {state})"

    # -- where it is

    @property
    def stopped(self) -> bool:
        """Whether the watch has ended."""
        return self._stopped

    @property
    def cursor(self) -> str | None:
        """The place behind everything that is done with; None until it is known, at the latest when `ready` returns.

        It covers an event once the loop asked for the next one, or all callbacks returned, and every event that did not match. With a
        loop and callbacks it is the earlier place of both.
        """
        streams = [self._loop_stream]
        if self._callbacks or self._loop_stream is None:
            streams.append(self._callback_stream)
        places = [stream.acknowledged for stream in streams if stream is not None]
        if places:
            return min(places, key=lambda place: (place.sequence, place.index)).encode()
        place = self._beginning.place or self._request.cursor
        return None if place is None else place.encode()

    async def ready(self) -> None:
        """Wait until the watch knows where it begins: from then on everything that anybody commits is delivered.

        It waits for a store that fails. On a stopped watch it returns at once.

        Raises:
            InvalidInputError: The cursor belongs to another namespace (``INVALID_CURSOR``).
            StateError: The storage or the runtime is closed, or belongs to another loop.

        Cost:
            2 reads where the store does not answer in place, else none

        Example:
            >>> handle = ws.watch(); await handle.ready(); await handle.stop()
        """
        if self._is_settled():
            return
        self._request.runtime.check()
        async with self._opening:
            if not self._is_settled():
                await self._request.opened(self._open)

    def _is_settled(self) -> bool:
        return self._ready or self._stopped

    async def stop(self) -> None:
        """End the watch: its iteration ends and a callback that is running is cancelled; idempotent.

        Called by a callback, it lets that callback finish.
        """
        self._stopped = True
        self._beginning.close()
        self._request.namespace.cancel()
        for stream in (self._loop_stream, self._callback_stream):
            if stream is not None:
                stream.stop()
        if self._pause is not None and not self._pause.done():
            self._pause.set_result(None)
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

    # -- as an iterator

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WorkspaceChangeEvent:
        await self.ready()
        if self._loop_stream is None and not self._stopped:
            self._loop_stream = self._stream()
        event = None if self._loop_stream is None else await self._loop_stream.next()
        if event is None:
            raise StopAsyncIteration
        return event

    # -- by callbacks

    def on(self, callback: EventCallback) -> Callable[[], None]:
        """Call `callback` with each event after the handle's cursor, one after the other; an async one is awaited.

        One that raises is reported to `on_error` and gets the next event, not the same again. With several, each event goes to all of
        them in the order in which they came.

        Args:
            callback: Takes a `WorkspaceChangeEvent`.

        Returns:
            A function that ends it. On a stopped watch nothing is called and it does nothing.

        Raises:
            InvalidInputError: It cannot be called (``INVALID_ARGUMENT``).

        Example:
            >>> handle = ws.watch(); unsubscribe = handle.on(print); unsubscribe(); await handle.stop()
        """
        if not callable(callback):
            raise InvalidInputError("callback must be callable.")
        if self._stopped:
            return lambda: None
        unsubscribe = self._callbacks.add(callback)
        if self._delivery is None or self._delivery.done():
            work = self._callbacks.serve(self._delivering)
            self._delivery = self._request.runtime.spawn(work)
        return unsubscribe

    async def _delivering(self) -> Stream | None:
        await self.ready()
        if self._callback_stream is None and not self._stopped:
            self._callback_stream = self._stream()
        return self._callback_stream

    # -- opening

    def _locate(self, namespace: str) -> Tailer:
        if self._tailer is None:
            partition = partition_name(self._request.workspace_id, namespace)
            self._tailer = self._poller.tailer(partition)
        return self._tailer

    async def _open(self) -> None:
        """Find where to begin; while the store fails, report it and try again."""
        tailer = self._locate(await self._request.namespace.get())
        failures = 0
        while not self._stopped:
            try:
                await self._beginning.find(tailer)
            except (InvalidInputError, StateError):
                raise
            except Exception as error:
                failures += 1
                delay_ms = back_off_ms(self._request.interval_ms, failures)
                await self._report(WatchError(as_known(error), failures, delay_ms))
                await self._wait(delay_ms / 1000)
            else:
                self._ready = True
                return

    async def _wait(self, seconds: float) -> None:
        if self._stopped:
            return
        self._pause = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait({self._pause}, timeout=seconds)
        finally:
            self._pause = None

    def _stream(self) -> Stream:
        assert self._tailer is not None
        known = (self._loop_stream, self._callback_stream)
        place = next((one.acknowledged for one in known if one is not None), self._beginning.place)
        assert place is not None
        namespace = self._request.namespace.known or ""
        return Stream(self._options, namespace, self._poller, self._tailer, place)

    async def _report(self, problem: WatchError) -> bool:
        if self._request.on_error is None:
            return False
        try:
            await awaited(self._request.on_error(problem))
        except Exception as error:
            _log.debug("on_error of a watch raised %s", type(error).__name__)
        return True
