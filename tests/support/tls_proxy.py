"""A proxy that ends TLS in front of a service, as one in production does: what it takes in is passed on in the clear."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import trustme

__all__ = ["tls_proxy"]


@contextlib.asynccontextmanager
async def tls_proxy(upstream: str) -> AsyncIterator[tuple[str, ssl.SSLContext]]:
    """Run one on a free port; gives its URL, and a context of clients that trust its certificate."""
    authority = trustme.CA()
    accepting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(accepting)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    parts = urlsplit(upstream)
    tasks: set[asyncio.Task[None]] = set()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, asking = await asyncio.open_connection(parts.hostname, parts.port)
        try:
            await asyncio.gather(_pass_on(reader, asking), _pass_on(answers, writer))
        finally:
            asking.close()
            writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(carry(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await task

    server = await asyncio.start_server(accept, "localhost", 0, ssl=accepting)
    try:
        yield f"https://localhost:{server.sockets[0].getsockname()[1]}", trusting
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        writer.close()
