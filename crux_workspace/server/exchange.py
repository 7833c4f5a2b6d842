"""Both directions of one request, as far as the service minds them: what has come in, what has gone out, and how fast."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from crux_workspace.server.limits import ServiceLimits

__all__ = ["Received", "Sent"]

_REST_BYTES, _REST_S, _REST_SILENT_S = 1 << 20, 1.0, 0.2
"""What is taken in of a refused body so that the connection can go on, and how long a client may be silent meanwhile."""
_LINGER_BYTES, _LINGER_S, _LINGER_SILENT_S = 64 << 20, 3.0, 1.0
"""What is thrown away of one before the connection is closed under it."""


class Received:
    """Knows whether a request's body has come in whole."""

    __slots__ = ("_asks_first", "_receive", "whole")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        names = dict(scope["headers"])
        self._receive = receive
        self._asks_first = names.get(b"expect", b"").lower() == b"100-continue"
        self.whole = (
            names.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in names
        )

    async def __call__(self) -> Message:
        """Return the next piece of the body, or that the client is gone."""
        self._asks_first = False
        message = await self._receive()
        if not message.get("more_body"):
            self.whole = True
        return message

    async def take_rest(self) -> None:
        """Take in what is left of a small body; a client that asks before it sends is not told to."""
        if not self._asks_first:
            await self._take(_REST_BYTES, _REST_S, _REST_SILENT_S)

    async def linger(self) -> None:
        """Throw away what a client still sends that was answered already: closed at once, it would lose the answer.

        That ends with the body, when the client falls silent, and after 64 MiB or 3 seconds.
        """
        await self._take(_LINGER_BYTES, _LINGER_S, _LINGER_SILENT_S)

    async def _take(self, most: int, seconds: float, silent_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while most > 0 and not self.whole:
                    async with asyncio.timeout(silent_s):
                        most -= len((await self()).get("body", b""))


class Sent:
    """Sends an answer to a client that takes it fast enough, and knows its status; 0 before there is one."""

    __slots__ = ("_limits", "_send", "_taken", "_waited", "status")

    def __init__(self, send: Send, limits: ServiceLimits) -> None:
        self._send = send
        self._limits = limits
        self._taken = 0
        self._waited = 0.0
        self.status = 0

    async def __call__(self, message: Message) -> None:
        """Send one message.

        Raises:
            TimeoutError: The client does not take what was sent before.
        """
        if message["type"] == "http.response.start":
            self.status = message["status"]
        began = monotonic()
        async with asyncio.timeout(self._limits.idle_seconds):
            await self._send(message)
        self._waited += monotonic() - began
        self._taken += len(message.get("body", b""))
        if message.get("more_body") and self._taken < self._limits.slowest_taken(self._waited):
            raise TimeoutError

    async def answer_early(self, answer: Response, received: Received) -> None:
        """Send a whole answer to a request whose body has not come whole, and close the connection once the client has read it."""
        answer.headers["connection"] = "close"
        await self(
            {
                "type": "http.response.start",
                "status": answer.status_code,
                "headers": answer.raw_headers,
            }
        )
        await self({"type": "http.response.body", "body": answer.body, "more_body": True})
        await received.linger()
        await self({"type": "http.response.body", "body": b"", "more_body": False})
