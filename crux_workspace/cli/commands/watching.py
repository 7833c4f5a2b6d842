"""``watch``, ``cursor``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crux_workspace.cli.cursor_file import CursorFile
from crux_workspace.cli.declaring import command
from crux_workspace.cli.feed import Ending, Keeper, follow
from crux_workspace.cli.feed_output import FeedOutput
from crux_workspace.cli.output import Output
from crux_workspace.cli.session import Session
from crux_workspace.errors import WorkspaceError

if TYPE_CHECKING:
    from crux_workspace import WatchError

__all__ = ["cursor", "watch"]

_PANEL = "Time"


class Begin(StrEnum):
    """Where a watch without a cursor begins."""

    TAIL = "tail"
    OLDEST = "oldest"


@command(
    "watch",
    panel=_PANEL,
    example="crux-workspace watch /outputs --recursive --json --cursor-file feed.cursor >> feed.jsonl",
)
async def watch(
    session: Session,
    path: Annotated[
        str | None,
        typer.Argument(help="File or directory to follow; the whole tree if left out."),
    ] = None,
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="Also everything below PATH.")
    ] = False,
    cursor: Annotated[
        str | None,
        typer.Option(metavar="CURSOR", help="Begin after the event that has this cursor."),
    ] = None,
    cursor_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="Keep the place in FILE, and go on from there next time.",
        ),
    ] = None,
    begin: Annotated[
        Begin | None,
        typer.Option(
            "--from",
            help="Without a cursor begin with what comes (tail, the default) or with the oldest commit that is left.",
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="End after so many events.")] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--timeout", min=0, metavar="SECONDS", help="End after so long; a success."),
    ] = None,
    poll_interval_ms: Annotated[
        int, typer.Option(min=1, help="How often to ask for the commits of other processes.")
    ] = 250,
) -> None:
    """Follow the changes as they are committed, one line an event, in the order of the commits.

    A line has the sequence, time, type, version, path, former path (of a rename) and cursor of an event, with tabs between; with --json
    it is the event as a JSON object. Events that the log no longer has are reported on stderr as a gap, and the feed goes on.

    With --cursor-file FILE a watcher that ends, however it ends, goes on where it was; --cursor and --from then say where to begin the
    first time. When standard output is a regular file of its own (use >>), each event is in it exactly once: what was written after the
    place in FILE was saved is cut off before the feed goes on. A pipe cannot be cut back: there the line comes first and the place is
    saved after it, so after a crash a consumer may see the last line once more, and can tell by its cursor.

    Ctrl-C and SIGTERM save the place and end with exit code 130 and 143; --limit and --timeout end with 0.
    """
    if cursor is not None and begin is not None:
        raise typer.BadParameter("give --cursor or --from, not both.", param_hint="--from")
    ending = Ending()
    options: dict[str, Any] = {
        "path": path,
        "recursive": recursive or None,
        "start": str(begin or Begin.TAIL),
        "poll_interval_ms": poll_interval_ms,
    }
    file = None if cursor_file is None else CursorFile.open(cursor_file)
    try:
        with ending.armed():
            await _watch(session, ending, file, cursor, options, limit=limit, seconds=seconds)
    finally:
        if file is not None:
            file.close()


async def _watch(
    session: Session,
    ending: Ending,
    file: CursorFile | None,
    cursor: str | None,
    options: dict[str, Any],
    *,
    limit: int | None,
    seconds: float | None,
) -> None:
    out, output = session.out, FeedOutput()
    keeper = Keeper(file, output)
    unread = False

    def report(problem: WatchError) -> None:
        _report(out, problem)

    def no_reader() -> None:
        nonlocal unread
        unread = True
        ending.end()

    async with _runtime(session), session.workspace() as ws:
        saved, is_known = keeper.resume()
        if not is_known:
            out.note("the output is not as it was when the place was saved: nothing was cut off")
        place = cursor if saved is None else saved
        try:
            async with ws.watch(cursor=place, on_error=report, **options) as handle:
                output.when_unread(no_reader)
                if seconds is not None:
                    asyncio.get_running_loop().call_later(seconds, ending.end)
                await follow(handle, out, output, keeper, limit=limit)
        except asyncio.CancelledError:
            if unread:
                raise BrokenPipeError from None
            raise
        finally:
            ending.over()


@asynccontextmanager
async def _runtime(session: Session) -> AsyncIterator[None]:
    """Have a runtime in this process for the workspace of an app that brings none; what `open_workspace` opens has its own."""
    from crux_workspace.api import runtimes

    if session.settings.app is None or runtimes.configured is not None:
        yield
        return
    async with runtimes.local_runtime(sweep_interval_ms=None, gc_interval_ms=None) as runtime:
        runtimes.configure(runtime=runtime)
        try:
            yield
        finally:
            runtimes.configure(runtime=None)


def _report(out: Output, problem: WatchError) -> None:
    if out.as_json:
        out.json_note(problem.to_dict())
        return
    error = problem.error
    if isinstance(error, WorkspaceError):
        out.note(f"warning {error.code}: {error.message}")
    else:
        out.note(f"warning: {type(error).__name__}")
    if problem.retry_delay_ms:
        out.note(f"hint: it is tried again in {problem.retry_delay_ms} ms")


@command("cursor", panel=_PANEL, example='crux-workspace watch --cursor "$(crux-workspace cursor)"')
async def cursor(session: Session) -> None:
    """Print the log's end: take it, read the state, then watch from it, and no change is missed."""
    async with session.workspace() as ws:
        place = await ws.cursor()
    if session.out.as_json:
        session.out.json({"cursor": place})
    else:
        session.out.line(place)
