"""``grep``: now, and under ``at`` as it was."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from crux_workspace.cli.declaring import app, at_app, command
from crux_workspace.cli.session import Session

__all__ = ["grep"]


@command(
    "grep",
    panel="Files",
    apps=(app, at_app),
    example="crux-workspace grep -i 'todo' /workspace -C 1",
)
async def grep(
    session: Session,
    query: Annotated[str, typer.Argument(help="Text to find, literally.")],
    path: Annotated[
        str | None,
        typer.Argument(help="File, directory or glob to search; everything if left out."),
    ] = None,
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", "-i", help="Case does not matter.")
    ] = False,
    regex: Annotated[
        bool, typer.Option("--regex", "-E", help="QUERY is a regular expression (RE2).")
    ] = False,
    max_results: Annotated[
        int, typer.Option("--max-results", "-n", help="Stop after so many matches.")
    ] = 100,
    context: Annotated[
        int, typer.Option("--context", "-C", help="Lines to show before and after.")
    ] = 0,
) -> None:
    """Search the contents of text and JSON files.

    Prints path:line:text for each match; nothing found prints nothing and is a success. Says on stderr when there are more matches.
    """
    options: dict[str, Any] = {} if path is None else {"path": path}
    async with session.tree() as tree:
        found = await tree.grep(
            query,
            ignore_case=ignore_case,
            regex=regex,
            max_results=max_results,
            context_lines=context,
            **options,
        )
    out = session.out
    if out.as_json:
        out.json(found.to_dict())
        return
    for number, match in enumerate(found.matches):
        if context and number:
            out.line("--")
        for before, text in enumerate(match.before, start=match.line - len(match.before)):
            out.line(f"{match.path}-{before}-{text}")
        out.line(f"{match.path}:{match.line}:{match.text}")
        for after, text in enumerate(match.after, start=match.line + 1):
            out.line(f"{match.path}-{after}-{text}")
    if found.truncated:
        out.note(f"more matches than {max_results}: raise --max-results or narrow the search")
