"""Many workspaces behind one real HTTP server, each below a path of its own, and a client of each."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send

from crux_workspace import Workspace
from crux_workspace.http import HttpWorkspace
from crux_workspace.server import service_app
from crux_workspace.server.dispatching import Service

__all__ = ["Switchboard", "numbered_ids", "switchboard"]


def numbered_ids() -> Any:
    """Return an id source that gives the same ids each time that it is made."""
    counter = itertools.count(1)
    return lambda: f"{next(counter):032x}"


class Switchboard:
    """One listening server; workspaces may be added at any time."""

    def __init__(self) -> None:
        self.url = ""
        self._services: dict[str, Service] = {}
        self._clients: list[HttpWorkspace] = []
        self.forgets_on_commit = False
        """Forget transactions right behind each commit, before its answer can be asked for again."""

    def address(self, ws: Workspace, **options: Any) -> str:
        """Serve a workspace, with the options of `service_app`; returns the base URL."""
        name = str(len(self._services))
        self._services[name] = service_app(ws, **{"write": True, **options})
        return f"{self.url}/{name}"

    def client(
        self, ws: Workspace, *, served: dict[str, Any] | None = None, **options: Any
    ) -> HttpWorkspace:
        """Serve a workspace to everybody, `served` with options of `service_app`, and return a client of it."""
        self._clients.append(HttpWorkspace(self.address(ws, **(served or {})), **options))
        return self._clients[-1]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the service that its path names, as a proxy does."""
        _, name, rest = scope["path"].split("/", 2)
        inner = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
        await self._services[name](inner, receive, send)
        if self.forgets_on_commit and rest == "v1/transaction/commit":
            await self.forget_transactions()

    async def forget_transactions(self) -> None:
        """Forget all open transactions and how others ended, as a service that restarts does."""
        for service in self._services.values():
            await service.transactions.aclose()
            service.transactions._ended.clear()

    async def aclose(self) -> None:
        """Close the clients, then the services."""
        for client in self._clients:
            await client.aclose()
        for service in self._services.values():
            await service.aclose()


@asynccontextmanager
async def switchboard() -> AsyncIterator[Switchboard]:
    """Run a switchboard in this event loop."""
    board = Switchboard()
    config = uvicorn.Config(
        board, port=0, lifespan="off", log_level="warning", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    board.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    try:
        yield board
    finally:
        await board.aclose()
        for connection in list(server.server_state.connections):
            connection.shutdown()
        for listening in server.servers:
            listening.close()
        await asyncio.sleep(0)
