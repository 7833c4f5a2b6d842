"""One server: its connection, opened again when it was lost, and what has to hold of the server before it is used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from storage_adapters.redis.driver import (
    AbstractConnection,
    Connection,
    SSLConnection,
    UnixDomainSocketConnection,
    exceptions,
)
from storage_adapters.redis.failures import connecting_failed, evicting, refused
from storage_adapters.redis.scripts import ALL
from storage_adapters.redis.target import Target
from storage_adapters.redis.wire import Command, Lost, Wire, pack, packed

__all__ = ["Node", "open_wire"]

_KINDS: dict[str, type[AbstractConnection]] = {
    "tcp": Connection,
    "tls": SSLConnection,
    "unix": UnixDomainSocketConnection,
}


async def open_wire(target: Target) -> Wire:
    """Connect to a server.

    Raises:
        WorkspaceError: It cannot be reached, or refuses the user or the database.
    """
    try:
        return await Wire.open(_KINDS[target.kind](**target.options()), target.timeout_s)
    except (exceptions.RedisError, OSError) as error:
        raise connecting_failed(error, target.place) from error


class Node:
    """A server that is called by its wire."""

    def __init__(self, target: Target, replaced: Callable[[], None]) -> None:
        """Name a server; `replaced` is called when a connection was made again, maybe to another server."""
        self.target = target
        self._replaced = replaced
        self.facts: dict[str, str] = {}
        """What the server said of itself (INFO) when it was last connected to."""
        self.connections = 0
        """How often a connection was made; another number says that the server may be another one."""
        self._wire: Wire | None = None
        self._opening: asyncio.Task[Wire] | None = None

    def __repr__(self) -> str:
        return f"Node({self.target.place})"

    @property
    def ready(self) -> Wire | None:
        """The connection, while it is usable."""
        wire = self._wire
        return wire if wire is not None and wire.error is None else None

    async def call(self, command: Command) -> Any:  # noqa: ANN401 - what the server answers
        """Send one command; a refusal is returned, not raised.

        Raises:
            Lost: The connection ended before the answer came.
            WorkspaceError: There is no connection, and none can be made.
        """
        wire = self.ready or await self.connect()
        return (await wire.call(pack(command)))[0]

    async def call_all(self, commands: list[Command]) -> list[Any]:
        """Send commands together, so that they are carried out one right behind the other; see `call`."""
        wire = self.ready or await self.connect()
        return await wire.call(packed(commands), len(commands))

    async def connect(self) -> Wire:
        """Connect if need be, judge the server and hand it our scripts; all who wait share one attempt.

        It runs in a task of its own: a caller that is cancelled, or goes on in another task, disturbs nobody.
        """
        if (wire := self.ready) is not None:
            return wire
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._open())
            self._opening.add_done_callback(self._opened)
        return await asyncio.shield(self._opening)

    async def _open(self) -> Wire:
        wire = await open_wire(self.target)
        try:
            await self._judge(wire)
        except BaseException:
            await wire.aclose()
            raise
        self._wire = wire
        self.connections += 1
        if self.connections > 1:
            self._replaced()
        return wire

    def _opened(self, opening: asyncio.Task[Wire]) -> None:
        self._opening = None
        if not opening.cancelled():
            opening.exception()  # retrieved, whether or not somebody still waits for it

    async def _judge(self, wire: Wire) -> None:
        commands: list[Command] = [(b"INFO",), *((b"SCRIPT", b"LOAD", s.source) for s in ALL)]
        try:
            answers = await wire.call(packed(commands), len(commands))
        except Lost as error:
            raise connecting_failed(_cause(error), self.target.place) from error
        for answer in answers:
            if isinstance(answer, Exception):
                raise refused(answer)
        self.facts = parse_info(answers[0])
        policy = self.facts.get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            raise evicting(policy)

    def end(self) -> None:
        """Close the connection, and the one that is being made; `aclose` waits until they are gone."""
        if self._opening is not None:
            self._opening.cancel()
        if self._wire is not None:
            self._wire.abandon()

    async def aclose(self) -> None:
        """Close the connection."""
        self.end()
        if self._opening is not None:
            await asyncio.wait({self._opening})
        if self._wire is not None:
            await self._wire.aclose()

    def drop(self) -> None:
        """Forget the connection: the next call makes another one."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.abandon()


def _cause(error: Lost) -> Exception:
    return error.__cause__ if isinstance(error.__cause__, Exception) else error


def parse_info(text: bytes) -> dict[str, str]:
    """Read the answer of INFO."""
    pairs = (line.partition(":") for line in text.decode().splitlines() if ":" in line)
    return {name: value for name, _, value in pairs}
