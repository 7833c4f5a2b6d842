"""Following a feed to standard output: each event one line, and a place to go on from that agrees with what is printed."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

import typer

from crux_workspace.cli.cursor_file import CursorFile, Place
from crux_workspace.cli.feed_output import FeedOutput
from crux_workspace.cli.output import Output, json_line, time_text

if TYPE_CHECKING:
    from crux_workspace import WatchHandle, WorkspaceChangeEvent

__all__ = ["Ending", "Keeper", "follow", "line_of"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LAG_S = 0.05
_REST_S = 1.0


class Ending:
    """Ends a feed from outside: by a signal, by a clock, or because nobody reads; only while it is `armed`."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.came = False
        self._is_over = False
        self._task = asyncio.current_task()

    @contextmanager
    def armed(self) -> Iterator[None]:
        """Let what happens inside be ended.

        Raises:
            typer.Exit: With 128 + the number of the signal that ended it.
        """
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self.end, number)
        try:
            yield
        except asyncio.CancelledError:
            if not self.came or self._task is None:
                raise
            self._task.uncancel()
        if self.signal is not None:
            raise typer.Exit(128 + self.signal)

    def end(self, number: int | None = None) -> None:
        """End it once: what waits is cancelled, what is being printed is printed to its end."""
        if not self._is_over and self._task is not None:
            self._is_over = self.came = True
            self.signal = number
            self._task.cancel()

    def over(self) -> None:
        """From here on it ends by itself: what comes now is too late to matter."""
        self._is_over = True


class Keeper:
    """Keeps the cursor file in step with the output; without one it keeps nothing.

    Where the output can be cut back, the places of lines that come close together are saved once; else each is saved at once.
    """

    def __init__(self, file: CursorFile | None, output: FeedOutput) -> None:
        self._file = file
        self._output = output
        self._saved: Place | None = None
        self._saved_at = 0.0
        self._unsaved: Place | None = None
        self.is_settled = True
        """The watch was asked for the next event: its cursor covers all that was printed."""

    @property
    def patience_s(self) -> float:
        """How long to wait for an event until `rest` should be called."""
        return _LAG_S if self._unsaved is not None else _REST_S

    def resume(self) -> tuple[str | None, bool]:
        """Return the cursor to go on from, if any, and whether the output could be brought to where it was then."""
        self._saved = None if self._file is None else self._file.load()
        if self._file is None or self._saved is None:
            return None, True
        return self._saved.cursor, self._output.cut_back(self._saved.output)

    def begin(self, watch: WatchHandle) -> None:
        """The watch knows where it begins; from now on nothing may be lost."""
        if watch.cursor is not None:
            self._save(Place(cursor=watch.cursor, output=self._output.mark()))

    def printed(self, cursor: str) -> None:
        """A line was printed; `cursor` is the place behind it."""
        self._unsaved = Place(cursor=cursor, output=self._output.mark())
        if not self._output.is_file or monotonic() - self._saved_at > _LAG_S:
            self._save(self._unsaved)

    def rest(self, watch: WatchHandle) -> None:
        """Save how far it has come, in what it does not print too."""
        if self._unsaved is not None:
            self._save(self._unsaved)
        cursor, saved = watch.cursor, self._saved
        if self.is_settled and saved is not None and cursor not in (None, saved.cursor):
            assert cursor is not None
            self._save(Place(cursor=cursor, output=saved.output))

    def _save(self, place: Place) -> None:
        self._unsaved = None
        if self._file is None:
            return
        self._output.settle()
        self._file.save(place)
        self._saved, self._saved_at = place, monotonic()


async def follow(
    watch: WatchHandle, out: Output, output: FeedOutput, keeper: Keeper, *, limit: int | None
) -> None:
    """Print events, each line before its place is saved, until there were `limit` of them or the watch ends."""
    keeper.begin(watch)
    count = 0
    try:
        while limit is None or count < limit:
            event = await _next(watch, keeper)
            if event is None:
                return
            keeper.is_settled = False
            await output.writable()
            output.write(line_of(event, as_json=out.as_json))
            keeper.printed(event.cursor)
            count += 1
    finally:
        keeper.rest(watch)


async def _next(watch: WatchHandle, keeper: Keeper) -> WorkspaceChangeEvent | None:
    """Wait for an event, resting meanwhile; a cancelled wait loses none."""

    async def ask() -> WorkspaceChangeEvent | None:
        keeper.is_settled = True
        return await anext(watch, None)

    asked = asyncio.create_task(ask())
    try:
        while not (await asyncio.wait({asked}, timeout=keeper.patience_s))[0]:
            keeper.rest(watch)
    finally:
        if not asked.done():
            asked.cancel()
            await asyncio.wait({asked})
    return asked.result()


def line_of(event: WorkspaceChangeEvent, *, as_json: bool) -> bytes:
    """Return an event as a line: JSON, or sequence, time, type, version, path, former path and cursor with tabs between."""
    if as_json:
        return json_line(event.to_dict())
    version = "" if event.version is None else f"v{event.version}"
    cells = (
        str(event.sequence),
        time_text(event.at),
        event.type,
        version,
        event.path,
        event.from_path or "",
        event.cursor,
    )
    return ("\t".join(cells) + "\n").encode(errors="backslashreplace")
