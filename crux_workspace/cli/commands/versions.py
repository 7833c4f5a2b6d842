"""``history``, ``diff``, ``undo``, ``redo``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from crux_workspace.cli.commands.options import IdempotencyKey, IfVersion, show_entry
from crux_workspace.cli.declaring import command
from crux_workspace.cli.output import time_text
from crux_workspace.cli.session import Session

__all__ = ["diff", "history", "redo", "undo"]

_PANEL = "Versions"
_COLUMNS = ("version", "time", "operation", "kind", "size", "sequence", "path")


@command("history", panel=_PANEL, example="crux-workspace history /workspace/notes.md --limit 10")
async def history(
    session: Session,
    path: Annotated[str, typer.Argument(help="File, also a deleted one.")],
    limit: Annotated[int | None, typer.Option(help="At most so many versions.")] = None,
    before: Annotated[int | None, typer.Option(help="Only versions below this number.")] = None,
) -> None:
    """List a file's versions, newest first, through renames and after deletion."""
    async with session.workspace() as ws:
        entries = await ws.history(path, limit=limit, before=before)
    if session.out.as_json:
        session.out.json([entry.to_dict() for entry in entries])
        return
    session.out.table(
        _COLUMNS,
        [
            (
                entry.version,
                time_text(entry.created_at),
                _operation(entry.operation, entry.restored_from),
                entry.content_kind,
                entry.size,
                entry.sequence,
                entry.path,
            )
            for entry in entries
        ],
    )


def _operation(operation: str, restored_from: int | None) -> str:
    return operation if restored_from is None else f"{operation} (v{restored_from})"


@command("diff", panel=_PANEL, example="crux-workspace diff /workspace/notes.md --from 1 --to 3")
async def diff(
    session: Session,
    path: Annotated[str, typer.Argument(help="Text or JSON file.")],
    from_version: Annotated[
        int | None, typer.Option("--from", metavar="N", help="Older version.")
    ] = None,
    to_version: Annotated[
        int | None, typer.Option("--to", metavar="M", help="Newer version.")
    ] = None,
    context: Annotated[int, typer.Option("--context", "-C", help="Lines around a change.")] = 3,
) -> None:
    """Show what changed between two versions as a unified diff that patch accepts; the latest change by default."""
    async with session.workspace() as ws:
        found = await ws.diff(
            path, from_version=from_version, to_version=to_version, context_lines=context
        )
    if session.out.as_json:
        session.out.json(found.to_dict())
    else:
        session.out.diff(found.unified)


@command("undo", panel=_PANEL, example="crux-workspace undo /workspace/notes.md")
async def undo(
    session: Session,
    path: Annotated[str, typer.Argument(help="File, also a deleted one.")],
    to_version: Annotated[
        int | None, typer.Option(metavar="N", help="Bring back this version.")
    ] = None,
    if_version: IfVersion = None,
    idempotency_key: IdempotencyKey = None,
) -> None:
    """Bring back a file's earlier content as a new version.

    Repeated undo walks further back and redo forward again, until another change ends the walk. Nothing is erased.
    """
    options: dict[str, Any] = {} if to_version is None else {"to_version": to_version}
    async with session.workspace() as ws:
        file = await ws.undo(
            path, if_version=if_version, idempotency_key=idempotency_key, **options
        )
    show_entry(session.out, file)


@command("redo", panel=_PANEL, example="crux-workspace redo /workspace/notes.md")
async def redo(
    session: Session,
    path: Annotated[str, typer.Argument(help="File whose last change was an undo.")],
    if_version: IfVersion = None,
    idempotency_key: IdempotencyKey = None,
) -> None:
    """Take back an undo, as a new version."""
    async with session.workspace() as ws:
        file = await ws.redo(path, if_version=if_version, idempotency_key=idempotency_key)
    show_entry(session.out, file)
