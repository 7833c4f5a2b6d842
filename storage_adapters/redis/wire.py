"""One connection that many callers share: commands go out as they come, answers are given out in order.

The driver makes the connection (TLS, user, database); from then on the bytes go through a protocol of our own, so that nobody waits for
somebody else's answer before sending, an answer costs one step of the loop, and a connection that stays silent is given up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from storage_adapters.redis.driver import AbstractConnection, exceptions, hiredis

__all__ = ["Command", "Lost", "Silent", "Wire", "pack", "packed"]

Command = tuple[Any, ...]

_SLOWEST_BYTES_PER_S = 4 << 20
"""What a command carries is given this pace before the connection counts as silent."""


class Lost(Exception):
    """The connection ended.

    Attributes:
        sent: Whether the command may have reached the server.
    """

    def __init__(self, *, sent: bool) -> None:
        super().__init__()
        self.sent = sent


class Silent(Exception):
    """The server did not answer in time."""


class _Pending:
    """Who waits for the next replies."""

    __slots__ = ("began", "future", "replies", "size", "wanted")

    def __init__(
        self, future: asyncio.Future[list[Any]], wanted: int, size: int, began: float
    ) -> None:
        self.future = future
        self.wanted = wanted
        self.replies: list[Any] = []
        self.size = size
        self.began = began


def pack(command: Command) -> bytes:
    """Write a command as the protocol wants it."""
    written: bytes = hiredis.pack_command(command)
    return written


def packed(commands: Sequence[Command]) -> bytes:
    """Write several commands one behind the other."""
    return b"".join(map(pack, commands))


class Wire(asyncio.Protocol):
    """An open connection to one server."""

    def __init__(self, connection: AbstractConnection, timeout_s: float) -> None:
        """Use `open`."""
        self._stream = _take_over(connection)
        self._transport = self._stream.transport
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(replyError=exceptions.ResponseError)
        self._pending: deque[_Pending] = deque()
        self._waiting: list[bytes] = []
        self._heard = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self.closed: asyncio.Future[None] = self._loop.create_future()
        """Done when nothing is open any more."""
        self.on_message: Callable[[bytes], None] | None = None
        """Gets what is published on the channels that the connection is subscribed to."""
        self.error: BaseException | None = None
        """Why the connection is no longer used; None while it is."""

    @classmethod
    async def open(cls, connection: AbstractConnection, timeout_s: float) -> Wire:
        """Connect.

        Raises:
            RedisError: The server cannot be reached, or refuses the user or the database.
            TimeoutError: It takes connections and says nothing.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await connection.connect()  # type: ignore[no-untyped-call]
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        wire = cls(connection, timeout_s)
        wire._transport.set_protocol(wire)
        if wire._transport.is_closing():
            wire.abandon(exceptions.ConnectionError("the connection was closed"))
        return wire

    def call(self, written: bytes, wanted: int = 1) -> asyncio.Future[list[Any]]:
        """Send packed commands; the future gets their `wanted` replies. A refused command's reply is an exception object.

        It ends with `Lost` when the connection ends first; the `__cause__` says why.
        """
        future: asyncio.Future[list[Any]] = self._loop.create_future()
        if self.error is not None:
            future.set_exception(_lost(self.error, sent=False))
            return future
        now = self._loop.time()
        if self._watch is None:
            self._heard = now
            self._watch = self._loop.call_later(self._timeout_s, self._look)
        if not self._pending:
            self._transport.write(written)
        else:  # others are at it too: what they all send in this step of the loop goes out at once
            if not self._waiting:
                self._loop.call_soon(self._flush)
            self._waiting.append(written)
        self._pending.append(_Pending(future, wanted, len(written), now))
        return future

    def abandon(self, error: BaseException | None = None) -> None:
        """Stop using the connection; calls that wait are told that it is lost."""
        if self.error is not None:
            return
        self.error = error or exceptions.ConnectionError("the connection was closed")
        if self._watch is not None:
            self._watch.cancel()
        while self._pending:
            future = self._pending.popleft().future
            if not future.done():
                future.set_exception(_lost(self.error, sent=True))
        self._transport.abort()

    async def aclose(self) -> None:
        """Close the connection, and wait until it is; who is cancelled meanwhile disturbs nobody else who waits."""
        self.abandon()
        await asyncio.wait({self.closed})

    def data_received(self, data: bytes) -> None:
        """Hand out the answers that are complete."""
        reader = self._reader
        try:
            reader.feed(data)
            while (reply := reader.gets()) is not False:
                self._take(reply)
        except (hiredis.HiredisError, IndexError) as error:
            self.abandon(error)

    def connection_lost(self, error: Exception | None) -> None:
        """Tell everybody who waits."""
        self.abandon(error or exceptions.ConnectionError("the server closed the connection"))
        if not self.closed.done():
            self.closed.set_result(None)

    def _flush(self) -> None:
        if self.error is None:
            self._transport.write(b"".join(self._waiting))
        self._waiting.clear()

    def _take(self, reply: Any) -> None:  # noqa: ANN401 - what the server says
        if self.on_message is not None and isinstance(reply, list) and reply[0] == b"message":
            self.on_message(reply[2])
            return
        pending = self._pending[0]
        pending.replies.append(reply)
        if len(pending.replies) == pending.wanted:
            self._pending.popleft()
            self._heard = self._loop.time()
            if not pending.future.done():
                pending.future.set_result(pending.replies)

    def _look(self) -> None:
        """Give the connection up when its oldest command has waited too long; else look again later."""
        self._watch = None
        if not self._pending:
            return
        oldest = self._pending[0]
        due = max(oldest.began, self._heard) + self._timeout_s
        due += oldest.size / _SLOWEST_BYTES_PER_S
        if due <= self._loop.time():
            self.abandon(Silent())
        else:
            self._watch = self._loop.call_at(due, self._look)


def _lost(cause: BaseException, *, sent: bool) -> Lost:
    lost = Lost(sent=sent)
    lost.__cause__ = cause
    return lost


def _take_over(connection: AbstractConnection) -> asyncio.StreamWriter:
    """Take an open stream away from the driver's connection, which is then closed for it; there is no public way to it."""
    writer = connection._writer
    if writer is None:
        raise exceptions.ConnectionError("the connection was closed")
    connection._writer = connection._reader = None
    return writer
