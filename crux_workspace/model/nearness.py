"""Why a text is not found in another although its writer thought so, and where it nearly is.

All of it is a guess for a message, so the work is capped: whole texts are only transformed and searched, and only so many lines are
compared.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from heapq import nlargest
from typing import TypedDict

from cydifflib import SequenceMatcher

from crux_workspace.model.lines import count_lines

__all__ = ["Nearest", "likely_cause", "nearest_lines"]

_LEAST_SIMILARITY = 0.5
_ALL_LINES_UP_TO = 2_000
_WORDS = 8
_LINES_A_WORD = 100
_CANDIDATES = 8
_LINE_CHARACTERS = 300
_BLOCK_LINES = 40
_BLOCK_CHARACTERS = 2_000


class Nearest(TypedDict):
    """Where a text nearly is."""

    line: int
    """First line of the place, from 1."""
    similarity: float
    """How much of it agrees, from 0 to 1."""


def likely_cause(text: str, find: str) -> str | None:
    """Return a sentence that says in what alone the two differ, or None when that is not it.

    Args:
        text: The text that was searched.
        find: The text that does not occur in it.
    """
    for cause, transform in _CAUSES:
        wanted = transform(find)
        if wanted and wanted in transform(text):
            if cause is _LINE_ENDINGS:
                return _line_ending_cause(text, find)
            return cause
    return None


def nearest_lines(text: str, find: str) -> Nearest | None:
    """Return where the lines most like a text begin, or None when nothing is like it.

    Args:
        text: The text that was searched.
        find: The text that does not occur in it.
    """
    wanted = find.removesuffix("\n").split("\n")[:_BLOCK_LINES]
    key_at = max(range(len(wanted)), key=lambda at: len(wanted[at].strip()))
    key = wanted[key_at].strip()[:_LINE_CHARACTERS]
    if not key:
        return None
    matcher = SequenceMatcher(None, b=key, autojunk=False)
    scored = []
    for start in _candidate_lines(text, key):
        matcher.set_seq1(_line_at(text, start).strip()[:_LINE_CHARACTERS])
        if matcher.real_quick_ratio() >= _LEAST_SIMILARITY:
            if matcher.quick_ratio() >= _LEAST_SIMILARITY:
                scored.append((matcher.ratio(), -start))
    best: tuple[float, int] | None = None
    block = "\n".join(wanted)[:_BLOCK_CHARACTERS]
    blocks = SequenceMatcher(None, b=block, autojunk=False)
    for _, negative_start in nlargest(_CANDIDATES, scored):
        start = _lines_before(text, -negative_start, key_at)
        end = _lines_after(text, start, len(wanted))
        blocks.set_seq1(text[start:end][:_BLOCK_CHARACTERS])
        similarity = blocks.ratio()
        if best is None or similarity > best[0]:
            best = (similarity, start)
    if best is None or best[0] < _LEAST_SIMILARITY:
        return None
    return Nearest(line=text.count("\n", 0, best[1]) + 1, similarity=round(best[0], 2))


_LINE_ENDINGS = "It differs only in line endings."
_CAUSES: list[tuple[str, Callable[[str], str]]] = [
    (_LINE_ENDINGS, lambda text: text.replace("\r\n", "\n")),
    (
        "It differs only in Unicode normalisation (composed or decomposed accents, NFC or NFD).",
        lambda text: unicodedata.normalize("NFC", text),
    ),
    (
        "It differs only in white space (indentation, tabs, line breaks).",
        lambda text: "".join(text.split()),
    ),
    ("It differs only in upper and lower case.", str.lower),
]


def _line_ending_cause(text: str, find: str) -> str:
    if "\r\n" in find:
        return "It has CRLF line endings where the file has LF; use '\\n' in find and replace."
    if text.count("\r\n") == text.count("\n"):
        return "It has LF line endings where the file has CRLF; use '\\r\\n' in find and replace."
    return "It differs only in line endings: the file mixes CRLF and LF."


def _candidate_lines(text: str, key: str) -> Iterable[int]:
    """Return where the lines begin that are worth comparing: all of a small text, else those that share a word."""
    starts: dict[int, None] = {}
    if count_lines(text) <= _ALL_LINES_UP_TO:
        at = 0
        while at < len(text):
            starts[at] = None
            at = text.find("\n", at) + 1 or len(text)
        return starts
    for word in sorted(set(key.split()), key=len, reverse=True)[:_WORDS]:
        at = text.find(word)
        for _ in range(_LINES_A_WORD):
            if at < 0:
                break
            starts[text.rfind("\n", 0, at) + 1] = None
            end = text.find("\n", at)
            at = text.find(word, end) if end >= 0 else -1
    return starts


def _line_at(text: str, start: int) -> str:
    end = text.find("\n", start, start + 2 * _LINE_CHARACTERS)
    return text[start : end if end >= 0 else start + 2 * _LINE_CHARACTERS]


def _lines_before(text: str, start: int, count: int) -> int:
    for _ in range(count):
        if start == 0:
            break
        start = text.rfind("\n", 0, start - 1) + 1
    return start


def _lines_after(text: str, start: int, count: int) -> int:
    at = start
    for _ in range(count):
        end = text.find("\n", at)
        if end < 0:
            return len(text)
        at = end + 1
    return at - 1
