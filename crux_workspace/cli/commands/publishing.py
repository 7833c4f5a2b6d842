"""``finalize``, ``withdraw``, ``artifacts``."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from crux_workspace.cli.commands.options import IdempotencyKey, IfVersion, show_entry
from crux_workspace.cli.declaring import app, at_app, command
from crux_workspace.cli.session import Session
from crux_workspace.model.files import Status

__all__ = ["artifacts", "finalize", "withdraw"]

_PANEL = "Artifacts"
_COLUMNS = ("status", "kind", "version", "head", "size", "path")


@command(
    "finalize", panel=_PANEL, example="crux-workspace finalize /outputs/report.md --kind report"
)
async def finalize(
    session: Session,
    path: Annotated[str, typer.Argument(help="File to publish.")],
    kind: Annotated[str | None, typer.Option(help="Artifact kind, for example report.")] = None,
    version: Annotated[int | None, typer.Option(help="Pin this version, not the newest.")] = None,
    if_version: IfVersion = None,
    idempotency_key: IdempotencyKey = None,
) -> None:
    """Publish a file: pin one of its versions, which later edits do not change and nothing collects."""
    async with session.workspace() as ws:
        artifact = await ws.finalize(
            path,
            kind=kind,
            version=version,
            if_version=if_version,
            idempotency_key=idempotency_key,
        )
    if session.out.as_json:
        session.out.json(artifact.to_dict())
    else:
        session.out.line(f"{artifact.path}@v{artifact.version}")


@command("withdraw", panel=_PANEL, example="crux-workspace withdraw /outputs/report.md")
async def withdraw(
    session: Session,
    path: Annotated[str, typer.Argument(help="Published file.")],
    if_version: IfVersion = None,
    idempotency_key: IdempotencyKey = None,
) -> None:
    """Take a published file back: no version is pinned any more, and it is a draft."""
    async with session.workspace() as ws:
        file = await ws.withdraw(path, if_version=if_version, idempotency_key=idempotency_key)
    show_entry(session.out, file)


@command(
    "artifacts", panel=_PANEL, apps=(app, at_app), example="crux-workspace artifacts --status final"
)
async def artifacts(
    session: Session,
    status: Annotated[str | None, typer.Option(help="Only draft, or only final.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only this artifact kind.")] = None,
    path: Annotated[str | None, typer.Option(help="Only below this path.")] = None,
    limit: Annotated[int | None, typer.Option(help="At most so many.")] = None,
    after: Annotated[
        str | None, typer.Option(metavar="PATH", help="Only those after this path.")
    ] = None,
) -> None:
    """List the artifacts by path: files with a status, a kind or a known origin.

    A published one shows its pinned version; head is the newest.
    """
    async with session.tree() as tree:
        wanted = cast("Status | None", status)  # the verb refuses another word
        found = await tree.artifacts(status=wanted, kind=kind, path=path, limit=limit, after=after)
    if session.out.as_json:
        session.out.json([artifact.to_dict() for artifact in found])
        return
    session.out.table(
        _COLUMNS,
        [
            (each.status, each.kind, each.version, each.head_version, each.size, each.path)
            for each in found
        ],
    )
