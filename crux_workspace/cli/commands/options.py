"""Options that several commands share, and how the file they return is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from crux_workspace.cli.output import Output

if TYPE_CHECKING:
    from crux_workspace.model.files import WorkspaceEntry

__all__ = ["IdempotencyKey", "IfVersion", "MimeType", "Overwrite", "show_entry"]

IfVersion = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Only if the file is at version N; 0 means that it must not exist."
    ),
]
IdempotencyKey = Annotated[
    str | None,
    typer.Option(metavar="KEY", help="Repeating the command with the same key changes nothing."),
]
MimeType = Annotated[
    str | None, typer.Option("--mime", help="MIME type; guessed from the name if left out.")
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace what is there; undo can bring it back.")
]


def show_entry(out: Output, entry: WorkspaceEntry) -> None:
    """Print what a change left behind: ``path@vN``, as diff writes it, or the directory with a slash."""
    if out.as_json:
        out.json(entry.to_dict())
    elif entry.kind == "file":
        out.line(f"{entry.path}@v{entry.version}")
    else:
        out.line(f"{entry.path}/")
