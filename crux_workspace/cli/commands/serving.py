"""Serving a workspace to other programs."""

from __future__ import annotations

import os
from collections.abc import Coroutine
from typing import Annotated, Any

import typer

from crux_workspace.cli.declaring import command
from crux_workspace.cli.session import Session
from crux_workspace.model.extras import need_extra

__all__: list[str] = []

_TOKEN = "CRUX_WORKSPACE_MCP_TOKEN"  # noqa: S105 - the name of a variable


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65_535:
        raise typer.BadParameter(f"{text!r} is not HOST:PORT or :PORT.", param_hint="--http")
    return host or "127.0.0.1", int(port)


@command(
    "mcp",
    panel="Serving",
    example="crux-workspace mcp --url sqlite:///work.db --extra history,finalize",
)
def mcp(
    session: Session,
    http: Annotated[
        str | None,
        typer.Option(
            "--http", metavar="HOST:PORT", help="Serve streamable HTTP at /mcp instead of stdio."
        ),
    ] = None,
    prefix: Annotated[
        str | None, typer.Option("--prefix", metavar="WORD", help="Put into every tool's name.")
    ] = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Offer a tool that deletes files.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Offer a tool that takes back a file's latest change.")
    ] = False,
    extra: Annotated[
        str,
        typer.Option(
            "--extra",
            metavar="NAMES",
            help="Further tools, by commas: stat,append,copy,history,diff,finalize.",
        ),
    ] = "",
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Offer only tools that change nothing.")
    ] = False,
    read_before_write: Annotated[
        bool,
        typer.Option(
            "--read-before-write",
            help="Refuse changes of files not read at the version they are at.",
        ),
    ] = False,
) -> Coroutine[Any, Any, None]:
    """Serve the workspace to models by the Model Context Protocol.

    Over stdio for one client, which starts this command; with --http over streamable HTTP. The namespace is the one given here: no
    client can reach another. An address that others can reach needs a token in the variable CRUX_WORKSPACE_MCP_TOKEN, which clients
    send as a bearer token.
    """
    address = None if http is None else _address(http)
    options: dict[str, Any] = {
        "prefix": prefix,
        "delete": delete,
        "undo": undo,
        "extra": [name.strip() for name in extra.split(",") if name.strip()],
        "read_before_write": read_before_write,
    }

    async def serve() -> None:
        need_extra("mcp", "mcp")
        from crux_workspace import configure, local_runtime
        from crux_workspace.mcp.server import workspace_server
        from crux_workspace.mcp.serving import serve_http, serve_stdio

        async with session.workspace() as ws, local_runtime() as runtime:
            configure(runtime=runtime)
            server = workspace_server(ws, read_only=read_only, **options)
            if address is None:
                await serve_stdio(server)
            else:
                await serve_http(server, *address, token=os.environ.get(_TOKEN) or None)

    return serve()
