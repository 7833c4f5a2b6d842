"""The connections of one store.

asyncpg's own pool runs a statement, or at least a task and a timer, for every connection that is given back: 25 µs of a read that
takes 70. This one keeps connections in a list. What went through a failure is never given back.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import asyncpg

from crux_workspace.storage.failures import closed_error
from storage_adapters.sql.postgres.failures import (
    LOST,
    breaks,
    connection_error,
    is_read_only,
    pool_error,
)
from storage_adapters.sql.postgres.queueing import Places, given_up

__all__ = ["Connection", "Pool"]

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

_LONGEST_IDLE_S = 240.0
"""Connections idle for longer are not used again: what stands between may have forgotten them without a word."""
_CLOSING_S = 2.0


class Pool:
    """At most `size` connections, made when they are needed; the one used last is used next.

    Writers may hold all but a quarter of them, so that commits that wait for a lock leave some to readers.
    """

    def __init__(
        self,
        connect: Callable[[], Coroutine[Any, Any, Connection]],
        size: int,
        *,
        wait_s: float,
        changing: Callable[[], None] = lambda: None,
    ) -> None:
        """Connect to nothing yet.

        Args:
            connect: Makes a connection.
            size: How many there are at most.
            wait_s: How long one is waited for.
            changing: Called before and after a connection is made, and when all are given up: from then on answers may come from
                another server.
        """
        self._connect = connect
        self._changing = changing
        self._size = size
        self._wait_s = wait_s
        self._idle: list[tuple[Connection, float]] = []
        self._open = 0
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()
        self._writers = Places(max(1, size - (size + 3) // 4), wait_s, pool_error)
        self._generation = 0
        self._generations: dict[Connection, int] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def open(self) -> int:
        """How many connections there are, those that are being made included."""
        return self._open

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Connection]:
        """Give a connection for a commit."""
        await self._writers.enter()
        try:
            connection = await self.acquire()
            try:
                yield connection
            except BaseException as error:
                # The primary that these connections led to is none any more.
                if is_read_only(error):
                    self.expire()
                self.release(connection, broken=breaks(error))
                raise
            self.release(connection)
        finally:
            self._writers.leave()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        """Give a connection for a read."""
        connection = await self.acquire()
        try:
            yield connection
        except BaseException as error:
            self.release(connection, broken=breaks(error))
            raise
        self.release(connection)

    async def acquire(self) -> Connection:
        """Give a connection; whoever gets it gives it back by `release`.

        Raises:
            StorageError: The server cannot be reached (``STORE_UNAVAILABLE``), or no connection came free (``STORE_TIMEOUT``).
        """
        if self._closed:
            raise closed_error()
        fresh = time.monotonic() - _LONGEST_IDLE_S
        while self._idle:
            connection, since = self._idle.pop()
            if since >= fresh and self._is_usable(connection):
                return connection
            self._discard(connection)
        if self._open < self._size:
            self._open += 1
            self._empty.clear()
            return await self._make()
        return await self._wait()

    def release(self, connection: Connection, *, broken: bool = False) -> None:
        """Take a connection back; one that is broken, or still in a transaction, is closed."""
        if broken or self._closed or not self._is_usable(connection):
            self._discard(connection)
            return
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return
        self._idle.append((connection, time.monotonic()))

    def expire(self) -> None:
        """Use no connection again that is open now: the server behind them is no longer the right one."""
        self._generation += 1
        self._changing()

    async def aclose(self) -> None:
        """Wait until all connections are given back and closed."""
        self._closed = True
        while self._idle:
            self._discard(self._idle.pop()[0])
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(closed_error())
        self._waiting.clear()
        await self._empty.wait()
        while self._closing:
            await asyncio.wait(set(self._closing))

    def _is_usable(self, connection: Connection) -> bool:
        return (
            not connection.is_closed()
            and not connection.is_in_transaction()
            and self._generations.get(connection) == self._generation
        )

    async def _make(self) -> Connection:
        """Make a connection in a place that is taken already."""
        generation = self._generation
        self._changing()
        # In a task of its own, for the driver's timeout belongs to the task that it began in, and ours may be any.
        making = asyncio.get_running_loop().create_task(self._connect())
        try:
            connection = await making
        except BaseException as error:
            if making.done() and not making.cancelled() and making.exception() is None:
                making.result().terminate()  # it was ready in the step in which its owner was cancelled
            self._left()
            if isinstance(error, (*LOST, asyncpg.PostgresError)):
                raise connection_error(error) from error
            raise
        self._generations[connection] = generation
        self._changing()
        return connection

    async def _wait(self) -> Connection:
        waiter: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        timer = given_up(waiter, self._wait_s, pool_error)
        try:
            connection = await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                given = waiter.result()
                if given is not None:
                    self.release(given)
                else:
                    self._left()
            waiter.cancel()
            raise
        finally:
            timer.cancel()
        return connection if connection is not None else await self._make()

    def _discard(self, connection: Connection) -> None:
        self._generations.pop(connection, None)
        if connection.is_closed():
            connection.terminate()
        else:
            task = asyncio.get_running_loop().create_task(_close(connection))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        self._left()

    def _left(self) -> None:
        self._open -= 1
        if self._open == 0:
            self._empty.set()
        self._next()

    def _next(self) -> None:
        """Give a free place to the next who waits, to make a connection of its own."""
        while self._waiting and self._open < self._size:
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._open += 1
                self._empty.clear()
                waiter.set_result(None)
                return


async def _close(connection: Connection) -> None:
    """Close politely, which also ends what the server is still working on; else at once."""
    try:
        await connection.close(timeout=_CLOSING_S)
    except Exception:
        with contextlib.suppress(Exception):
            connection.terminate()
