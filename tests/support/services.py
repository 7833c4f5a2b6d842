"""A real HTTP service for tests: uvicorn on a free port, in this event loop or in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from crux_workspace import Workspace
from crux_workspace.server import Token, hash_token, serve, service_app

ROOT = Path(__file__).resolve().parents[2]


def token_of(secret: str, **rights: Any) -> Token:
    """A token with rights, named by its first characters."""
    return Token(**({"name": secret[:8], "hash": hash_token(secret)} | rights))


@asynccontextmanager
async def serving(ws: Workspace, **options: Any) -> AsyncIterator[str]:
    """Serve a workspace in this loop, with the options of `service_app`; gives the base URL."""
    service = service_app(ws, **options)
    found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    running = asyncio.ensure_future(
        serve(
            service,
            "127.0.0.1",
            0,
            started=lambda host, port: found.set_result(f"http://{host}:{port}"),
        )
    )
    try:
        either: set[asyncio.Future[Any]] = {found, running}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        yield found.result()
    finally:
        service.shut_down()
        await running


class Connection:
    """One HTTP/1.1 connection, as cheap as can be: what is measured is the service."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port
        self._head = f"host: {parts.netloc}\r\n"

    async def __aenter__(self) -> Connection:
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def ask(
        self, method: str, address: str, /, *, body: Any = None, raw: bytes = b"", **query: object
    ) -> tuple[int, bytes]:
        """Send a request with a JSON body, or a raw one; gives status and body."""
        data = raw if body is None else json.dumps(body).encode()
        kind = "" if body is None else "content-type: application/json\r\n"
        target = f"{address}?{urlencode(query)}" if query else address
        head = (
            f"{method} {target} HTTP/1.1\r\n{self._head}{kind}content-length: {len(data)}\r\n\r\n"
        )
        self._writer.write(head.encode() + data)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        named = dict(line.lower().split(b": ", 1) for line in lines[1:] if line)
        length = int(named.get(b"content-length", b"0"))
        return int(lines[0].split()[1]), await self._reader.readexactly(length)


class ServiceProcess:
    """``crux-workspace serve`` as a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process = process
        self.url = url

    async def kill(self) -> None:
        """Kill it as a crash would."""
        self.process.kill()
        await self.process.wait()

    async def stop(self, within_s: float = 15.0) -> int:
        """Tell it to stop; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await asyncio.wait_for(self.process.wait(), within_s)


@asynccontextmanager
async def service_process(
    store: str, *arguments: str, port: int = 0
) -> AsyncIterator[ServiceProcess]:
    """Serve a store by the command line; gives the process once it answers."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "crux_workspace.cli", "serve", store, "--port", str(port), *arguments,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        line = (await asyncio.wait_for(process.stderr.readline(), 30)).decode()
        found = re.search(r"http://\S+", line)
        assert found is not None, line
        yield ServiceProcess(process, found[0])
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
