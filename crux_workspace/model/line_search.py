"""Searching a text that comes in pieces, in memory that depends on neither its length nor that of its lines.

Whole lines are searched together, some hundred thousand characters at a time. A line of more than a million characters is searched
in pieces that overlap: there, a match of an expression that is longer than the overlap may be found shorter, or not at all.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field, replace

from crux_workspace.model.matching import MAX_LINE_CHARACTERS, GrepMatch, Query, cut

__all__ = ["LineSearch"]

_BLOCK = 1 << 18
_LONG_LINE = 1 << 20
_OVERLAP = 1 << 14


@dataclass(slots=True)
class _Waiting:
    """A match whose following lines have not all come yet."""

    match: GrepMatch
    after: list[str]


@dataclass(slots=True)
class _LongLine:
    """What is known of a line that is searched in pieces."""

    start: str
    """Its first characters: how it looks as a neighbour."""
    text: str = ""
    """The end of what was searched, for what is found across."""
    passed: int = 0
    """Characters before `text`."""
    searched: int = 0
    """Place in `text` behind the last match, or where the next search starts."""
    found: list[_Waiting] = field(default_factory=list)


class LineSearch:
    """One search of one text: feed its pieces, then end it, and take the matches."""

    def __init__(
        self,
        query: Query,
        *,
        path: str,
        limit: int,
        context_lines: int = 0,
        stop: threading.Event | None = None,
    ) -> None:
        """Begin.

        Args:
            query: What to look for.
            path: Path that the matches name.
            limit: Most matches to find.
            context_lines: Lines to show before and after each match.
            stop: Set by another thread when the result is not wanted any more.
        """
        self._query = query
        self._path = path
        self._limit = limit
        self._context = context_lines
        self._stop = stop
        self._line = 0
        """Lines that have passed."""
        self._pending = ""
        self._long: _LongLine | None = None
        self._before: deque[str] = deque(maxlen=context_lines)
        self._found: list[_Waiting] = []
        self._overlap = max(_OVERLAP, query.longest)

    @property
    def matches(self) -> list[GrepMatch]:
        """What was found so far, in order of line and column."""
        found = self._found if self._long is None else self._found + self._long.found
        return [replace(one.match, after=tuple(one.after)) for one in found]

    @property
    def is_done(self) -> bool:
        """Tell whether nothing that may follow can change the result."""
        if self._stop is not None and self._stop.is_set():
            return True
        in_line = 0 if self._long is None else len(self._long.found)
        if len(self._found) + in_line < self._limit:
            return False
        if self._context == 0 or self._limit == 0:
            return True
        return self._long is None and len(self._found[-1].after) == self._context

    def feed(self, piece: str) -> None:
        """Take the next piece of the text, of any length."""
        self._pending += piece
        while not self.is_done and self._step():
            pass

    def end(self) -> None:
        """Take the end of the text."""
        if self._long is not None:
            self._search_piece(self._pending, last=True)
        elif self._pending:
            self._search_lines(self._pending)
        self._pending = ""

    def _step(self) -> bool:
        """Search what can be searched of what came; False when more has to come first."""
        if self._long is not None:
            return self._step_within_line()
        if len(self._pending) < _BLOCK:
            return False
        end = self._pending.rfind("\n") + 1
        if end:
            lines, self._pending = self._pending[:end], self._pending[end:]
            self._search_lines(lines)
            return True
        if len(self._pending) <= _LONG_LINE:
            return False
        self._long = _LongLine(self._pending[:MAX_LINE_CHARACTERS])
        return True

    def _step_within_line(self) -> bool:
        end = self._pending.find("\n", 0, _LONG_LINE)
        if end >= 0:
            piece, self._pending = self._pending[:end], self._pending[end + 1 :]
            self._search_piece(piece.removesuffix("\r"), last=True)
            return True
        if len(self._pending) <= _LONG_LINE:
            return False
        end = _LONG_LINE - self._pending.startswith("\r", _LONG_LINE - 1)
        piece, self._pending = self._pending[:end], self._pending[end:]
        self._search_piece(piece, last=False)
        return True

    # -- whole lines

    def _search_lines(self, text: str) -> None:
        """Search a block of whole lines, and let it complete what was found before it."""
        text = text.replace("\r\n", "\n")
        self._complete(_first_lines(text, self._context))
        found = self._query.located(
            text, self._path, self._limit - len(self._found), self._context, self._stop
        )
        for match in found:
            before = match.before
            if len(before) < self._context:
                lacking = self._context - len(before)
                before = (*list(self._before)[-lacking:], *before)
            numbered = replace(match, line=self._line + match.line, before=before)
            self._found.append(_Waiting(numbered, list(match.after)))
        self._before.extend(_last_lines(text, self._context))
        self._line += text.count("\n") + (not text.endswith("\n"))

    def _complete(self, lines: list[str]) -> None:
        """Give what was found the lines behind it."""
        for one in reversed(self._found):
            lacking = self._context - len(one.after)
            if not lacking:
                return
            one.after += lines[:lacking]

    # -- a long line

    def _search_piece(self, piece: str, *, last: bool) -> None:
        """Search the next piece of a long line, and end the line with its last one."""
        line = self._long
        assert line is not None
        line.text += piece
        behind = len(line.text)
        sure = behind if last else behind - self._overlap
        # The character behind the range tells the expression that the line goes on.
        for start, end in self._query.spans_within(
            line.text, line.searched, behind if last else behind - 1
        ):
            if start >= sure or len(self._found) + len(line.found) >= self._limit:
                break
            if self._stop is not None and self._stop.is_set():
                break
            shown = line.text[slice(*cut(0, behind, start, end))]
            column = line.passed + start + 1
            match = GrepMatch(self._path, self._line + 1, column, shown, tuple(self._before))
            line.found.append(_Waiting(match, []))
            line.searched = end
        if last:
            self._complete([line.start] if self._context else [])
            self._found += line.found
            self._before.append(line.start)
            self._line += 1
            self._long = None
            return
        line.searched = max(line.searched, sure)
        kept = max(line.searched - MAX_LINE_CHARACTERS, 0)
        line.text = line.text[kept:]
        line.passed += kept
        line.searched -= kept


def _first_lines(text: str, count: int) -> list[str]:
    """Return the first lines of a text, each cut to what a neighbour shows."""
    lines: list[str] = []
    start = 0
    while len(lines) < count and start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        lines.append(text[start : min(end, start + MAX_LINE_CHARACTERS)])
        start = end + 1
    return lines


def _last_lines(text: str, count: int) -> list[str]:
    """Return the last lines of a text, likewise, oldest first."""
    lines: list[str] = []
    end = len(text) - text.endswith("\n")
    while len(lines) < count and end >= 0:
        start = text.rfind("\n", 0, end) + 1
        lines.append(text[start : min(end, start + MAX_LINE_CHARACTERS)])
        end = start - 1
    return lines[::-1]
