"""``write``, ``append``."""

from __future__ import annotations

import json
from collections.abc import Coroutine
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from crux_workspace.cli.commands.options import IdempotencyKey, IfVersion, MimeType, show_entry
from crux_workspace.cli.content import Taken, incoming, open_argument, text_of
from crux_workspace.cli.declaring import command
from crux_workspace.cli.session import Session
from crux_workspace.errors import ErrorCode, InvalidInputError

__all__ = ["append", "write"]

_PANEL = "Files"


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
