"""Running the service under uvicorn until it is told to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic

import uvicorn

from crux_workspace.server.protocol import GuardedProtocol
from crux_workspace.server.service import Service

__all__ = ["serve"]


class _Server(uvicorn.Server):
    """Listens to its service instead of to signals: how a process ends is decided by whoever runs it."""

    def __init__(
        self, config: uvicorn.Config, service: Service, started: Callable[[], object]
    ) -> None:
        super().__init__(config)
        self._service = service
        self._started = started

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        self._started()
        counter = 0
        while not await self.on_tick(counter):
            counter = (counter + 10) % 864_000
            if await self._service.ends_within(1.0):
                return

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, let requests in flight finish for a while, cancel what is left, and end the application."""
        for server in self.servers:
            server.close()
        for each in sockets or []:
            each.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        tasks = self.server_state.tasks
        until = monotonic() + self._service.limits.shutdown_seconds
        while tasks and (left := until - monotonic()) > 0:
            await asyncio.wait(set(tasks), timeout=left)
        cancelled = set(tasks)
        for task in cancelled:
            task.cancel()
        if cancelled:
            await asyncio.wait(cancelled, timeout=1)
        await self.lifespan.shutdown()


async def serve(
    service: Service,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    started: Callable[[str, int], object] | None = None,
) -> None:
    """Serve until `Service.shut_down`: streams end, requests in flight finish, then it returns. No signal is taken.

    Args:
        service: What `service_app` made.
        host: Address to listen at.
        port: Port; 0 takes a free one.
        started: Called with the address once requests are answered.
    """
    listening = socket.create_server(
        (host.strip("[]"), port),
        family=socket.AF_INET6 if ":" in host else socket.AF_INET,
        backlog=1_024,
    )
    config = uvicorn.Config(
        service,
        http=partial(GuardedProtocol, limits=service.limits),  # type: ignore[arg-type]
        ws="none",
        log_level="critical",
        access_log=False,
        lifespan="on",
        timeout_keep_alive=30,
        server_header=False,
        date_header=True,
        proxy_headers=False,
    )
    server = _Server(config, service, lambda: _tell(started, listening))
    try:
        await server.serve([listening])
    finally:
        listening.close()


def _tell(started: Callable[[str, int], object] | None, listening: socket.socket) -> None:
    if started is not None:
        started(*listening.getsockname()[:2])
