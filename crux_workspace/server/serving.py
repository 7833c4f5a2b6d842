"""Running the service under uvicorn until it is told to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic

import uvicorn

from crux_workspace.errors import StorageError
from crux_workspace.server.dispatching import Service
from crux_workspace.server.protocol import GuardedProtocol

__all__ = ["serve"]

_BACKLOG = 1_024


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

    Raises:
        StorageError: The address cannot be had (``STORE_UNAVAILABLE``).
    """
    listening = _listening(host.strip("[]"), port)
    config = uvicorn.Config(
        service,
        http=partial(GuardedProtocol, limits=service.limits),  # type: ignore[arg-type]
        ws="none",
        log_config=None,
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


def _listening(host: str, port: int) -> socket.socket:
    """Open a listening socket; asyncio sends small answers at once only where the protocol is named.

    Raises:
        StorageError: The address cannot be had (``STORE_UNAVAILABLE``).
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, _, _, address = found[0]
        listening = socket.socket(family, kind, socket.IPPROTO_TCP)
    except OSError as error:
        raise _taken(host, port, error) from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise _taken(host, port, error) from error
    return listening


def _taken(host: str, port: int, error: OSError) -> StorageError:
    return StorageError(
        f"The service cannot listen at {host}:{port}: {error.strerror}.",
        hint="Choose another --host or --port.",
        retryable=False,
    )
