"""Standard output as a feed needs it: line by line, cut back to a known size where that can be done, never blocking for good."""

from __future__ import annotations

import asyncio
import fcntl
import os
import stat
import sys
from collections.abc import Callable

from crux_workspace.cli.cursor_file import OutputMark

__all__ = ["FeedOutput"]


class FeedOutput:
    """Writes lines to standard output without a buffer in between."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._descriptor = sys.stdout.fileno()
        mode = os.fstat(self._descriptor).st_mode
        self.is_file = stat.S_ISREG(mode)
        self._can_be_full = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or self._is_terminal()
        only_written = fcntl.fcntl(self._descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
        self._has_reader = stat.S_ISFIFO(mode) and only_written

    def _is_terminal(self) -> bool:
        return os.isatty(self._descriptor)

    def mark(self) -> OutputMark | None:
        """Return which file the output is and how long it is; None where it is no file."""
        if not self.is_file:
            return None
        status = os.fstat(self._descriptor)
        return OutputMark(status.st_ino, status.st_size)

    def cut_back(self, to: OutputMark | None) -> bool:
        """Take away what was written after a mark, and go on at the end.

        Returns:
            False when this is another file, or one that has lost what was in it: then nothing is taken away.
        """
        now = self.mark()
        if now is None:
            return True
        known = to is None or (now.file == to.file and now.size >= to.size)
        if to is not None and known:
            os.ftruncate(self._descriptor, to.size)
        os.lseek(self._descriptor, 0, os.SEEK_END)
        return known

    def write(self, line: bytes) -> None:
        """Write one line.

        Raises:
            BrokenPipeError: Nobody reads any more.
            OSError: The machine refuses; part of the line may be written.
        """
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def settle(self) -> None:
        """Have what was written survive a crash of the machine, where it is a file."""
        if self.is_file:
            os.fsync(self._descriptor)

    async def writable(self) -> None:
        """Wait until a line can be written without blocking; a cancelled wait wrote nothing."""
        if not self._can_be_full:
            return
        loop = asyncio.get_running_loop()
        can_write = asyncio.Event()
        loop.add_writer(self._descriptor, can_write.set)
        try:
            await can_write.wait()
        finally:
            loop.remove_writer(self._descriptor)

    def when_unread(self, tell: Callable[[], None]) -> None:
        """Call `tell` once when the reader of a pipe goes away, also while nothing is written."""
        if not self._has_reader:
            return
        loop = asyncio.get_running_loop()

        def gone() -> None:
            loop.remove_reader(self._descriptor)
            tell()

        loop.add_reader(self._descriptor, gone)
