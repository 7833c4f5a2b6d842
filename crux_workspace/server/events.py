"""Changes as server-sent events: resumed by cursor, with heartbeats, and a gap told as what it is."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from crux_workspace.errors import WatchGapError, WorkspaceError
from crux_workspace.events.watching import WatchHandle
from crux_workspace.model.events import WorkspaceChangeEvent
from crux_workspace.server.calls import Call
from crux_workspace.server.masking import shown_event

__all__ = ["event_text", "events"]

LAST_EVENT_ID = "last-event-id"
_RETRY_MS = 1_000
_HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-accel-buffering": "no",
}


async def events(call: Call) -> Response:
    """Open a watch and answer its events for as long as the client listens."""
    query = call.query
    watch = call.workspace.watch(
        query.path,
        recursive=query.recursive,
        cursor=call.request.headers.get(LAST_EVENT_ID) or query.cursor,
        start=query.start,
        poll_interval_ms=query.poll_interval_ms,
    )
    try:
        await watch.ready()
    except BaseException:
        await watch.stop()
        raise
    if call.request.method == "HEAD":
        await watch.stop()
    return _EventStream(call, watch)


def event_text(name: str, data: object, cursor: str | None = None) -> bytes:
    """Return one server-sent event."""
    head = "" if cursor is None else f"id: {cursor}\n"
    return f"{head}event: {name}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"


class _EventStream(Response):
    """Sends events until the client goes, the service stops, or events are lost."""

    def __init__(self, call: Call, watch: WatchHandle) -> None:
        super().__init__(None, 200, _HEADERS, "text/event-stream")
        del self.headers["content-length"]
        self._call = call
        self._watch = watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        service = self._call.service
        gone = asyncio.ensure_future(_disconnected(receive))
        stopping = asyncio.ensure_future(service.stopping.wait())
        try:
            with service.streaming():
                await self._send(send, gone, stopping)
        finally:
            await self._watch.stop()
            for task in (gone, stopping):
                task.cancel()

    async def _send(
        self, send: Send, gone: asyncio.Future[None], stopping: asyncio.Future[Any]
    ) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        cursor = self._watch.cursor
        ready = event_text("ready", {"cursor": cursor}, cursor)
        await self._put(send, f"retry: {_RETRY_MS}\n".encode() + ready)
        beat = self._call.service.limits.heartbeat_seconds
        coming = asyncio.ensure_future(anext(self._watch))
        told = cursor
        try:
            while True:
                waiting: set[asyncio.Future[Any]] = {coming, gone, stopping}
                await asyncio.wait(waiting, timeout=beat, return_when=asyncio.FIRST_COMPLETED)
                if gone.done() or stopping.done():
                    break
                if not coming.done():
                    await self._put(send, _beat(told, self._watch.cursor))
                    told = self._watch.cursor
                    continue
                text, more = self._told(coming)
                await self._put(send, text)
                if not more:
                    break
                coming = asyncio.ensure_future(anext(self._watch))
        finally:
            coming.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _told(self, coming: asyncio.Future[WorkspaceChangeEvent]) -> tuple[bytes, bool]:
        try:
            event = coming.result()
        except StopAsyncIteration:
            return b"", False
        except WatchGapError as error:
            return event_text("gap", error.to_dict(), self._watch.cursor), False
        except WorkspaceError as error:
            return event_text("error", error.to_dict()), False
        told = shown_event(self._call.principal, event)
        if told is None:
            return b"", True
        return event_text("change", told.to_dict(), event.cursor), True

    async def _put(self, send: Send, text: bytes) -> None:
        if not text:
            return
        async with asyncio.timeout(self._call.service.limits.idle_seconds):
            await send({"type": "http.response.body", "body": text, "more_body": True})


def _beat(told: str | None, cursor: str | None) -> bytes:
    """Say that the service is still there; and where, when events passed that are not for this client."""
    if cursor is None or cursor == told:
        return b": still here\n\n"
    return f"id: {cursor}\nevent: place\ndata: \n\n".encode()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
