"""``log``, ``undo-commit``; ``at`` takes its commands from the reading ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from crux_workspace.cli.commands.options import IdempotencyKey
from crux_workspace.cli.declaring import command
from crux_workspace.cli.output import Output, time_text
from crux_workspace.cli.session import Session

if TYPE_CHECKING:
    from crux_workspace.model.changes import Change
    from crux_workspace.model.versions import CommitEntry

__all__ = ["log", "undo_commit"]

_PANEL = "Time"
_COLUMNS = ("sequence", "time", "verb", "actor", "commit", "changes")


@command("log", panel=_PANEL, example="crux-workspace log /workspace --limit 20")
async def log(
    session: Session,
    path: Annotated[
        str | None, typer.Argument(help="Only commits that touched this file or directory.")
    ] = None,
    limit: Annotated[int, typer.Option(help="At most so many commits.")] = 50,
    cursor: Annotated[
        str | None, typer.Option(help="Go on after the commit that has this cursor.")
    ] = None,
) -> None:
    """List the commits, newest first: when, by whom, and what each changed.

    Changes are marked + created, ~ updated, - deleted, > renamed.
    """
    options: dict[str, Any] = {} if path is None else {"path": path}
    async with session.workspace() as ws:
        entries = await ws.log(limit=limit, cursor=cursor, **options)
    if session.out.as_json:
        session.out.json([entry.to_dict() for entry in entries])
    else:
        _show(session.out, entries)


def _show(out: Output, entries: list[CommitEntry]) -> None:
    out.table(
        _COLUMNS,
        [
            (
                entry.sequence,
                time_text(entry.at),
                entry.verb,
                entry.actor,
                entry.commit,
                " ".join(map(_change, entry.changes)),
            )
            for entry in entries
        ],
    )


def _change(change: Change) -> str:
    match change.type:
        case "create":
            return f"+{change.path}"
        case "update":
            return f"~{change.path}"
        case "delete":
            return f"-{change.path}"
        case _:
            return f"{change.from_path}>{change.path}"


@command(
    "undo-commit",
    panel=_PANEL,
    example='crux-workspace undo-commit "$(crux-workspace log --limit 1 | cut -f5)"',
)
async def undo_commit(
    session: Session,
    commit: Annotated[str, typer.Argument(help="The commit as log shows it.")],
    idempotency_key: IdempotencyKey = None,
) -> None:
    """Reverse all that one commit did, by one new commit.

    Refused, with nothing changed, if a later commit touched one of its files.
    """
    async with session.workspace() as ws:
        entry = await ws.undo_commit(commit, idempotency_key=idempotency_key)
    if session.out.as_json:
        session.out.json(entry.to_dict())
    else:
        _show(session.out, [entry])
