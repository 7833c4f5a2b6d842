"""Listing a source-backed mount: its provider's pages, held to the directory that was asked for, and all its files at once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from crux_workspace.errors import StorageError
from crux_workspace.model.files import WorkspaceDirectory, WorkspaceEntry, WorkspaceFile
from crux_workspace.model.globs import compile_glob
from crux_workspace.model.paths import is_at_or_below, is_below, parent, sort_key
from crux_workspace.model.settings import Mount
from crux_workspace.model.sources import MountListOptions
from crux_workspace.mounts.calling import Caller, invalid, too_slow
from crux_workspace.mounts.checking import Checker

__all__ = ["MAX_ENTRIES", "MAX_PAGES", "Collected", "SourceListing", "child_of", "children_of"]

MAX_ENTRIES = 100_000
"""Most files of one source that are gathered for a recursive listing, a glob or a search."""
MAX_PAGES = 10_000
_PATIENCE = 10
"""An operation of many calls may take this many times as long as one."""
_REMEMBERED = 4
_REMEMBERED_S = 60.0


@dataclass(slots=True)
class Collected:
    """Files of a source, in order, and why they may not be all."""

    files: list[WorkspaceFile]
    problem: StorageError | None = None

    def complete(self) -> list[WorkspaceFile]:
        """Return the files.

        Raises:
            StorageError: They may not be all (``SOURCE_INVALID``, ``STORE_TIMEOUT``).
        """
        if self.problem is not None:
            raise self.problem
        return self.files


class Recent:
    """What the last few listings found, for the pages that follow; each for a minute at most."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, ...], tuple[Any, asyncio.TimerHandle]] = OrderedDict()

    def keep(self, key: tuple[str, ...], found: object) -> None:
        """Remember what was found, in place of what was before."""
        self.drop(key)
        while len(self._held) >= _REMEMBERED:
            self.drop(next(iter(self._held)))
        timer = asyncio.get_running_loop().call_later(_REMEMBERED_S, self.drop, key)
        self._held[key] = (found, timer)

    def get(self, key: tuple[str, ...]) -> Any:  # noqa: ANN401 - whatever was kept
        """Return what was found, None when it is not known any more."""
        held = self._held.get(key)
        return None if held is None else held[0]

    def drop(self, key: tuple[str, ...]) -> None:
        """Forget it."""
        held = self._held.pop(key, None)
        if held is not None:
            held[1].cancel()


class _Endless(Exception):
    """Pages do not end; what was found so far may be of use."""

    def __init__(self, error: StorageError) -> None:
        super().__init__()
        self.error = error


@dataclass(slots=True)
class _Effort:
    """What one operation of many pages has cost so far."""

    deadline: float
    pages: int = 0
    files: dict[str, WorkspaceFile] = field(default_factory=dict)


class SourceListing:
    """The listings of one source-backed mount. Paths are normal and on this mount."""

    def __init__(self, mount: Mount, owns: Callable[[str], bool]) -> None:
        self.mount = mount
        self.check = Checker(mount, owns)
        self.recent = Recent()
        self._caller = Caller(mount)

    def deadline(self) -> float:
        """Return when an operation of many calls that begins now has to be over."""
        return asyncio.get_running_loop().time() + _PATIENCE * self.mount.timeout_ms / 1000

    async def _page(
        self, path: str, limit: int | None, cursor: str | None
    ) -> tuple[list[WorkspaceEntry], str | None]:
        options = MountListOptions(mount_path=self.mount.path, limit=limit, cursor=cursor)
        return self.check.page(await self._caller.call("list", path, options))

    async def page(
        self, path: str, limit: int | None, cursor: str | None
    ) -> tuple[list[WorkspaceEntry], str | None]:
        """Return what one page of the provider has at or below a path: checked, each once, in order."""
        entries, following = await self._page(path, limit, cursor)
        if following is not None and following == cursor:
            raise invalid(self.mount, "list", "a cursor that it gave before")
        return _within(path, entries), following

    async def _follow(
        self, path: str, effort: _Effort
    ) -> AsyncGenerator[list[WorkspaceEntry], None]:
        """Iterate over the pages of a path."""
        cursor: str | None = None
        seen: set[str] = set()
        while True:
            entries, cursor = await self._page(path, None, cursor)
            effort.pages += 1
            yield _within(path, entries)
            if cursor is None:
                return
            self._check_end(cursor, seen, effort)
            seen.add(cursor)

    def _check_end(self, cursor: str, seen: set[str], effort: _Effort) -> None:
        if cursor in seen:
            raise _Endless(invalid(self.mount, "list", "a cursor that it gave before"))
        if effort.pages >= MAX_PAGES or len(effort.files) > MAX_ENTRIES:
            why = f"more than {MAX_ENTRIES:,} files or {MAX_PAGES:,} pages"
            hint = "List below this mount page by page instead."
            raise _Endless(invalid(self.mount, "list", why, hint))
        if asyncio.get_running_loop().time() > effort.deadline:
            raise _Endless(too_slow(self.mount, "list"))

    async def directory(self, path: str) -> list[WorkspaceEntry]:
        """Return the children of a directory, whether the provider gives them, or everything below.

        Raises:
            StorageError: The provider failed, or its pages do not end.
        """
        effort = _Effort(self.deadline())
        found: dict[str, WorkspaceEntry] = {}
        try:
            async for entries in self._follow(path, effort):
                for entry in children_of(path, entries):
                    found.setdefault(entry.path, entry)
        except _Endless as endless:
            raise endless.error from None
        return sorted(found.values(), key=lambda entry: sort_key(entry.path))

    async def has_directory(self, path: str) -> bool:
        """Tell whether anything is below a path."""
        pages = self._follow(path, _Effort(self.deadline()))
        try:
            async with aclosing(pages):
                async for entries in pages:
                    if any(is_below(entry.path, path) for entry in entries):
                        return True
        except _Endless as endless:
            raise endless.error from None
        return False

    async def collect(self, path: str) -> Collected:
        """Gather all files at or below a path, directories descended into."""
        effort = _Effort(self.deadline())
        waiting, seen = [path], {path}
        problem: StorageError | None = None
        try:
            while waiting:
                async for entries in self._follow(waiting.pop(), effort):
                    for entry in _within(path, entries):
                        if isinstance(entry, WorkspaceFile):
                            effort.files.setdefault(entry.path, entry)
                        elif entry.path not in seen:
                            seen.add(entry.path)
                            waiting.append(entry.path)
        except _Endless as endless:
            problem = endless.error
        return Collected(sorted(effort.files.values(), key=lambda f: sort_key(f.path)), problem)

    async def glob(self, pattern: str) -> Collected:
        """Gather the files that a glob matches; a provider that knows globs is asked with it first."""
        compiled = compile_glob(pattern)
        inside = is_at_or_below(compiled.base, self.mount.path)
        if inside:
            entries, cursor = await self._page(pattern, None, None)
            hits = [e for e in entries if isinstance(e, WorkspaceFile) and compiled.matches(e.path)]
            if hits and cursor is None:
                return Collected(hits)
        collected = await self.collect(compiled.base if inside else self.mount.path)
        files = [file for file in collected.files if compiled.matches(file.path)]
        return Collected(files, collected.problem)

    async def gathered(self, scope: str, *, glob: bool, goes_on: bool, paged: bool) -> Collected:
        """Gather the files at or below a path, or that a glob matches; pages of one listing share what the first one found.

        Args:
            scope: Path or glob.
            glob: Which of both.
            goes_on: An earlier page of this listing was given already.
            paged: Further pages may be asked for.
        """
        key = ("glob" if glob else "below", scope)
        known: Collected | None = self.recent.get(key) if goes_on else None
        if known is None:
            try:
                known = await (self.glob(scope) if glob else self.collect(scope))
            except StorageError as error:
                known = Collected([], error)
            if paged:
                self.recent.keep(key, known)
        return known


def _within(path: str, entries: Iterable[WorkspaceEntry]) -> list[WorkspaceEntry]:
    """Leave out what is not below a path, and the path itself unless it is a file."""
    return [e for e in entries if is_below(e.path, path) or (e.path == path and e.kind == "file")]


def child_of(path: str, below: str) -> str:
    """Return the child of a path at which what is below it stands."""
    return f"{path}/{below[len(path) + 1 :].partition('/')[0]}"


def children_of(path: str, entries: Iterable[WorkspaceEntry]) -> list[WorkspaceEntry]:
    """Return what is directly below a path; of what is deeper, the directory that holds it."""
    found: dict[str, WorkspaceEntry] = {}
    for entry in entries:
        if entry.path == path or parent(entry.path) == path:
            found[entry.path] = entry
        else:
            child = child_of(path, entry.path)
            found.setdefault(child, WorkspaceDirectory(child, entry.mount))
    return [*found.values()]
