"""Windows of a text in the asset store: what is read is the window, not the text."""

from __future__ import annotations

from contextlib import aclosing

from crux_workspace.engine.codec import Attributes
from crux_workspace.engine.content import off_loop
from crux_workspace.engine.gathering import gather
from crux_workspace.engine.parts import corrupt, load_parts, stream_parts
from crux_workspace.engine.ports import EnginePorts
from crux_workspace.model.lines import byte_window, line_bounds

__all__ = ["Window", "bytes_of", "lines_of"]

_CHARACTER_BYTES = 4

Window = tuple[str, int, bool]
"""The piece, the byte it starts at, and whether it is not the whole text."""


async def bytes_of(
    ports: EnginePorts, path: str, of: Attributes, offset: int, max_bytes: int | None
) -> Window:
    """Return a piece of a text by bytes; see `byte_window`. Memory and reading: the piece."""
    first = min(offset, of.size)
    last = of.size if max_bytes is None else min(first + max_bytes, of.size)
    gather(path, last - first)
    if (first, last) == (0, of.size):
        data, before = await load_parts(ports, path, of), 0
    else:
        before = max(first - _CHARACTER_BYTES, 0)
        wanted = min(last + 1, of.size) - before
        pieces = stream_parts(ports, path, of, offset=before, length=wanted)
        async with aclosing(pieces):
            data = b"".join([piece async for piece in pieces])
    try:
        text, start, cut = await off_loop(
            len(data), lambda: byte_window(data, first - before, max_bytes)
        )
    except UnicodeDecodeError as error:
        raise corrupt(path, "its bytes are not what was written") from error
    return text, before + start, cut or before > 0 or before + len(data) < of.size


async def lines_of(
    ports: EnginePorts, path: str, of: Attributes, start_line: int | None, end_line: int | None
) -> Window:
    """Return a run of whole lines of a text; see `window`. Memory: the window; reading: from the mark before it on.

    Raises:
        InvalidInputError: The window is none of the text's (``INVALID_ARGUMENT``).
    """
    first, count = line_bounds(of.lines, start_line, end_line)
    offset, passed = _mark_before(of, first - 1)
    reading = _Lines(first - 1 - passed, count, offset)
    pieces = stream_parts(ports, path, of, offset=offset)
    known = 0
    async with aclosing(pieces):
        async for piece in pieces:
            is_over = reading.take(piece)
            gather(path, reading.size - known)
            known = reading.size
            if is_over:
                break
    data = b"".join(reading.taken)
    try:
        text = await off_loop(len(data), data.decode)
    except UnicodeDecodeError as error:
        raise corrupt(path, "its bytes are not what was written") from error
    return text, reading.offset, len(data) != of.size


def _mark_before(of: Attributes, newlines: int) -> tuple[int, int]:
    """Return the last known place with fewer line ends before it than these, and how many it has."""
    if of.line_index is None:
        return 0, 0
    step, marks = of.line_index.step, of.line_index.marks
    low, high = 0, len(marks)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if marks[middle] < newlines else (low, middle)
    return (0, 0) if low == 0 else (low * step, marks[low - 1])


class _Lines:
    """Picks some lines out of a stream."""

    def __init__(self, skip: int, count: int | None, offset: int) -> None:
        self.skip = skip
        self.count = count
        self.offset = offset
        """Byte at which the lines start, once none is to be skipped any more."""
        self.taken: list[bytes] = []
        self.size = 0
        """Bytes that were taken."""

    def take(self, piece: bytes) -> bool:
        """Take the next piece; True when there is nothing more to take."""
        start = 0
        if self.skip:
            start, self.skip = _behind_lines(piece, 0, self.skip)
            self.offset += start
            if self.skip:
                return False
        if self.count is None:
            self._keep(piece[start:])
            return False
        end, self.count = _behind_lines(piece, start, self.count)
        self._keep(piece[start:end])
        return self.count == 0

    def _keep(self, part: bytes) -> None:
        self.taken.append(part)
        self.size += len(part)


def _behind_lines(piece: bytes, start: int, lines: int) -> tuple[int, int]:
    """Return the place behind so many line ends, and 0; or the end of the piece, and how many are lacking."""
    there = piece.count(b"\n", start)
    if there < lines:
        return len(piece), lines - there
    end = len(piece)
    while end - start > 1:  # as many as are wanted lie between start and end
        middle = (start + end) // 2
        left = piece.count(b"\n", start, middle)
        if left >= lines:
            end = middle
        else:
            start, lines = middle, lines - left
    return end, 0
