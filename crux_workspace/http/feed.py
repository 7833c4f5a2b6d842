"""One consumer's way along the log: connected, and connected again right behind what it was given."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from crux_workspace.errors import WatchGapError, WorkspaceError
from crux_workspace.events.delivery import awaited
from crux_workspace.events.poller import back_off_ms
from crux_workspace.http import decoding
from crux_workspace.http.calling import Caller
from crux_workspace.http.connection import Broken, Request
from crux_workspace.http.frames import Frame, frames
from crux_workspace.http.problems import corrupt, error_of_problem, unexpected
from crux_workspace.model.events import OnError, WatchError, WorkspaceChangeEvent

__all__ = ["Feed", "Reporter", "Wanted"]

_T = TypeVar("_T")
_SILENT_S = 60.0
"""A service that says nothing for so long, not even that it is there, counts as gone."""
_MAX_CURSOR_CHARACTERS = 1_024
_log = logging.getLogger("crux_workspace")
_event = decoding.of(WorkspaceChangeEvent)


class Reporter:
    """Tells who asked for it what goes wrong on the way."""

    def __init__(self, on_error: OnError | None) -> None:
        self._on_error = on_error

    async def __call__(self, problem: WatchError) -> bool:
        """Report a problem; False when nobody asked to be told."""
        if self._on_error is None:
            return False
        try:
            await awaited(self._on_error(problem))
        except Exception as error:
            _log.debug("on_error of a watch raised %s", type(error).__name__)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is watched, and from where on."""

    arguments: Mapping[str, Any] = field(repr=False)
    """Path, depth and interval, as the query has them."""
    namespace: str | None
    place: str | None
    start: Literal["tail", "oldest"]
    interval_ms: int


class Feed:
    """Delivers events in order, each once; what was not asked for stays with the service.

    Attributes:
        acknowledged: The place behind everything that the consumer is done with; None until it is known.
        stopped: No further event will come.
    """

    def __init__(self, caller: Caller, wanted: Wanted, report: Reporter) -> None:
        self._caller = caller
        self._wanted = wanted
        self._report = report
        self._place = self.acknowledged = wanted.place
        self._start = wanted.start
        self._stream: AsyncGenerator[Frame, None] | None = None
        self._failures = 0
        self._again: WorkspaceChangeEvent | None = None
        self._given: WorkspaceChangeEvent | None = None
        self._turn = asyncio.Lock()
        self._coming: asyncio.Task[WorkspaceChangeEvent | None] | None = None
        self.stopped = False
        self.tried: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when it knows where it begins, or failed to find out at once."""
        self._opening = _spawn(self._open())

    def then(self) -> Feed:
        """Return another one that goes on where this one's consumer is."""
        start = self._start if self.acknowledged is None else "tail"
        wanted = replace(self._wanted, place=self.acknowledged, start=start)
        return Feed(self._caller, wanted, self._report)

    async def ready(self) -> None:
        """Wait until it knows where it begins.

        Raises:
            WorkspaceError: The service refuses to let it.
        """
        await asyncio.wait({self._opening})
        if not self._opening.cancelled():
            self._opening.result()

    async def next(self) -> WorkspaceChangeEvent | None:
        """Wait for the next event; asking says that the one before is done with. None when stopped.

        Nothing is lost when the wait is cancelled.

        Raises:
            WatchGapError: Events are lost and nobody else wanted to know; the next call goes on at the oldest one.
            WorkspaceError: The service refuses to go on, or sends what is no event.
        """
        async with self._turn:
            self.settle()
            await self.ready()
            event, self._again = self._again, None
            if event is None and not self.stopped:
                event = await self._arrived()
            if event is not None:
                self._given, self._place = event, event.cursor
            return event

    async def _arrived(self) -> WorkspaceChangeEvent | None:
        if self._coming is None:
            self._coming = _spawn(self._advance())
        await asyncio.wait({self._coming})
        coming, self._coming = self._coming, None
        return None if coming.cancelled() else coming.result()

    def settle(self) -> None:
        """The consumer is done with what it was given."""
        self.acknowledged, self._given = self._place, None

    def give_back(self) -> None:
        """Deliver again what was given and not settled."""
        self._again = self._given
        self._place = self.acknowledged

    async def stop(self) -> None:
        """End it; who waits gets None."""
        self.stopped = True
        tasks = [task for task in (self._opening, self._coming) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await self._disconnect()
        self._resolve()

    def abandon(self) -> None:
        """End it without waiting: nobody holds the watch any more."""
        self.stopped = True
        for task in (self._opening, self._coming):
            if task is not None:
                task.cancel()
        self._resolve()

    # -- on the wire

    async def _open(self) -> None:
        try:
            while not await self._begin():
                pass
        finally:
            self._resolve()

    async def _begin(self) -> bool:
        try:
            self._take_place(await anext(self._connected()))
        except (Broken, StopAsyncIteration) as broken:
            await self._failed(broken)
            return False
        except WorkspaceError:
            await self._disconnect()
            raise
        return True

    def _take_place(self, frame: Frame) -> None:
        if frame.name == "error":
            raise _error_of(frame)
        if frame.name != "ready" or frame.id is None:
            raise corrupt("an event stream that does not begin with 'ready'")
        if self._place is None:
            self._place = self.acknowledged = _cursor(frame.id)

    async def _advance(self) -> WorkspaceChangeEvent | None:
        """Return the next event, from a new connection where the one before has ended."""
        while True:
            try:
                if self._stream is None and not await self._begin():
                    continue
                frame = await anext(self._connected())
            except (Broken, StopAsyncIteration) as broken:
                await self._failed(broken)
                continue
            except WorkspaceError:
                await self._disconnect()
                raise
            if frame.name == "change":
                self._failures = 0
                return _event_of(frame)
            await self._told(frame)

    async def _told(self, frame: Frame) -> None:
        """Take in what is no change."""
        if frame.name == "place" and frame.id is not None and self._given is None:
            self._place = self.acknowledged = _cursor(frame.id)
        elif frame.name == "gap":
            await self._disconnect()
            self._place = self.acknowledged = None if frame.id is None else _cursor(frame.id)
            self._start = "oldest"
            lost = _error_of(frame)
            if not isinstance(lost, WatchGapError):
                raise corrupt("a gap that is none")
            if not await self._report(WatchError(lost, 1, 0)):
                raise lost
        elif frame.name == "error":
            await self._disconnect()
            error = _error_of(frame)
            if not error.retryable:
                raise error
            await self._failed(Broken(error, arrived=True))

    def _connected(self) -> AsyncGenerator[Frame, None]:
        if self._stream is None:
            self._stream = self._frames()
        return self._stream

    async def _frames(self) -> AsyncGenerator[Frame, None]:
        arguments = dict(self._wanted.arguments)
        headers = {"Accept": "text/event-stream", **self._caller.headers()}
        if self._place is None:
            arguments["start"] = self._start
        else:
            headers["Last-Event-ID"] = self._place
        query = await self._caller.query(self._wanted.namespace, arguments)
        request = Request("GET", "/v1/events", query, headers)
        connection = self._caller.core.connection
        async with connection.opened(request, idle_s=_SILENT_S) as answer:
            kind = answer.headers.get("content-type", "")
            if answer.status != 200 or not kind.startswith("text/event-stream"):
                raise unexpected(answer.status, answer.headers, "an event stream")
            async for frame in frames(answer.body):
                yield frame

    async def _failed(self, broken: BaseException) -> None:
        """Report that the service is not there, and wait before it is asked again; a stream that ended well is only begun anew."""
        await self._disconnect()
        self._resolve()
        self._failures += 1
        delay_ms = back_off_ms(self._wanted.interval_ms, self._failures)
        if isinstance(broken, Broken):
            await self._report(WatchError(broken.error, self._failures, delay_ms))
        await asyncio.sleep(delay_ms / 1000)

    async def _disconnect(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            async with aclosing(stream):
                pass

    def _resolve(self) -> None:
        if not self.tried.done():
            self.tried.set_result(None)


def _spawn(work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
    """Begin work whose failure need not be asked for."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


def _cursor(text: str) -> str:
    if (
        not text
        or len(text) > _MAX_CURSOR_CHARACTERS
        or not text.isascii()
        or not text.isprintable()
    ):
        raise corrupt("a cursor that is none")
    return text


def _event_of(frame: Frame) -> WorkspaceChangeEvent:
    event = _event(frame.json())
    _cursor(event.cursor)
    return event


def _error_of(frame: Frame) -> WorkspaceError:
    """Return the error that a frame tells of, which may be a problem or an error as plain data."""
    told = frame.json()
    if "code" not in told:
        raise corrupt("an error without a code")
    return error_of_problem({**told, "detail": told.get("detail", told.get("message"))})
