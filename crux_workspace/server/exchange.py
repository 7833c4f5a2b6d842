"""Both directions of one request, as far as the service minds them: what has come in, what has gone out, and how fast."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic

from starlette.types import Message, Receive, Scope, Send

from crux_workspace.server.limits import ServiceLimits

__all__ = ["Received", "Sent"]

_LEFT_BYTES = 1 << 20
_LEFT_S = 1.0


class Received:
    """Knows whether a request's body has come in whole."""

    __slots__ = ("_receive", "whole")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        names = dict(scope["headers"])
        self._receive = receive
        self.whole = (
            names.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in names
        )

    async def __call__(self) -> Message:
        """Return the next piece of the body, or that the client is gone."""
        message = await self._receive()
        if not message.get("more_body"):
            self.whole = True
        return message

    async def take_rest(self) -> None:
        """Take in what is left of a small body, so that a client that is still sending sees why it was refused."""
        left = _LEFT_BYTES
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEFT_S):
                while left > 0 and not self.whole:
                    left -= len((await self()).get("body", b""))


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
