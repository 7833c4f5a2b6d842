"""``write``, ``edit``, ``append``."""

from __future__ import annotations

import json
from collections.abc import Coroutine
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from crux_workspace.cli.commands.options import IdempotencyKey, IfVersion, show_entry
from crux_workspace.cli.content import Taken, incoming, open_argument, text_of
from crux_workspace.cli.declaring import command
from crux_workspace.cli.session import Session
from crux_workspace.errors import ErrorCode, InvalidInputError

__all__ = ["append", "edit", "write"]

_PANEL = "Files"

MimeType = Annotated[
    str | None, typer.Option("--mime", help="MIME type; guessed from the name if left out.")
]


@command("write", panel=_PANEL, example="echo '# Notes' | crux-workspace write /workspace/notes.md")
def write(
    session: Session,
    path: Annotated[str, typer.Argument(help="File to create or replace.")],
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The content; - or nothing means stdin.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Take the content of this local file."),
    ] = None,
    as_text: Annotated[
        bool, typer.Option("--text", help="Store as text; refused if it is not UTF-8.")
    ] = False,
    as_binary: Annotated[
        bool, typer.Option("--binary", help="Store as binary, whatever it looks like.")
    ] = False,
    as_json_content: Annotated[
        bool, typer.Option("--json-content", help="Parse it and store the JSON value.")
    ] = False,
    mime: MimeType = None,
    meta: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Metadata; repeatable. Without any there is none."),
    ] = None,
    status: Annotated[
        str | None, typer.Option(help="draft, or final, which publishes this version.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="Artifact kind, for example report.")] = None,
    if_version: IfVersion = None,
    idempotency_key: IdempotencyKey = None,
) -> Coroutine[Any, Any, None]:
    """Create or replace a file from stdin, a local file or an argument.

    Valid UTF-8 without NUL becomes text and everything else binary; bytes and line endings are kept, and large content is streamed.
    Every write appends a version, so what it replaces can be brought back by undo.
    """
    if text is not None and file is not None:
        raise typer.BadParameter("give TEXT or --file, not both.", param_hint="--file")
    if as_text + as_binary + as_json_content > 1:
        raise typer.BadParameter(
            "--text, --binary and --json-content exclude one another.", param_hint="--text"
        )
    taken = Taken.TEXT if as_text else Taken.BINARY if as_binary else Taken.AS_IT_LOOKS
    options = {
        "mime_type": mime,
        "metadata": _metadata(meta),
        "status": status,
        "kind": kind,
        "if_version": if_version,
        "idempotency_key": idempotency_key,
    }
    source = open_argument(text, file)
    return _write(session, path, source, None if as_json_content else taken, options)


async def _write(
    session: Session, path: str, source: IO[bytes], taken: Taken | None, options: dict[str, Any]
) -> None:
    with source:
        if taken is None:
            content, encoding = _json_value(text_of(source)), None
        else:
            body = incoming(source, taken)
            content, encoding = body.content, body.encoding
        async with session.workspace() as ws:
            written = await ws.write(path, content, encoding=encoding, **options)
    show_entry(session.out, written)


def _json_value(text: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidInputError(
            f"The content is not JSON: {error}.", code=ErrorCode.INVALID_CONTENT
        ) from None
    if isinstance(value, str):
        raise InvalidInputError(
            "A JSON document that is a lone string cannot be stored as JSON.",
            code=ErrorCode.INVALID_CONTENT,
            hint="Put it into an array or an object, or write it as text.",
        )
    return value


def _metadata(pairs: list[str] | None) -> dict[str, str] | None:
    if not pairs:
        return None
    metadata = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE.", param_hint="--meta")
        metadata[key] = value
    return metadata


@command(
    "edit",
    panel=_PANEL,
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


@command("append", panel=_PANEL, example="date | crux-workspace append /workspace/log.txt")
def append(
    session: Session,
    path: Annotated[str, typer.Argument(help="Text file to add to; created if it is missing.")],
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="What to add; - or nothing means stdin.")
    ] = None,
    mime: MimeType = None,
    if_version: IfVersion = None,
    idempotency_key: IdempotencyKey = None,
) -> Coroutine[Any, Any, None]:
    """Add text to the end of a file, exactly as it is given: an argument gets no final newline."""
    with open_argument(text, None) as source:
        added = text_of(source)
    options = {"mime_type": mime, "if_version": if_version, "idempotency_key": idempotency_key}
    return _append(session, path, added, options)


async def _append(session: Session, path: str, text: str, options: dict[str, Any]) -> None:
    async with session.workspace() as ws:
        appended = await ws.append(path, text, **options)
    show_entry(session.out, appended)
