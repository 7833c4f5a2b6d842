"""Serving a workspace over stdio, or over streamable HTTP behind a token."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any

from crux_workspace.errors import InvalidInputError
from crux_workspace.model.addresses import is_loopback
from crux_workspace.model.bearers import check_secret

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server

__all__ = ["http_app", "serve_http", "serve_stdio"]


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client on this process's stdin and stdout, until it closes them."""
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def http_app(server: Server[Any], *, host: str = "127.0.0.1", token: str | None = None) -> Any:  # noqa: ANN401 - an ASGI app
    """Make the ASGI application of a server: streamable HTTP at ``/mcp``.

    Args:
        server: What `workspace_server` made.
        host: Address it will be reached at; for one of this machine only, requests that a browser was tricked into are refused.
        token: Clients have to send ``Authorization: Bearer <token>``.

    Returns:
        The application; its lifespan has to be run.

    Raises:
        InvalidInputError: A token too short or that no header can hold, or none on an address that others can reach (``INVALID_ARGUMENT``).
    """
    if token is not None:
        check_secret(token)
    if token is None and not is_loopback(host):
        raise InvalidInputError(
            f"Without a token the server would let anybody who reaches {host} change files.",
            details={"option": "host"},
            hint="Set a token, or serve on 127.0.0.1.",
        )
    app = server.streamable_http_app(host=host)
    return app if token is None else _Guarded(app, token)


class _Guarded:
    """Lets requests through that carry the token."""

    def __init__(self, app: Any, token: str) -> None:  # noqa: ANN401 - an ASGI app
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b"a bearer token is needed\n"})
                return
        await self._app(scope, receive, send)


async def serve_http(
    server: Server[Any], host: str, port: int, *, token: str | None = None
) -> None:
    """Serve streamable HTTP at ``http://host:port/mcp`` until the process is told to stop."""
    import uvicorn

    app = http_app(server, host=host, token=token)
    config = uvicorn.Config(app, host=host, port=port, log_level="warning", lifespan="on")
    await uvicorn.Server(config).serve()
