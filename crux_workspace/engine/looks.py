"""What a transaction looked at as a whole, and whether what others committed since its start shows in it.

A store only knows that something happened below a directory. What a look depends on is less: a listing of immediate children does not
show what comes into a directory that it shows already, and whether something is below a directory does not depend on what it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from crux_workspace.engine.codec import Was, decode
from crux_workspace.engine.keys import was_key_parts, was_prefix
from crux_workspace.engine.past import PastReads
from crux_workspace.engine.tree import scan_range
from crux_workspace.model.changes import PURGED_PATH, Change
from crux_workspace.model.globs import Glob
from crux_workspace.model.paths import is_at_or_below, parent
from crux_workspace.storage.layout import prefix_end, subtree_range
from crux_workspace.storage.records import Reader

__all__ = ["Listed", "Look", "Presence", "Searched", "Since"]


@dataclass(frozen=True, slots=True)
class Searched:
    """All files at or below a path, or those of them that a glob matches."""

    path: str
    within: Glob | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """The immediate children of a directory."""

    path: str
    touched: frozenset[str] = frozenset()
    """What the transaction had put something at, or taken away, by then."""
    own: frozenset[str] = frozenset()
    """Directories in it that it had files of its own in: they show, whatever others do."""


@dataclass(frozen=True, slots=True)
class Presence:
    """Whether a file is below a directory, apart from what the transaction itself put there, or took away."""

    path: str
    touched: frozenset[str] = frozenset()


Look = Searched | Listed | Presence


class Since:
    """Judges changes between two commits by what a transaction looked at."""

    def __init__(self, reader: Reader, start: int, end: int, now: int) -> None:
        """Make a judge.

        Args:
            reader: Where to look.
            start: The transaction's start.
            end: The newest commit.
            now: Time by which files are due, before and after.
        """
        self._reader = reader
        self._start = start
        self._before = PastReads(reader, start, now)
        self._after = PastReads(reader, end, now)
        self._changed: dict[Presence, bool] = {}

    async def shows(self, look: Look, change: Change) -> bool:
        """Tell whether a change shows in what was looked at.

        Cost: none for most changes; a few reads for the first one in each directory whose presence counts.
        """
        if change.path != PURGED_PATH:
            return await self._shows(look, change)
        for where in await self._held(look.path, change):
            if await self._shows(look, Change("delete", where)):
                return True
        return False

    async def _held(self, path: str, change: Change) -> list[str]:
        """Return where, at or below a path, files were at the start that were moved away, or overwritten, and purged since."""
        ids = {change.file_id, change.replaced}
        at_path = was_prefix(path), prefix_end(was_prefix(path))
        found: list[str] = []
        for low, high in (at_path, subtree_range("was", path)):
            async for record in scan_range(self._reader, low, before=high):
                where, end = was_key_parts(record.key)
                was = decode(Was, record.value)
                if was.since <= self._start < end and was.file_id in ids:
                    found.append(where)
        return found

    async def _shows(self, look: Look, change: Change) -> bool:
        ends = [change.path] if change.from_path is None else [change.path, change.from_path]
        ends = [end for end in ends if is_at_or_below(end, look.path)]
        if isinstance(look, Searched):
            return bool(ends) and (look.within is None or any(map(look.within.matches, ends)))
        is_update = change.type == "update"
        if isinstance(look, Presence):
            return bool(ends) and not is_update and await self._has_changed(look)
        return any([await self._lists(look, end, is_update=is_update) for end in ends])

    async def _lists(self, look: Listed, path: str, *, is_update: bool) -> bool:
        if is_update or path == look.path:
            return not is_update or parent(path) == look.path
        child = _child(look.path, path)
        if child == path:
            return True
        return child not in look.own and await self._has_changed(Presence(child, look.touched))

    async def _has_changed(self, look: Presence) -> bool:
        known = self._changed.get(look)
        if known is None:
            before = await self._before.has_below(look.path, without=look.touched)
            after = await self._after.has_below(look.path, without=look.touched)
            known = self._changed[look] = before != after
        return known


def _child(directory: str, path: str) -> str:
    """Return the immediate child of a directory that a path below it is, or is below."""
    end = path.find("/", 1 if directory == "/" else len(directory) + 1)
    return path if end < 0 else path[:end]
