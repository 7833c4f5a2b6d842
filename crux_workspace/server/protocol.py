"""HTTP/1.1 on one connection: uvicorn's own, which does not wait for ever for headers and refuses as everything here refuses."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from crux_workspace.errors import ErrorCode
from crux_workspace.server.limits import ServiceLimits
from crux_workspace.server.problems import Refusal, problem

__all__ = ["GuardedProtocol"]

_EVENTS = "/v1/events"
_LINGER_S = 1.0


class GuardedProtocol(HttpToolsProtocol):
    """Bounds what a client may send before its request is understood, and how long it may take for that.

    A client that closes its sending half still gets the answer to the request that it had sent whole.
    """

    def __init__(self, *, limits: ServiceLimits, **options: Any) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(**options)
        self._limits = limits
        self._unread = 0
        self._in_headers = False
        self._waiting: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - asyncio's
        """Begin to wait for a request, unless there are too many connections."""
        super().connection_made(transport)
        if len(self.connections) > self._limits.max_connections:
            self._refuse(503, "The service is busy: too many connections at once.")
        else:
            self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Keep the connection open while a whole request is being answered."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete or cycle.more_body:
            return None
        path = self.scope["path"]
        if path == _EVENTS or not path.startswith("/v1/"):
            return None
        cycle.keep_alive = False
        return True

    def data_received(self, data: bytes) -> None:
        """Parse, and refuse headers without end."""
        if self._refused:
            return
        self._unread += len(data)
        super().data_received(data)
        if self._is_over():
            return
        cycle: RequestResponseCycle | None = self.cycle
        idle = cycle is None or cycle.response_complete
        if not self._in_headers and not idle:
            self._unread = 0
        elif self._unread > self._limits.max_header_bytes:
            self._refuse(431, f"The headers have more than {self._limits.max_header_bytes} bytes.")
        elif self._waiting is None:
            self._await_headers()

    def _is_over(self) -> bool:
        return self._refused or self.transport.is_closing()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_headers = True

    def on_headers_complete(self) -> None:
        """Its headers are there."""
        self._in_headers = False
        self._unread = 0
        self._stop_waiting()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self._refuse(400, "The request is not valid HTTP.")

    def _await_headers(self) -> None:
        self._waiting = self.loop.call_later(self._limits.idle_seconds, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _too_slow(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self._refuse(408, "The request's headers did not come.")

    def _refuse(self, status: int, detail: str) -> None:
        """Answer without the application, unless it is just answering something else, and close."""
        self._stop_waiting()
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and cycle.response_started and not cycle.response_complete:
            self.transport.close()
            return
        code = ErrorCode.STORE_UNAVAILABLE if status == 503 else ErrorCode.INVALID_ARGUMENT
        answer = problem(Refusal(status, detail, code=code, close=True))
        lines = [f"HTTP/1.1 {status} -".encode()]
        lines += [name + b": " + value for name, value in answer.raw_headers]
        self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + bytes(answer.body))
        # What the client still sends is thrown away for a moment: closing at once would take the answer from it.
        self._refused = True
        self.transport.write_eof()
        self.loop.call_later(_LINGER_S, self.transport.close)
