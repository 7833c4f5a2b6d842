"""Serving a workspace over HTTP, and the tokens of those who call."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crux_workspace.cli.declaring import command
from crux_workspace.cli.session import Session
from crux_workspace.errors import InvalidInputError
from crux_workspace.model.addresses import is_loopback

if TYPE_CHECKING:
    from crux_workspace import Workspace
    from crux_workspace.agent import PermissionGate
    from crux_workspace.server import Token

__all__: list[str] = []

_TOKEN = "CRUX_WORKSPACE_TOKEN"  # noqa: S105 - the name of a variable


@command(
    "serve",
    panel="Serving",
    example="crux-workspace serve sqlite:///work.db --port 8000 --write",
)
def serve(
    session: Session,
    store: Annotated[
        str | None,
        typer.Argument(metavar="[URL]", help="Store to serve; the same as --url."),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="Port; 0 takes a free one.")
    ] = 8_000,
    write: Annotated[
        bool,
        typer.Option(
            "--write", help="Let callers change files who have no token, or that of --token."
        ),
    ] = False,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="TOKEN",
            help=f"The one bearer token that is known (env {_TOKEN}, which other users of the machine cannot see).",
        ),
    ] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(
            "--tokens",
            metavar="FILE",
            help="TOML or JSON file of tokens, each with what it may do.",
        ),
    ] = None,
    max_body_bytes: Annotated[
        int | None,
        typer.Option("--max-body-bytes", min=1, help="Most bytes of a streamed body (5 GiB)."),
    ] = None,
    max_read_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-read-bytes", min=1, help="Most content that one answer gathers (64 MiB)."
        ),
    ] = None,
    max_transaction_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-transaction-bytes",
            min=1,
            help="Most memory of one transaction that is held open (64 MiB).",
        ),
    ] = None,
    max_staged_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-staged-bytes", min=1, help="Most memory of all of them together (256 MiB)."
        ),
    ] = None,
    max_requests: Annotated[
        int | None,
        typer.Option("--max-requests", min=1, help="Requests worked on at once (200)."),
    ] = None,
    request_seconds: Annotated[
        float | None,
        typer.Option(
            "--request-seconds", min=0.1, help="Most time of a request that streams nothing (60)."
        ),
    ] = None,
    inspector: Annotated[
        bool,
        typer.Option(
            "--inspector/--no-inspector", help="Serve the page that shows it all in a browser."
        ),
    ] = True,
    file: Annotated[
        Path, typer.Option("--file", help="File with the agents' standing approvals.")
    ] = Path(".crux/permissions.json"),
    in_store: Annotated[
        bool, typer.Option("--in-store", help="The approvals are in the store, not in a file.")
    ] = False,
) -> Coroutine[Any, Any, None]:
    """Serve the workspace over HTTP: every verb, events, transactions, health and metrics.

    The addresses are described at /openapi.json, and a browser finds the inspector at /. What agents wait for, in the store that is
    served, can be answered here by callers who may. Without a token only this machine is served, and nothing can be changed unless --write
    is given. A token file says for each token which namespaces and mounts it may use, and whether it may write.
    """
    if store is not None and session.settings.app is not None:
        raise typer.BadParameter("A URL cannot be combined with --app.", param_hint="URL")
    if store is not None:
        session = Session(replace(session.settings, url=store), session.out)

    given = {
        "max_body_bytes": max_body_bytes,
        "max_read_bytes": max_read_bytes,
        "max_transaction_bytes": max_transaction_bytes,
        "max_staged_bytes": max_staged_bytes,
        "max_requests": max_requests,
        "request_seconds": request_seconds,
    }

    async def run() -> None:
        from crux_workspace import configure, local_runtime
        from crux_workspace.inspector import inspector_app
        from crux_workspace.server import ServiceLimits, service_app
        from crux_workspace.server import serve as listen
        from crux_workspace.telemetry.prometheus import prometheus_metrics, use_everywhere

        named: dict[str, Any] = {name: each for name, each in given.items() if each is not None}
        limits = ServiceLimits(**named)
        provider, metrics = prometheus_metrics()
        use_everywhere(provider)
        known = _tokens(token or os.environ.get(_TOKEN) or None, tokens, write=write)
        own = is_loopback(host)
        if not known and not own:
            raise InvalidInputError(
                f"Without a token the service would let anybody who reaches {host} see the files.",
                details={"option": "host"},
                hint="Give --token or --tokens, or serve on 127.0.0.1.",
            )
        async with session.workspace() as ws, local_runtime() as runtime:
            configure(runtime=runtime)
            hosts = None if known else ("localhost", "127.0.0.1", "[::1]", host)
            service = service_app(
                ws,
                tokens=known,
                write=write,
                limits=limits,
                metrics=metrics,
                hosts=hosts,
                gate=_gate(ws, file, in_store=in_store),
                inspector=inspector_app() if inspector else None,
            )

            def tell(at: str, number: int) -> None:
                shown = f"[{at}]" if ":" in at else at
                session.out.note(f"serving at http://{shown}:{number}")

            loop = asyncio.get_running_loop()
            for each in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(each, service.shut_down)
            await listen(service, host, port, started=tell)

    return run()


def _gate(ws: Workspace, file: Path, *, in_store: bool) -> PermissionGate:
    """Make the gate over what waits in the workspace's store, and over the standing approvals."""
    from crux_workspace.agent import (
        PermissionGate,
        file_permission_store,
        record_permission_store,
    )
    from crux_workspace.api.inside import records_of

    records = records_of(ws)
    store = record_permission_store(records) if in_store else file_permission_store(file)
    return PermissionGate(store=store, mode="interactive", interrupts=records)


def _tokens(secret: str | None, path: Path | None, *, write: bool) -> list[Token]:
    from crux_workspace.server import Token, hash_token, load_tokens
    from crux_workspace.server.tokens import UNNAMED

    found = [] if path is None else load_tokens(path)
    if secret is not None:
        found.append(
            Token(
                name=UNNAMED,
                hash=hash_token(secret),
                access="readwrite" if write else "read",
                all_namespaces=True,
                approvals=write,
            )
        )
    return found


@command("token", panel="Serving", example="crux-workspace token reviewer")
def token_command(
    session: Session,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What logs and commits call it.")
    ] = "token",
) -> None:
    """Make a bearer token, and the lines of a token file that let it in.

    The token itself is printed once, on stderr, and kept nowhere: the file holds its hash.
    """
    from crux_workspace.server import Token, hash_token, new_token

    secret = new_token()
    made = Token(name=name, hash=hash_token(secret))
    session.out.note(f"token: {secret}")
    session.out.line(
        f'[[tokens]]\nname = {_quoted(made.name)}\nhash = "{made.hash}"\naccess = "read"'
    )


def _quoted(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)
