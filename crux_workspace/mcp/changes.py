"""Changes of the workspace on their way to MCP clients, driven by one watch."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from mcp import types
from mcp.server.connection import Connection
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError

from crux_workspace.errors import RuntimeRequiredError
from crux_workspace.mcp.resources import uri_of
from crux_workspace.model.changes import PURGED_PATH
from crux_workspace.model.events import WatchError, WorkspaceChangeEvent
from crux_workspace.model.paths import normalise

if TYPE_CHECKING:
    from crux_workspace.api.facade import Workspace

__all__ = ["MAX_SUBSCRIPTIONS", "Changes"]

MAX_SUBSCRIPTIONS = 1_000
"""Most resources that one client is told about by name."""
_log = logging.getLogger("crux_workspace.mcp")


class Changes:
    """Tells clients of both eras of the protocol: streams that listen, and sessions that subscribed.

    A client is told *that* a file changed and reads it again; several changes may come as one. Nothing is replayed: after a gap
    every subscriber is told.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._ws = workspace
        self.bus = InMemorySubscriptionBus()
        self._subscribed: WeakKeyDictionary[Connection, dict[str, set[str]]] = WeakKeyDictionary()
        """URIs by path, of each connection that subscribed."""

    def subscribe(self, session: ServerSession, path: str, uri: str) -> None:
        """Tell a session of changes of a path from now on.

        Raises:
            MCPError: Its client has `MAX_SUBSCRIPTIONS` already.
        """
        paths = self._subscribed.setdefault(_connection(session), {})
        where = normalise(path)
        if uri in paths.get(where, ()):
            return
        if sum(map(len, paths.values())) >= MAX_SUBSCRIPTIONS:
            raise MCPError(
                types.INVALID_PARAMS,
                f"A client subscribes to {MAX_SUBSCRIPTIONS:,} resources at most; unsubscribe from some, or ask for changes of the list.",
            )
        paths.setdefault(where, set()).add(uri)

    def unsubscribe(self, session: ServerSession, path: str, uri: str) -> None:
        """Tell it no more."""
        paths = self._subscribed.get(_connection(session), {})
        where = normalise(path)
        uris = paths.get(where, set())
        uris.discard(uri)
        if not uris:
            paths.pop(where, None)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch while the server serves; without a runtime nobody is told anything.

        Yields:
            When changes from now on are seen.
        """
        try:
            watch = self._ws.watch(on_error=self._lost)
        except RuntimeRequiredError:
            _log.warning("the workspace has no runtime: MCP clients are not told of changes")
            yield
            return
        await watch.ready()
        stop = watch.on(self._tell)
        try:
            yield
        finally:
            stop()
            await watch.stop()

    async def _lost(self, error: WatchError) -> None:
        for paths in list(self._subscribed.values()):
            for path in paths:
                await self._updated(path)
        await self._listed()

    async def _tell(self, event: WorkspaceChangeEvent) -> None:
        for path in (event.path, event.from_path):
            if path is not None and path != PURGED_PATH:
                await self._updated(path)
        if event.type != "update":
            await self._listed()

    async def _updated(self, path: str) -> None:
        await self.bus.publish(ResourceUpdated(uri=uri_of(path)))
        for connection, paths in list(self._subscribed.items()):
            for uri in list(paths.get(path, ())):
                await self._send(connection, connection.send_resource_updated(uri))

    async def _listed(self) -> None:
        await self.bus.publish(ResourcesListChanged())
        for connection in list(self._subscribed):
            await self._send(connection, connection.send_resource_list_changed())

    async def _send(self, connection: Connection, sending: Awaitable[None]) -> None:
        """Send to one client; one that is gone is forgotten, and the others hear of it all the same."""
        try:
            await sending
        except Exception as error:
            _log.debug("a subscribed MCP client is gone (%s)", type(error).__name__)
            self._subscribed.pop(connection, None)


def _connection(session: ServerSession) -> Connection:
    """Return what lives as long as the client; a session is one request's."""
    return session._connection
