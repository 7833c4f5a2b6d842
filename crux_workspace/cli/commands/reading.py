"""``ls``, ``cat``, ``stat``: now, and under ``at`` as it was."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crux_workspace.cli.declaring import app, at_app, command
from crux_workspace.cli.output import time_text
from crux_workspace.cli.session import Session
from crux_workspace.errors import PathNotFoundError

if TYPE_CHECKING:
    from crux_workspace import ListResult, Workspace, WorkspaceView
    from crux_workspace.model.files import WorkspaceEntry

__all__ = ["cat", "ls", "stat"]

_PANEL = "Files"
_BOTH = (app, at_app)
_PAGE = 1000
_WHOLE = 1 << 62
_ENTRY_COLUMNS = ("size", "version", "updated", "kind", "path")


@command("ls", panel=_PANEL, apps=_BOTH, example="crux-workspace ls -l '/workspace/**/*.md'")
async def ls(
    session: Session,
    path: Annotated[str, typer.Argument(help="Directory, file, or glob over files.")] = "/",
    long: Annotated[
        bool, typer.Option("--long", "-l", help="Show size, version, time and kind too.")
    ] = False,
    recursive: Annotated[
        bool, typer.Option("--recursive", "-R", help="List all files below.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(help="At most so many entries; a note says how to go on.")
    ] = None,
    cursor: Annotated[str | None, typer.Option(help="Go on where an earlier page ended.")] = None,
) -> None:
    """List a directory, a file, or the files that a glob matches.

    Directories end in a slash. A path that exists is taken literally, else its glob characters count; a missing directory is empty.
    """
    out = session.out
    entries: list[WorkspaceEntry] = []
    async with session.tree() as tree:
        async for page in _pages(tree, path, recursive, limit, cursor):
            cursor = page.cursor
            if out.as_json or long:
                entries += page.entries
            else:
                out.text("".join(f"{_name(entry)}\n" for entry in page.entries))
    if out.as_json:
        out.json({"entries": [entry.to_dict() for entry in entries], "cursor": cursor})
        return
    if long:
        out.table(_ENTRY_COLUMNS, map(_entry_row, entries))
    if cursor:
        out.note(f"more entries: --cursor {cursor}")


async def _pages(
    tree: Workspace | WorkspaceView,
    path: str,
    recursive: bool,
    limit: int | None,
    cursor: str | None,
) -> AsyncIterator[ListResult]:
    """Give all pages, or one when there is a limit."""
    while True:
        page = await tree.list(
            path, recursive=recursive, limit=_PAGE if limit is None else limit, cursor=cursor
        )
        yield page
        cursor = page.cursor
        if cursor is None or limit is not None:
            return


def _name(entry: WorkspaceEntry) -> str:
    return str(entry.path) if entry.kind == "file" else f"{entry.path.rstrip('/')}/"


def _entry_row(entry: WorkspaceEntry) -> tuple[object, ...]:
    from crux_workspace.model.files import known_size

    if entry.kind == "directory":
        return (None, None, None, "directory", _name(entry))
    return (
        known_size(entry),
        entry.version,
        time_text(entry.updated_at),
        entry.content_kind,
        entry.path,
    )


@command(
    "cat", panel=_PANEL, apps=_BOTH, example="crux-workspace cat /workspace/photo.png > photo.png"
)
async def cat(
    session: Session,
    path: Annotated[str, typer.Argument(help="File to read.")],
    version: Annotated[
        int | None, typer.Option(help="Read this version, also of a deleted file.")
    ] = None,
    lines: Annotated[
        str | None,
        typer.Option(
            metavar="A:B", help="Only lines A to B, counted from 1; A:, :B and A work too."
        ),
    ] = None,
) -> None:
    """Write a file's exact bytes to stdout, binary ones too, whatever its size.

    With --json it is the content with its type, size and version as one JSON document; binary content is named there, not shown.
    """
    options: dict[str, Any] = {} if version is None else {"version": version}
    window: dict[str, Any] = _window(lines)
    async with session.tree() as tree:
        if session.out.as_json or window:
            content = await tree.read(path, max_inline_bytes=_WHOLE, **options, **window)
            if session.out.as_json or content.kind != "text":
                session.out.json(content.to_dict())
            else:
                session.out.raw(content.content.encode())
            return
        async for chunk in tree.stream(path, **options):
            session.out.raw(chunk)


def _window(lines: str | None) -> dict[str, int]:
    if lines is None:
        return {}
    first, colon, last = lines.partition(":")
    try:
        window = {
            name: int(number)
            for name, number in (("start_line", first), ("end_line", last if colon else first))
            if number
        }
    except ValueError:
        window = {}
    if not window:
        raise typer.BadParameter(f"{lines!r} is not A:B, A:, :B or A.", param_hint="--lines")
    return window


@command("stat", panel=_PANEL, apps=_BOTH, example="crux-workspace stat /workspace/notes.md")
async def stat(
    session: Session, path: Annotated[str, typer.Argument(help="File to describe.")]
) -> None:
    """Say what is known about a file: size, version, type, status, times, metadata; never its content."""
    async with session.tree() as tree:
        file = await tree.stat(path)
    if file is None:
        raise PathNotFoundError(
            f"There is no file at {path}.",
            details={"path": path},
            hint="crux-workspace ls shows what is there; stat is for files.",
        )
    known = file.to_dict()
    if session.out.as_json:
        session.out.json(known)
        return
    for name in ("created_at", "updated_at"):
        known[name] = time_text(known[name])
    del known["preview"]
    session.out.table(
        ("name", "value"), [(name, value) for name, value in known.items() if value is not None]
    )
