r"""The difference between two versions of a text, for people, for programs and for ``patch``.

Lines end at ``\n`` or ``\r\n`` only, and two lines are equal when their endings are too, so that a changed line ending or a changed
final newline shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from crux_workspace.errors import InvalidInputError
from crux_workspace.model.alignment import changed_regions
from crux_workspace.model.lines import split_lines
from crux_workspace.model.values import Value

__all__ = ["DiffHunk", "DiffLine", "FileDiff", "diff_texts"]

LineKind = Literal["context", "add", "remove"]
_SIGNS: dict[LineKind, str] = {"context": " ", "add": "+", "remove": "-"}
_NO_NEWLINE = "\n\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True)
class DiffLine(Value):
    """One line of a hunk."""

    kind: LineKind
    text: str = field(repr=False)
    r"""The line without its ``\n``; of a line that ends in ``\r\n`` the ``\r`` is kept."""
    has_newline: bool = field(default=True, repr=False)
    r"""False for a last line that no ``\n`` ends."""


@dataclass(frozen=True, slots=True)
class DiffHunk(Value):
    """Changes that lie close together, with the context around them."""

    from_start: int
    """First line in the old text, from 1; of an empty run, the line before it (0 at the top)."""
    from_lines: int
    """How many lines of the old text the hunk covers."""
    to_start: int
    """First line in the new text, counted likewise."""
    to_lines: int
    """How many lines of the new text the hunk covers."""
    lines: list[DiffLine] = field(repr=False)
    """The lines in order; of one change, removed before added."""


@dataclass(frozen=True, slots=True)
class FileDiff(Value):
    """What changed between two versions of a file."""

    path: str
    """Path of the file."""
    from_version: int
    """Version before."""
    to_version: int
    """Version after."""
    unified: str = field(repr=False)
    """The unified diff; ``patch`` turns the old text into the new one with it. Empty for equal texts."""
    hunks: list[DiffHunk] = field(repr=False)
    """The same as data."""
    added: int
    """How many lines were added."""
    removed: int
    """How many lines were removed."""


def diff_texts(
    path: str, old: str, new: str, from_version: int, to_version: int, context_lines: int = 3
) -> FileDiff:
    """Return the line difference between two texts.

    The time is bounded whatever the texts are: a large piece in which nothing identifies a line counts as replaced as a whole,
    which is coarse but correct.

    Args:
        path: Normal path, for the headers.
        old: Text before.
        new: Text after.
        from_version: Version number of ``old``.
        to_version: Version number of ``new``.
        context_lines: Unchanged lines to show around each change.

    Returns:
        The difference; its ``unified`` is empty when the texts are equal.

    Raises:
        InvalidInputError: ``context_lines`` is negative (``INVALID_ARGUMENT``).
    """
    if context_lines < 0:
        raise InvalidInputError(
            f"The diff was refused because context_lines is {context_lines}, below 0.",
            details={"argument": "context_lines", "value": context_lines},
            hint="Give a context_lines of 0 or more.",
        )
    before, after = split_lines(old), split_lines(new)
    regions = [] if old == new else changed_regions(before, after)
    hunks = [
        _hunk(before, after, group, context_lines) for group in _grouped(regions, context_lines)
    ]
    return FileDiff(
        path,
        from_version,
        to_version,
        _unified(path, from_version, to_version, hunks),
        hunks,
        added=sum(end - start for _, _, start, end in regions),
        removed=sum(end - start for start, end, _, _ in regions),
    )


def _grouped(
    regions: list[tuple[int, int, int, int]], context_lines: int
) -> list[list[tuple[int, int, int, int]]]:
    """Return the regions in runs whose contexts touch or overlap."""
    groups: list[list[tuple[int, int, int, int]]] = []
    for region in regions:
        if groups and region[0] - groups[-1][-1][1] <= 2 * context_lines:
            groups[-1].append(region)
        else:
            groups.append([region])
    return groups


def _hunk(
    before: list[str],
    after: list[str],
    group: list[tuple[int, int, int, int]],
    context_lines: int,
) -> DiffHunk:
    leading = min(context_lines, group[0][0])
    trailing = min(context_lines, len(before) - group[-1][1])
    start, to_start = group[0][0] - leading, group[0][2] - leading
    end, to_end = group[-1][1] + trailing, group[-1][3] + trailing
    lines: list[DiffLine] = []
    at = start
    for removed_from, removed_to, added_from, added_to in group:
        lines += [_line("context", line) for line in before[at:removed_from]]
        lines += [_line("remove", line) for line in before[removed_from:removed_to]]
        lines += [_line("add", line) for line in after[added_from:added_to]]
        at = removed_to
    lines += [_line("context", line) for line in before[at:end]]
    return DiffHunk(
        start + (end > start),
        end - start,
        to_start + (to_end > to_start),
        to_end - to_start,
        lines,
    )


def _line(kind: LineKind, raw: str) -> DiffLine:
    if raw.endswith("\n"):
        return DiffLine(kind, raw[:-1])
    return DiffLine(kind, raw, has_newline=False)


def _unified(path: str, from_version: int, to_version: int, hunks: list[DiffHunk]) -> str:
    if not hunks:
        return ""
    parts = [f"--- {path}@v{from_version}\n+++ {path}@v{to_version}\n"]
    for hunk in hunks:
        parts.append(
            f"@@ -{hunk.from_start},{hunk.from_lines} +{hunk.to_start},{hunk.to_lines} @@\n"
        )
        for line in hunk.lines:
            ending = "\n" if line.has_newline else _NO_NEWLINE
            parts += (_SIGNS[line.kind], line.text, ending)
    return "".join(parts)
