"""Word of commits between processes: NOTIFY after the commit, on a connection of its own.

A notification inside the commit's transaction would make all commits of the database queue up behind one lock. Here it is a hint
that follows the commit: at once after a while of silence, else many commits to one message, one each `_COALESCE_S`. Payloads name
partitions by a hash, for every user of the database may listen. Whoever misses a hint learns by polling.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Callable, Iterable

import asyncpg

from crux_workspace.errors import WorkspaceError
from storage_adapters.sql.postgres import reading
from storage_adapters.sql.postgres.database import Database, connect
from storage_adapters.sql.postgres.failures import LOST
from storage_adapters.sql.postgres.pool import Connection

__all__ = ["HEARTBEAT_S", "Waker", "channel_of"]

HEARTBEAT_S = 5.0
"""How often a silent connection is asked whether it is alive, and how long it may take to answer."""

_COALESCE_S = 0.01
_LARGEST_PAYLOAD = 7_900
_MOST_PENDING = 10_000
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0

_SEND = "select pg_notify($1, payload) from unnest($2::text[]) payload"

_log = logging.getLogger("crux_workspace")

Heard = Callable[[int], None]


def channel_of(schema: str) -> str:
    """Return the channel of one schema."""
    return f"crux_workspace_{hashlib.sha256(schema.encode()).hexdigest()[:16]}"


def mark_of(partition: str) -> str:
    """Return what stands for a partition in a payload."""
    return hashlib.sha256(partition.encode()).hexdigest()[:24]


class Waker:
    """Sends and hears word of commits; connects when there is first something to send or to hear."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._channel = channel_of(database.address.options.schema)
        self._listeners: dict[str, list[tuple[str, Heard]]] = {}
        self._pending: dict[tuple[str, bool], int] = {}
        """What is to be told of partitions, by their marks; a drop is told apart from the commits after it."""
        self._news = asyncio.Event()
        self._next_send = 0.0
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    def tell(self, partition: str, sequence: int) -> None:
        """Let others know of a commit; 0 says that the partition was dropped."""
        if len(self._pending) >= _MOST_PENDING:  # nobody could be told for long; they poll
            self._pending.clear()
        self._pending[mark_of(partition), sequence == 0] = sequence
        self._news.set()
        self._start()

    def listen(self, partition: str, heard: Heard) -> Callable[[], None]:
        """Call `heard` with the sequence of each commit that others tell of; returns what ends it."""
        mark, entry = mark_of(partition), (partition, heard)
        self._listeners.setdefault(mark, []).append(entry)
        self._start()

        def leave() -> None:
            entries = self._listeners.get(mark, [])
            if entry in entries:
                entries.remove(entry)
            if not entries:
                self._listeners.pop(mark, None)

        return leave

    async def aclose(self) -> None:
        """Send what is still to be told, if that can be done soon, and disconnect."""
        self._closing = True
        self._news.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=1.0)
            self._task.cancel()
            await asyncio.wait([self._task])
        self._listeners.clear()

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        """Stay connected; what cannot be sent now is sent by the next connection."""
        pause = _FIRST_PAUSE_S
        while not self._closing or self._pending:
            connection: Connection | None = None
            began = asyncio.get_running_loop().time()
            try:
                connection = await connect(self._database.address.direct, synchronous_commit="off")
                await self._attend(connection)
            except (asyncpg.PostgresError, *LOST, WorkspaceError) as error:
                _log.debug("word of commits is interrupted: %s", type(error).__name__)
                if self._closing:
                    return
                if asyncio.get_running_loop().time() - began > _LONGEST_PAUSE_S:
                    pause = _FIRST_PAUSE_S  # it had been well
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            finally:
                if connection is not None:
                    connection.terminate()

    async def _attend(self, connection: Connection) -> None:
        """Listen and send until the connection breaks or all is over."""
        ended = asyncio.get_running_loop().create_future()
        connection.add_termination_listener(lambda _: _resolve(ended))
        if not self._closing:
            await connection.add_listener(self._channel, self._hear)
            await self._catch_up()
        waiting: asyncio.Task[bool] | None = None
        try:
            while not (self._closing and not self._pending):
                waiting = waiting or asyncio.create_task(self._news.wait())
                await asyncio.wait(
                    (waiting, ended),
                    timeout=HEARTBEAT_S,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if connection.is_closed():
                    raise asyncpg.InterfaceError("closed")
                if not waiting.done():
                    await connection.fetch("select 1", timeout=HEARTBEAT_S)
                    continue
                waiting = None
                self._news.clear()
                now = asyncio.get_running_loop().time()
                if not self._closing and now < self._next_send:
                    await asyncio.sleep(self._next_send - now)
                self._next_send = asyncio.get_running_loop().time() + _COALESCE_S
                await self._send(connection)
        finally:
            if waiting is not None:
                waiting.cancel()

    async def _send(self, connection: Connection) -> None:
        sent, self._pending = self._pending, {}
        if not sent:
            return
        try:
            await connection.fetch(_SEND, self._channel, list(_payloads(sent)), timeout=HEARTBEAT_S)
        except BaseException:
            self._pending = {**sent, **self._pending}
            self._news.set()
            raise

    async def _catch_up(self) -> None:
        """Tell the listeners how far their partitions are: what was sent while nobody listened is lost."""
        names = list({name for entries in self._listeners.values() for name, _ in entries})
        if not names:
            return
        texts = self._database.texts
        found = await self._database.read(lambda: reading.sequences(texts, names))
        for name, newest in zip(names, found, strict=True):
            if newest:
                self._tell_here(mark_of(name), newest)  # whoever has left meanwhile hears nothing

    def _hear(self, connection: object, process: int, channel: str, payload: object) -> None:
        del connection, process, channel
        for word in str(payload).split():
            mark, _, number = word.partition(":")
            if number.isascii() and number.isdigit():
                self._tell_here(mark, int(number))

    def _tell_here(self, mark: str, sequence: int) -> None:
        for _, heard in list(self._listeners.get(mark, ())):
            with contextlib.suppress(Exception):  # a listener's own failure is its own
                heard(sequence)


def _payloads(pending: dict[tuple[str, bool], int]) -> Iterable[str]:
    """Write what is to be told into as few payloads as it takes."""
    words: list[str] = []
    size = 0
    for (mark, _), sequence in pending.items():
        word = f"{mark}:{sequence}"
        if size + len(word) + 1 > _LARGEST_PAYLOAD:
            yield " ".join(words)
            words, size = [], 0
        words.append(word)
        size += len(word) + 1
    yield " ".join(words)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
