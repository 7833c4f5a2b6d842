"""One database as the stores use it: connections, single statements, reads that survive a restart, and transactions that hold a lock."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

import asyncpg

from crux_workspace.errors import InvalidInputError, StorageError
from crux_workspace.storage.failures import closed_error, forked_error, wrong_loop_error
from crux_workspace.storage.guessing import Guesses
from crux_workspace.storage.layout import META_KEY
from crux_workspace.storage.records import PreconditionFailed
from storage_adapters.sql.postgres.address import Address
from storage_adapters.sql.postgres.failures import (
    LOST,
    breaks,
    is_contended,
    is_lost,
    translated,
)
from storage_adapters.sql.postgres.pool import Connection, Pool
from storage_adapters.sql.postgres.texts import Texts

__all__ = ["Database", "Query", "Rows", "connect"]

T = TypeVar("T")
Rows: TypeAlias = Sequence[Any]
Query: TypeAlias = Generator[tuple[str, Sequence[Any]], Rows, T]
"""A read: it yields statements with their parameters, and is sent their rows."""

_READ_ATTEMPTS = 3
_FIRST_PAUSE_S = 0.05
_GRACE_S = 5.0
"""How much longer than the server's own limit the client waits for an answer."""
_CACHED_STATEMENTS = 256
_DEAD_CLIENT_MS = 10_000
_STANDING_STILL_MS = 30_000

_BEGIN = "begin isolation level read committed"
"""Whatever the database's default is: each statement must see what was committed before it."""

_PLANNING = {
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_seqscan": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
}
"""Every statement walks an index by key; without these the plan of a table that was never analysed may read all of it."""


async def connect(address: Address, **settings: str) -> Connection:
    """Make a connection; through a transaction-pooling proxy nothing is set on it and no statement is kept."""
    how: dict[str, Any] = {"statement_cache_size": 0}
    if not address.options.proxied:
        how = {
            "statement_cache_size": _CACHED_STATEMENTS,
            "max_cached_statement_lifetime": 0,
            "server_settings": {**_settings(address), **settings},
        }
    try:
        return await asyncpg.connect(
            address.dsn, timeout=address.options.connect_timeout_ms / 1000, **how
        )
    except ssl.SSLError:  # a certificate that is not trusted is a `ValueError` too
        raise
    except (ValueError, asyncpg.ClientConfigurationError):
        # Not chained: the driver repeats what it was given, and that may be half of a password.
        raise InvalidInputError(
            "The driver cannot read the PostgreSQL URL: check its options, such as sslmode, and percent-encode special characters.",
        ) from None


def _settings(address: Address) -> dict[str, str]:
    options = address.options
    return {
        **_PLANNING,
        "default_transaction_isolation": "read committed",
        "client_connection_check_interval": str(_DEAD_CLIENT_MS),
        "idle_in_transaction_session_timeout": str(_STANDING_STILL_MS),
        "lock_timeout": str(options.lock_timeout_ms),
        "statement_timeout": str(options.statement_timeout_ms),
    }


class Database:
    """The connections that the stores of one URL share; the last store that closes closes them."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.texts = Texts(address.options.schema)
        options = address.options
        self.timeout_s = options.statement_timeout_ms / 1000 + _GRACE_S
        """How long an answer is waited for."""
        self.is_proxied = options.proxied
        settings = _settings(address) if options.proxied else {}
        self._begin = "; ".join(
            [_BEGIN, *(f"set local {name} = '{value}'" for name, value in settings.items())]
        )
        self.guesses = Guesses()
        """What is known of records without reading them, as long as connections lead to the servers that told."""
        self.pool = Pool(
            lambda: connect(address),
            options.pool_size,
            wait_s=options.connect_timeout_ms / 1000,
            changing=self.guesses.forget,
        )
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._users = 0
        self._closed = False

    def __repr__(self) -> str:
        return f"Database({self.address.shown!r})"

    @property
    def is_elsewhere(self) -> bool:
        """Whether this is a forked child of the process that it belongs to."""
        return os.getpid() != self._pid

    def check(self) -> None:
        """Refuse a call that cannot work here.

        Raises:
            StateError: The database is closed, or belongs to another process or loop.
        """
        if self.is_elsewhere:
            raise forked_error()
        if self._closed:
            raise closed_error()
        self.check_loop()

    def check_loop(self) -> None:
        """Refuse a call from another loop than the one that connections belong to.

        Raises:
            StateError: It is another one.
        """
        if asyncio.get_running_loop() is not self._loop:
            raise wrong_loop_error()

    def check_since(self, since: int | None) -> None:
        """Refuse a batch whose plan may have read another server than a connection leads to by now.

        Raises:
            PreconditionFailed: A connection was made since then.
        """
        if since is not None and since != self.guesses.generation and not self.is_proxied:
            raise PreconditionFailed("revision", META_KEY)

    def enter(self) -> Database:
        """Note one more store that uses it."""
        self._users += 1
        return self

    async def leave(self) -> None:
        """Note that a store uses it no longer; the last one waits until everything is closed. In a forked child it does nothing."""
        if self.is_elsewhere:
            return
        self._users -= 1
        if self._users <= 0:
            self._closed = True
            await self.pool.aclose()

    # -- single statements

    async def rows(self, connection: Connection, text: str, parameters: Sequence[Any]) -> Rows:
        """Run one statement by itself."""
        if not self.is_proxied or connection.is_in_transaction():
            return await connection.fetch(text, *parameters, timeout=self.timeout_s)
        # One statement takes several messages; only inside a transaction do they all reach the same server.
        await connection.execute(self._begin, timeout=self.timeout_s)
        try:
            found = await connection.fetch(text, *parameters, timeout=self.timeout_s)
        except asyncpg.PostgresError:
            await self.roll_back(connection)
            raise
        await connection.execute("commit", timeout=self.timeout_s)
        return found

    async def roll_back(self, connection: Connection) -> None:
        """End a transaction that failed; a connection that cannot even do that is given back unusable."""
        if connection.is_closed() or not connection.is_in_transaction():
            return
        try:
            await connection.execute("rollback", timeout=self.timeout_s)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
            connection.terminate()

    # -- reads

    async def read(self, query: Callable[[], Query[T]]) -> T:
        """Run a read to its end, again from its start when a connection breaks.

        Raises:
            StorageError: The server cannot be reached, or failed the read.
        """
        self.check()
        for attempt in range(_READ_ATTEMPTS):
            try:
                return await self._read(query)
            except (asyncpg.PostgresError, *LOST) as error:
                again = is_lost(error) and not isinstance(error, TimeoutError)
                if not again or attempt == _READ_ATTEMPTS - 1:
                    raise translated(error) from error
            except StorageError as error:
                if error.__cause__ is None or attempt == _READ_ATTEMPTS - 1:
                    raise
                if not error.retryable:
                    raise
            await asyncio.sleep(_FIRST_PAUSE_S * attempt * (attempt + 2))
        raise AssertionError("unreachable")

    async def _read(self, query: Callable[[], Query[T]]) -> T:
        # Not `reading()`: a context manager is a twentieth of a read.
        connection = await self.pool.acquire()
        try:
            value = await self.run(connection, query())
        except BaseException as error:
            self.pool.release(connection, broken=breaks(error))
            raise
        self.pool.release(connection)
        return value

    async def run(self, connection: Connection, query: Query[T]) -> T:
        """Run a read on a connection, statement by statement."""
        try:
            request = next(query)
            while True:
                request = query.send(await self.rows(connection, *request))
        except StopIteration as stop:
            value: T = stop.value
            return value

    # -- transactions

    @asynccontextmanager
    async def holding(self, partition: str) -> AsyncIterator[Connection]:
        """Hold the write lock of a partition; the block ends the transaction itself, or it is rolled back."""
        async with self.pool.writing() as connection:
            try:
                try:
                    await connection.execute(self._begin, timeout=self.timeout_s)
                    await connection.fetch(self.texts.enter, partition, timeout=self.timeout_s)
                except (asyncpg.PostgresError, *LOST) as error:
                    raise translated(error) from error
                yield connection
            except BaseException as error:
                if not breaks(error):  # else the connection is closed, and its transaction with it
                    await self.roll_back(connection)
                raise

    async def commit(self, connection: Connection) -> None:
        """End the transaction of a block of `holding`."""
        await connection.execute("commit", timeout=self.timeout_s)

    async def change(self, text: str, parameters: Sequence[Any]) -> Rows:
        """Run a statement that changes something and may be repeated; again when another transaction was preferred."""
        self.check()
        for attempt in range(_READ_ATTEMPTS):
            try:
                async with self.pool.writing() as connection:
                    return await self.rows(connection, text, parameters)
            except (asyncpg.PostgresError, *LOST) as error:
                if not is_contended(error) or attempt == _READ_ATTEMPTS - 1:
                    raise translated(error) from error
        raise AssertionError("unreachable")
