"""Connections by TLS: everything goes by them, and only to who has a certificate that is trusted.

The server of the tests is built without TLS, so a proxy answers for it as one in front of a hosted database does.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from crux_workspace.errors import StorageError
from storage_adapters import migrate
from tests.postgres.conftest import Opening
from tests.support.fault_proxy import listening
from tests.support.postgres import PostgresServer
from tests.watch.conftest import take

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(120)]

A = "/workspace/a.md"
NEVER = 3_600_000
_ASKS_FOR_TLS = struct.pack("!ii", 8, 80877103)


@dataclass
class Sealed:
    """A way to the server that lets nobody through but by TLS."""

    context: ssl.SSLContext
    server: Path
    port: int = 0
    sealed: int = 0
    """How many connections were made by TLS."""

    def url(self, mode: str, *, host: str = "localhost", trusted: Path | None = None) -> str:
        root = "" if trusted is None else f"&sslrootcert={trusted}"
        return f"postgresql://postgres@{host}:{self.port}/crux?pool_size=2&sslmode={mode}{root}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                if await reader.readexactly(8) == _ASKS_FOR_TLS:
                    writer.write(b"S")
                    await writer.start_tls(self.context)
                    self.sealed += 1
                    await self._pass_on(reader, writer)
        finally:
            writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_unix_connection(str(self.server))
        ways = [asyncio.create_task(_carry(*way)) for way in ((reader, forth), (back, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            forth.transport.abort()
            await asyncio.wait(ways)


async def _carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await source.read(1 << 16):
            sink.write(piece)
            await sink.drain()


@dataclass
class Certificates:
    """Where two authorities have their own: the one that vouches for the server, and another."""

    trusted: Path
    stranger: Path


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def certificates(authority: trustme.CA, tmp_path: Path) -> Certificates:
    found = Certificates(tmp_path / "ca.pem", tmp_path / "other.pem")
    authority.cert_pem.write_to_path(str(found.trusted))
    trustme.CA().cert_pem.write_to_path(str(found.stranger))
    return found


@pytest.fixture
async def way(
    authority: trustme.CA, postgres_server: PostgresServer, postgres_url: str
) -> AsyncIterator[Sealed]:
    """The way to the empty database by TLS, as `localhost`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    sealed = Sealed(context, postgres_server.socket)
    async with listening(sealed.serve) as port:
        sealed.port = port
        yield sealed


async def _somebody_listens(server: PostgresServer) -> None:
    connection = await server.connect()
    text = "select count(*) from pg_stat_activity where query ilike 'listen %'"
    try:
        async with asyncio.timeout(20):
            while not await connection.fetchval(text):  # noqa: ASYNC110 - another process is asked
                await asyncio.sleep(0.01)
    finally:
        await connection.close()


async def test_all_goes_by_tls_word_of_commits_and_migrations_included(
    way: Sealed, certificates: Certificates, opening: Opening, postgres_server: PostgresServer
) -> None:
    url = way.url("verify-full", trusted=certificates.trusted)
    await asyncio.to_thread(migrate, url)
    assert way.sealed == 1
    ws, other = await opening(url), await opening(url)
    async with ws.watch(recursive=True, poll_interval_ms=NEVER) as feed:
        await feed.ready()
        following = asyncio.create_task(take(feed, 2))
        await _somebody_listens(postgres_server)
        await other.write(A, "one")
        await other.write("/workspace/b.bin", bytes(500_000))
        assert [event.path for event in await following] == [A, "/workspace/b.bin"]
        assert await ws.read_text(A) == "one"
        assert await ws.read_bytes("/workspace/b.bin") == bytes(500_000)
    assert way.sealed >= 1 + 4, "each has a connection to ask by and one to hear by"


async def test_a_server_that_is_not_trusted_gets_nothing(
    way: Sealed, certificates: Certificates, opening: Opening
) -> None:
    mistrusted = [
        way.url("verify-full", trusted=certificates.stranger),
        way.url("verify-full", host="127.0.0.1", trusted=certificates.trusted),
    ]
    for url in mistrusted:
        with pytest.raises(StorageError, match="certificate is not trusted") as error:
            await opening(url)
        assert (error.value.code, error.value.retryable) == ("STORE_UNAVAILABLE", False)
    with pytest.raises(StorageError, match="cannot be reached"):
        await opening(way.url("disable"))
    assert way.sealed == 0
