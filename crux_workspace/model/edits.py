"""Replacing exact text in a text, and saying well why it cannot be done.

An edit that is not certain is refused: the text has to be there exactly once, or the caller says which one. What a refusal tells
(counts, line numbers, the likely cause) is meant for whoever wrote the edit; it never quotes the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from crux_workspace.errors import EditError, ErrorCode, InvalidInputError
from crux_workspace.model.nearness import likely_cause, nearest_lines
from crux_workspace.model.options import MOST

__all__ = ["MAX_LISTED_LINES", "Edit", "apply_edits", "check_edits", "edits_of"]

MAX_LISTED_LINES = 20
_PLAIN_SEARCH_CHARACTERS = 50_000_000


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement; nothing in it is a pattern."""

    find: str = field(repr=False)
    """The exact text to replace."""
    replace: str = field(repr=False)
    """What to put there; empty removes."""
    occurrence: int | None = None
    """Which hit to replace, from 1, overlapping ones counted; None demands that there is just one."""
    replace_all: bool = False
    """Replace every hit, left to right, none overlapping another."""


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Return a text with all edits made, each on the result of the one before.

    It is all or nothing: an edit that cannot be made leaves nothing of the others.

    Args:
        text: The text to edit.
        edits: At least one edit.

    Returns:
        The new text; the same one when the edits change nothing.

    Raises:
        EditError: The text of an edit is not there, or not as often as ``occurrence`` says (``EDIT_NOT_FOUND``), or it is
            there more than once and nothing says which (``EDIT_AMBIGUOUS``). ``details`` has ``hits``, ``lines`` (of the
            first 20 hits), ``nearest`` (``{"line", "similarity"}`` or None) and ``edit`` (which of them, from 1).
        InvalidInputError: There is no edit, a ``find`` is empty, an ``occurrence`` is below 1, or comes with ``replace_all``
            (``INVALID_ARGUMENT``).
    """
    check_edits(edits)
    for number, edit in enumerate(edits, 1):
        text = _apply(text, edit, number, len(edits))
    return text


def edits_of(
    find: str | None,
    replace: str | None,
    occurrence: int | None,
    replace_all: bool,
    edits: Sequence[Edit] | None,
) -> Sequence[Edit]:
    """Return the edits that a caller gave, either one or several.

    Raises:
        InvalidInputError: It is neither, or both (``INVALID_ARGUMENT``).
    """
    if edits is not None:
        if find is not None or replace is not None or occurrence is not None or replace_all:
            raise InvalidInputError("Give either find and replace, or edits, not both.")
        given: object = edits
        if not isinstance(given, Sequence) or not all(isinstance(item, Edit) for item in given):
            raise InvalidInputError("edits must be a sequence of Edit.")
        return list(edits)
    if find is None or replace is None:
        raise InvalidInputError("Give find and replace, or edits.")
    return [Edit(find, replace, occurrence, replace_all)]


def check_edits(edits: Sequence[Edit]) -> None:
    """Refuse edits that no text could take.

    Raises:
        InvalidInputError: There is no edit, a ``find`` is empty, an ``occurrence`` is below 1, or comes with ``replace_all``
            (``INVALID_ARGUMENT``).
    """
    if not edits:
        raise InvalidInputError(
            "The edit was refused because it names nothing to replace.",
            hint="Give find and replace, or at least one edit.",
        )
    for number, edit in enumerate(edits, 1):
        _check(edit, number)


def _check(edit: Edit, number: int) -> None:
    find: object = edit.find
    replace: object = edit.replace
    occurrence: object = edit.occurrence
    replace_all: object = edit.replace_all
    if not isinstance(find, str) or not isinstance(replace, str):
        problem = "find and replace have to be str"
    elif not find:
        problem = "find is empty"
    elif not isinstance(replace_all, bool):
        problem = "replace_all is neither True nor False"
    elif occurrence is None:
        return
    elif isinstance(occurrence, bool) or not isinstance(occurrence, int) or occurrence < 1:
        problem = "occurrence is not a whole number of 1 or more"
    elif occurrence > MOST:
        problem = "occurrence is larger than any count can be"
    elif replace_all:
        problem = "occurrence and replace_all exclude each other"
    else:
        return
    raise InvalidInputError(
        f"The edit was refused because {problem}.",
        details={"edit": number},
        hint="Name the exact text to replace, and at most one of occurrence and replace_all.",
    )


def _apply(text: str, edit: Edit, number: int, total: int) -> str:
    find = edit.find
    first = text.find(find)
    if first < 0:
        raise _not_found(text, edit, number, total)
    if edit.replace_all:
        return text.replace(find, edit.replace)
    at = first
    if edit.occurrence is None:
        if text.find(find, first + 1) >= 0:
            raise _ambiguous(text, find, number, total)
    elif edit.occurrence > 1:
        reachable = min(edit.occurrence, len(text) + 1)  # no text has more hits than characters
        at = next(islice(_hits(text, find), reachable - 1, None), -1)
        if at < 0:
            raise _too_few(text, edit, number, total)
    return text[:at] + edit.replace + text[at + len(find) :]


def _hits(text: str, find: str) -> Iterator[int]:
    """Return where a text occurs in another, overlapping, in time that does not grow with hits times length."""
    at = text.find(find)
    compared = 0
    while at >= 0:
        yield at
        compared += len(find)
        if compared > _PLAIN_SEARCH_CHARACTERS and len(find) > 1:
            yield from _hits_after(text, find, at + 1)
            return
        at = text.find(find, at + 1)


def _hits_after(text: str, find: str, start: int) -> Iterator[int]:
    """Return the hits from a place on by Knuth, Morris and Pratt: each character is looked at once."""
    borders = _borders(find)
    matched = 0
    for at in range(start, len(text)):
        character = text[at]
        while matched and find[matched] != character:
            matched = borders[matched - 1]
        matched += find[matched] == character
        if matched == len(find):
            yield at - matched + 1
            matched = borders[matched - 1]


def _borders(find: str) -> list[int]:
    """Return, for each beginning of a text, the length of the longest shorter beginning that also ends it."""
    borders = [0] * len(find)
    length = 0
    for at in range(1, len(find)):
        while length and find[length] != find[at]:
            length = borders[length - 1]
        length += find[length] == find[at]
        borders[at] = length
    return borders


def _count_and_lines(text: str, find: str) -> tuple[int, list[int]]:
    lines: list[int] = []
    line, counted = 1, 0
    for at in islice(_hits(text, find), MAX_LISTED_LINES):
        line += text.count("\n", counted, at)
        counted = at
        lines.append(line)
    hits = text.count(find) if len(find) == 1 else sum(1 for _ in _hits(text, find))
    return hits, lines


def _subject(number: int, total: int) -> str:
    return "The text to replace" if total == 1 else f"The text to replace in edit {number}"


def _times(hits: int) -> str:
    return "once" if hits == 1 else f"{hits} times"


def _ambiguous(text: str, find: str, number: int, total: int) -> EditError:
    hits, lines = _count_and_lines(text, find)
    listed = ", ".join(map(str, dict.fromkeys(lines)))
    more = ", ..." if hits > len(lines) else ""
    return EditError(
        f"{_subject(number, total)} occurs {hits} times, from lines {listed}{more}; say which.",
        code=ErrorCode.EDIT_AMBIGUOUS,
        details={"hits": hits, "lines": lines, "nearest": None, "edit": number},
        hint="Put more of the surrounding text into find, or give occurrence or replace_all.",
    )


def _too_few(text: str, edit: Edit, number: int, total: int) -> EditError:
    hits, lines = _count_and_lines(text, edit.find)
    return EditError(
        f"{_subject(number, total)} occurs {_times(hits)}, so there is no occurrence {edit.occurrence}.",
        code=ErrorCode.EDIT_NOT_FOUND,
        details={"hits": hits, "lines": lines, "nearest": None, "edit": number},
        hint=f"Give an occurrence from 1 to {hits}.",
    )


def _not_found(text: str, edit: Edit, number: int, total: int) -> EditError:
    cause = likely_cause(text, edit.find)
    nearest = nearest_lines(text, edit.find)
    advice = ["Read the file again and copy the text exactly."]
    if nearest is not None:
        advice.insert(0, f"The nearest text starts at line {nearest['line']}.")
    if cause is not None:
        advice.insert(0, cause)
    return EditError(
        f"{_subject(number, total)} does not occur in the file.",
        code=ErrorCode.EDIT_NOT_FOUND,
        details={"hits": 0, "lines": [], "nearest": nearest, "edit": number},
        hint=" ".join(advice),
    )
