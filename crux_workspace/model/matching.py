"""Searching the lines of a text, literally or by a regular expression that takes linear time.

A match never spans lines, matches within a line do not overlap, and matches of no characters are left out. ``^`` and ``$`` stand
for the ends of a line without its ending, whether that is LF or CRLF.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Any

import re2

from crux_workspace.errors import ErrorCode, InvalidInputError
from crux_workspace.model.values import Value

__all__ = ["MAX_LINE_CHARACTERS", "GrepMatch", "Query", "check_query", "compile_query", "cut"]

MAX_LINE_CHARACTERS = 2_000
"""Longest piece of a line that a match shows."""

_LOOK_AROUND = re.compile(r"\(\?<?[=!]")
_BACK_REFERENCE = re.compile(r"(?<!\\)(?:\\\\)*(?:\\[1-9]|\\k|\(\?P=)")
_ANY_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")
# What stands for one character, of whatever class; other escapes, and quoted text, are passed over.
_ONE_CHARACTER = re.compile(
    r"\\Q.*?(?:\\E|$)|(?P<one>\\[pP](?:\{[^}]*\}|.)|\\x\{[^}]*\}|\\[dDwWsS]"
    r"|\[\^?\]?(?:\\.|\[:[^\]]*:\]|[^\]\\])*\]|\.|[^\x00-\x7f])|\\.",
    re.DOTALL,
)
_MAX_STEPS = 750
"""Most steps that an expression may unfold to: what it costs at each character, at the worst."""
# What means the ends of the text, so that lines have to be searched one by one.
_TEXT_ANCHOR = re.compile(r"\\[Az]|\(\?[a-zA-Z]*-[a-zA-Z]*m")


@dataclass(frozen=True, slots=True)
class GrepMatch(Value):
    """One place in a file where a query matches."""

    path: str
    """Path of the file."""
    line: int
    """Line of the match, from 1."""
    column: int
    """Where in the whole line it starts, in code points, from 1."""
    text: str = field(repr=False)
    """The line without its ending, cut to 2,000 characters around the match."""
    before: tuple[str, ...] = field(default=(), repr=False)
    """The lines before it, as many as were asked for, each cut to 2,000 characters."""
    after: tuple[str, ...] = field(default=(), repr=False)
    """The lines after it, likewise."""


@dataclass(frozen=True, slots=True)
class Query:
    """What to search for; make one with ``compile_query``."""

    needle: bytes | None = field(repr=False)
    """UTF-8 that every text with a match contains, or None when there is no such; files can be filtered by it."""
    _literal: str | None = field(repr=False)
    _expression: Any = field(repr=False, compare=False)
    _is_by_line: bool = field(repr=False)
    longest: int = 0
    """Characters of the literal text, 0 of an expression."""

    def search(
        self,
        text: str,
        *,
        path: str,
        limit: int,
        context_lines: int = 0,
        stop: threading.Event | None = None,
    ) -> list[GrepMatch]:
        """Return the first matches in a text.

        Args:
            text: The whole text.
            path: Path that the matches name.
            limit: Most matches to return.
            context_lines: Lines to show before and after each match.
            stop: Set by another thread when the result is not wanted any more.

        Returns:
            The matches in order of line and column.

        Raises:
            InvalidInputError: ``context_lines`` is negative (``INVALID_ARGUMENT``).

        Cost:
            Linear in the length of the text; an expression that matches no characters everywhere costs most.
        """
        if context_lines < 0:
            raise InvalidInputError(
                f"The search was refused because context_lines is {context_lines}, below 0.",
                details={"argument": "context_lines", "value": context_lines},
                hint="Give a context_lines of 0 or more.",
            )
        return self.located(text.replace("\r\n", "\n"), path, limit, context_lines, stop)

    def located(
        self, text: str, path: str, limit: int, context_lines: int, stop: threading.Event | None
    ) -> list[GrepMatch]:
        """Do what `search` does, in a text whose lines end in LF alone."""
        spans: Iterator[tuple[int, int]] = islice(
            self._spans(text), min(max(limit, 0), sys.maxsize)
        )
        if stop is not None:
            spans = takewhile(lambda _: not stop.is_set(), spans)
        return list(_located(text, spans, path, context_lines))

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        if self._literal is not None:
            return _literal_spans(text, self._literal)
        if self._is_by_line:
            return _spans_by_line(self._expression, text)
        return _expression_spans(self._expression, text)

    def spans_within(self, line: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Iterate over the matches between two places of one line; what is outside counts as their surroundings."""
        if self._literal is not None:
            return _literal_spans(line, self._literal, start, end)
        return _expression_spans(self._expression, line, start, end)


def compile_query(query: str, *, ignore_case: bool = False, regex: bool = False) -> Query:
    r"""Return what a query stands for.

    Args:
        query: Text to find, or a regular expression.
        ignore_case: Whether upper and lower case are the same, in any alphabet.
        regex: Whether ``query`` is an expression, in RE2's syntax: ``\s``, ``\d``, ``\w`` and ``\b`` know ASCII alone, ``\pZ``,
            ``\pN`` and ``\pL`` the spaces, digits and letters of all alphabets.

    Returns:
        The query, ready to search any number of texts.

    Raises:
        InvalidInputError: The query is empty, no ``str``, or holds a lone surrogate (``INVALID_ARGUMENT``), or the expression is
            malformed or uses what takes more than linear time, such as look-around and back-references (``INVALID_REGEX``).
    """
    check_query(query)
    if not regex:
        needle = None if ignore_case else query.encode()
        expression = _compile(query, ignore_case=True, is_literal=True) if ignore_case else None
        literal = None if ignore_case else query
        return Query(needle, literal, expression, _is_by_line=False, longest=len(query))
    if _ANY_BYTE.search(query):
        raise _invalid("\\C matches single bytes, which may be parts of characters")
    _compile(query, ignore_case=ignore_case)
    _refuse_costly(query)
    expression = _compile(f"(?m){query}", ignore_case=ignore_case)
    return Query(None, None, expression, _is_by_line=_TEXT_ANCHOR.search(query) is not None)


def check_query(query: object) -> None:
    """Refuse what is no query at all (``INVALID_ARGUMENT``); an expression is judged when it is compiled."""
    if not isinstance(query, str):
        problem = f"it is {type(query).__name__}, not str"
    elif not query:
        problem = "it is empty"
    else:
        try:
            query.encode()
        except UnicodeEncodeError:
            problem = "it holds a lone surrogate"
        else:
            return
    raise InvalidInputError(
        f"The query was refused because {problem}.",
        details={"argument": "query"},
        hint="Give the text to look for.",
    )


def _refuse_costly(query: str) -> None:
    """Refuse an expression that unfolds to many steps: at the worst each of them is taken at each character.

    A class of characters counts as one step: all of Unicode makes a long program, but not a slow one.
    """
    narrow = _ONE_CHARACTER.sub(lambda found: "x" if found["one"] else found[0], query)
    steps = _compile(narrow, ignore_case=False).programsize
    if steps > _MAX_STEPS:
        why = f"it unfolds to {steps} steps, more than {_MAX_STEPS}, because of its counted repetitions"
        raise _invalid(
            why,
            "Use * or + or smaller counts, and no {m,n} around another; or search for a literal.",
        )


def _compile(pattern: str, *, ignore_case: bool, is_literal: bool = False) -> Any:  # noqa: ANN401 - untyped library
    options = re2.Options()
    options.never_nl = True
    options.never_capture = True
    options.log_errors = False
    options.case_sensitive = not ignore_case
    options.literal = is_literal
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        shown = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        if _LOOK_AROUND.search(pattern):
            shown = "look-ahead and look-behind are not supported"
        elif _BACK_REFERENCE.search(pattern):
            shown = "back-references are not supported"
        raise _invalid(shown[:200]) from error


_SYNTAX_HINT = "Use RE2 syntax, which has no look-around and no back-references, or search for the literal text."


def _invalid(why: str, hint: str = _SYNTAX_HINT) -> InvalidInputError:
    return InvalidInputError(
        f"The regular expression was refused because of this: {why}.",
        code=ErrorCode.INVALID_REGEX,
        details={"reason": why},
        hint=hint,
    )


def _literal_spans(
    text: str, literal: str, start: int = 0, end: int | None = None
) -> Iterator[tuple[int, int]]:
    if "\n" in literal:
        return
    at = text.find(literal, start, end)
    while at >= 0:
        behind = at + len(literal)
        yield at, behind
        at = text.find(literal, behind, end)


def _expression_spans(
    expression: Any,  # noqa: ANN401 - untyped library
    text: str,
    first: int = 0,
    last: int | None = None,
) -> Iterator[tuple[int, int]]:
    for match in expression.finditer(text, first, last):
        start, end = match.span()
        if end > start:
            yield start, end


def _spans_by_line(expression: Any, text: str) -> Iterator[tuple[int, int]]:  # noqa: ANN401 - untyped library
    line_start = 0
    for line in text.split("\n"):
        for start, end in _expression_spans(expression, line):
            yield line_start + start, line_start + end
        line_start += len(line) + 1


def _located(
    text: str, spans: Iterator[tuple[int, int]], path: str, context_lines: int
) -> Iterator[GrepMatch]:
    line, line_start, line_end = 1, 0, -1
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    for start, end in spans:
        if start > line_end:
            line += text.count("\n", line_start, start)
            line_start = text.rfind("\n", 0, start) + 1
            line_end = _line_end(text, start)
            before = tuple(_lines_before(text, line_start, context_lines))[::-1]
            after = tuple(_lines_after(text, line_end, context_lines))
        shown = text[slice(*cut(line_start, line_end, start, end))]
        yield GrepMatch(path, line, start - line_start + 1, shown, before, after)


def cut(line_start: int, line_end: int, start: int, end: int) -> tuple[int, int]:
    """Return the piece of a line to show: all of a short one, else with the match in its middle."""
    room = MAX_LINE_CHARACTERS - min(end - start, MAX_LINE_CHARACTERS)
    first = max(min(start - room // 2, line_end - MAX_LINE_CHARACTERS), line_start)
    return first, min(first + MAX_LINE_CHARACTERS, line_end)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def _lines_before(text: str, line_start: int, count: int) -> Iterator[str]:
    for _ in range(count):
        if line_start == 0:
            return
        end = line_start - 1
        line_start = text.rfind("\n", 0, end) + 1
        yield text[line_start : min(end, line_start + MAX_LINE_CHARACTERS)]


def _lines_after(text: str, line_end: int, count: int) -> Iterator[str]:
    for _ in range(count):
        start = line_end + 1
        if start >= len(text):
            return
        line_end = _line_end(text, start)
        yield text[start : min(line_end, start + MAX_LINE_CHARACTERS)]
