"""A proxy between clients and a PostgreSQL server that pools its connections by transaction."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.fault_proxy import listening
from tests.support.postgres import PostgresServer

__all__ = ["PoolingProxy", "pooling_proxy"]


@dataclass
class PoolingProxy:
    """Gives a client a server connection for one transaction at a time, as pgbouncer does in transaction mode.

    Named statements, session settings and listening do not survive from one transaction to the next, for the next one is on another
    connection: the one that was used longest ago.
    """

    target: Path
    size: int = 2
    port: int = 0
    refused: list[str] = field(default_factory=list)
    """Start-up parameters that it does not know, as pgbouncer refuses them."""
    trips: int = 0
    """How often a client waited for the server."""
    _servers: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = field(
        default_factory=asyncio.Queue
    )

    def url(self, **options: object) -> str:
        """Return the URL that leads through the proxy."""
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"postgresql://postgres@127.0.0.1:{self.port}/crux?sslmode=disable&{query}"

    async def connect(self) -> None:
        """Open the server connections."""
        for _ in range(self.size):
            reader, writer = await asyncio.open_unix_connection(str(self.target))
            startup = b"user\0postgres\0database\0crux\0client_encoding\0UTF8\0\0"
            writer.write(struct.pack("!ii", len(startup) + 8, 196608) + startup)
            while (await _message(reader))[0] != b"Z":
                pass
            self._servers.put_nowait((reader, writer))

    def close(self) -> None:
        """Close the server connections."""
        while not self._servers.empty():
            _, writer = self._servers.get_nowait()
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one client."""
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                if await self._greet(reader, writer):
                    await self._relay(reader, writer)
        finally:
            writer.transport.abort()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        size, code = struct.unpack("!ii", await reader.readexactly(8))
        body = await reader.readexactly(size - 8)
        if code != 196608:  # a request to cancel, which nobody needs here
            return False
        names = body.rstrip(b"\0").split(b"\0")[::2]
        unknown = [n.decode() for n in names if n not in _KNOWN_PARAMETERS]
        if unknown:
            self.refused += unknown
            text = b"SFATAL\0C08P01\0Munsupported startup parameter\0\0"
            writer.write(b"E" + struct.pack("!i", len(text) + 4) + text)
            await writer.drain()
            return False
        writer.write(b"R" + struct.pack("!ii", 8, 0))
        for name, value in ((b"server_version", b"18.0"), (b"client_encoding", b"UTF8")):
            text = name + b"\0" + value + b"\0"
            writer.write(b"S" + struct.pack("!i", len(text) + 4) + text)
        writer.write(b"K" + struct.pack("!iii", 12, 1, 1) + b"Z" + struct.pack("!i", 5) + b"I")
        await writer.drain()
        return True

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one transaction of a client after the other, each on the server connection that is next."""
        asking = asyncio.create_task(_message(reader))
        try:
            while (await asyncio.shield(asking))[0] != b"X":
                back, forth = await self._servers.get()
                try:
                    asking = await self._one_transaction(asking, reader, writer, back, forth)
                finally:
                    self._servers.put_nowait((back, forth))
        finally:
            asking.cancel()
            await asyncio.wait([asking])

    async def _one_transaction(
        self,
        asking: asyncio.Task[tuple[bytes, bytes]],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        back: asyncio.StreamReader,
        forth: asyncio.StreamWriter,
    ) -> asyncio.Task[tuple[bytes, bytes]]:
        """Pass messages both ways until the server is idle; returns the client's next message, which may take its time."""
        due = 0
        answering = asyncio.create_task(_message(back))
        try:
            while True:
                done, _ = await asyncio.wait(
                    {asking, answering}, return_when=asyncio.FIRST_COMPLETED
                )
                if answering in done:
                    kind, message = answering.result()
                    writer.write(message)
                    due -= kind == b"Z"
                    if kind == b"Z" and not due and message[-1:] == b"I":
                        return asking
                    answering = asyncio.create_task(_message(back))
                else:
                    kind, message = asking.result()
                    if kind == b"X":  # gone in the middle of a transaction
                        await _rolled_back(back, forth, answering)
                        return asking
                    forth.write(message)
                    due += kind in (b"S", b"Q")
                    self.trips += kind in (b"S", b"Q", b"H")
                    asking = asyncio.create_task(_message(reader))
        finally:
            answering.cancel()


async def _rolled_back(
    back: asyncio.StreamReader,
    forth: asyncio.StreamWriter,
    answering: asyncio.Task[tuple[bytes, bytes]],
) -> None:
    forth.write(b"Q" + struct.pack("!i", 13) + b"rollback\0")
    kind, message = await answering
    while (kind, message[-1:]) != (b"Z", b"I"):
        kind, message = await _message(back)


_KNOWN_PARAMETERS = (b"user", b"database", b"client_encoding", b"application_name")


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(5)
    return head[:1], head + await reader.readexactly(struct.unpack("!i", head[1:])[0] - 4)


@asynccontextmanager
async def pooling_proxy(server: PostgresServer, size: int = 2) -> AsyncIterator[PoolingProxy]:
    """Run a proxy that pools by transaction."""
    proxy = PoolingProxy(server.socket, size)
    await proxy.connect()
    async with listening(proxy.serve) as port:
        proxy.port = port
        yield proxy
    proxy.close()
