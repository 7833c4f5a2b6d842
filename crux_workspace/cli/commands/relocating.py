"""``rm``, ``mv``, ``cp``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from crux_workspace.cli.commands.options import (
    IdempotencyKey,
    IfVersion,
    Overwrite,
    show_entry,
)
from crux_workspace.cli.declaring import command
from crux_workspace.cli.session import Session

__all__ = ["cp", "mv", "rm"]

_PANEL = "Files"


@command("rm", panel=_PANEL, example="crux-workspace rm -r /workspace/old")
async def rm(
    session: Session,
    path: Annotated[str, typer.Argument(help="File or directory to delete.")],
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="Delete a directory and all below it.")
    ] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="Erase every version for good; nothing brings it back.")
    ] = False,
    if_version: IfVersion = None,
    idempotency_key: IdempotencyKey = None,
) -> None:
    """Delete a file or a directory.

    History stays and undo brings a file back, unless --purge erases it. Deleting what is not there is a success.
    """
    async with session.workspace() as ws:
        await ws.delete(
            path,
            recursive=recursive,
            purge=purge,
            if_version=if_version,
            idempotency_key=idempotency_key,
        )
    if session.out.as_json:
        session.out.json(None)


@command("mv", panel=_PANEL, example="crux-workspace mv /workspace/draft.md /outputs/report.md")
async def mv(
    session: Session,
    source: Annotated[str, typer.Argument(help="File or directory to move.")],
    destination: Annotated[str, typer.Argument(help="Its new path.")],
    overwrite: Overwrite = False,
    if_version: IfVersion = None,
    idempotency_key: IdempotencyKey = None,
) -> None:
    """Move or rename a file or a directory; history goes with it, and a whole directory moves in one commit.

    DESTINATION is the new path itself, also where a directory of that name exists.
    """
    async with session.workspace() as ws:
        moved = await ws.move(
            source,
            destination,
            overwrite=overwrite,
            if_version=if_version,
            idempotency_key=idempotency_key,
        )
    show_entry(session.out, moved)


@command("cp", panel=_PANEL, example="crux-workspace cp /workspace/a.md /workspace/b.md")
async def cp(
    session: Session,
    source: Annotated[str, typer.Argument(help="File or directory to copy.")],
    destination: Annotated[str, typer.Argument(help="Path of the copy.")],
    overwrite: Overwrite = False,
    to_namespace: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Put the copy into this namespace of the workspace."),
    ] = None,
    if_version: IfVersion = None,
    idempotency_key: IdempotencyKey = None,
) -> None:
    """Copy a file or a directory, with its attributes and without its history.

    DESTINATION is the copy's path itself; --if-version is about the file that is there.
    """
    options: dict[str, Any] = {} if to_namespace is None else {"to_namespace": to_namespace}
    async with session.workspace() as ws:
        copied = await ws.copy(
            source,
            destination,
            overwrite=overwrite,
            if_version=if_version,
            idempotency_key=idempotency_key,
            **options,
        )
    show_entry(session.out, copied)
