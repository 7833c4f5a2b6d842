"""``edit``."""

from __future__ import annotations

import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from crux_workspace.cli.commands.options import IdempotencyKey, IfVersion, MimeType, show_entry
from crux_workspace.cli.content import open_argument, text_of
from crux_workspace.cli.declaring import command
from crux_workspace.cli.session import Session
from crux_workspace.errors import InvalidInputError

__all__ = ["edit"]


@command(
    "edit",
    panel="Files",
    example="crux-workspace edit /workspace/notes.md --find 'teh' --replace 'the' --all",
)
def edit(
    session: Session,
    path: Annotated[str, typer.Argument(help="Text file to change.")],
    find: Annotated[
        str | None, typer.Option(help="Text to replace; it has to occur exactly once.")
    ] = None,
    replace: Annotated[str | None, typer.Option(help="What to put there, literally.")] = None,
    occurrence: Annotated[
        int | None, typer.Option(help="Replace this occurrence, counted from 1.")
    ] = None,
    replace_all: Annotated[bool, typer.Option("--all", help="Replace every occurrence.")] = False,
    edits: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Several edits, all or none: a JSON array of objects with find, replace and, if needed, occurrence or "
            "replace_all; - is stdin.",
        ),
    ] = None,
    mime: MimeType = None,
    if_version: IfVersion = None,
    idempotency_key: IdempotencyKey = None,
) -> Coroutine[Any, Any, None]:
    """Replace text in a file.

    Nothing changes unless the text is found, and found once, or --occurrence or --all says which; the error says what is near it or
    where the others are.
    """
    if (edits is None) == (find is None or replace is None):
        raise typer.BadParameter("give --find and --replace, or --edits.", param_hint="--find")
    options: dict[str, Any] = {
        "mime_type": mime,
        "if_version": if_version,
        "idempotency_key": idempotency_key,
    }
    if edits is None:
        options |= {"find": find, "replace": replace}
        options |= {"occurrence": occurrence, "replace_all": replace_all}
    elif find is not None or replace is not None or occurrence is not None or replace_all:
        raise typer.BadParameter(
            "it stands alone: each edit in FILE says its own find, replace, occurrence and replace_all.",
            param_hint="--edits",
        )
    else:
        options["edits"] = _edits(edits)
    return _edit(session, path, options)


async def _edit(session: Session, path: str, options: dict[str, Any]) -> None:
    async with session.workspace() as ws:
        edited = await ws.edit(path, **options)
    show_entry(session.out, edited)


def _edits(file: Path) -> list[Any]:
    from crux_workspace import Edit

    is_stdin = str(file) == "-"
    if not is_stdin and not file.is_file():
        raise typer.BadParameter(f"there is no file {file}.", param_hint="--edits")
    with open_argument(None, None if is_stdin else file) as source:
        text = text_of(source)
    try:
        return [Edit(**edit) for edit in json.loads(text)]
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"The edits could not be read: {error}.",
            hint='Give a JSON array such as [{"find": "a", "replace": "b", "replace_all": true}].',
        ) from error
