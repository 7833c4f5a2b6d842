"""A real HTTP service for tests: uvicorn on a free port, in this event loop or in a process of its own."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

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
