"""The live tree as read verbs see it: files by path, directories synthesised from keys, expired files left out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from crux_workspace.engine.codec import ArtifactRecord, Gone, decode
from crux_workspace.engine.entry import Entry, PastState
from crux_workspace.engine.keys import (
    EXPIRY_PREFIX,
    artifact_key,
    gone_key,
    head_key,
    path_in_key,
    states_prefix,
)
from crux_workspace.engine.tree import SCAN_PAGE, has_live, last_state, scan_range
from crux_workspace.model.globs import Glob
from crux_workspace.storage.layout import (
    SEGMENT_END,
    number,
    path_of_field,
    subtree_range,
)
from crux_workspace.storage.records import Contains, Reader

__all__ = ["Children", "Identity", "LiveReads", "TreeReads", "VersionedReads", "directory_key"]

BODY_PAGE = 64


@dataclass(slots=True)
class Children:
    """One page of a directory: files and directories in order, each with the key that a cursor remembers."""

    items: list[tuple[str, Entry | str]]
    """(key, a file or the path of a directory)"""
    next: str | None


@dataclass(slots=True)
class Identity:
    """Which file a path stands for."""

    entry: Entry | None
    """The live file."""
    raw: Entry | None
    """The head record, also when its time to live has passed."""
    file_id: str | None
    version: int
    """Its last version, a tombstone included."""


class TreeReads(Protocol):
    """What read verbs need of a tree, live or past."""

    expired: int
    """Files left out so far because their content was collected or purged."""

    async def find(self, path: str, *, bodies: bool = False) -> Entry | None:
        """Return the file at a path."""
        ...

    async def find_many(self, paths: Sequence[str], *, bodies: bool = False) -> list[Entry | None]:
        """Return the files at some paths, from one snapshot where the tree is live."""
        ...

    async def has(self, path: str) -> bool:
        """Tell whether a file is at a path or below it."""
        ...

    async def has_below(self, path: str) -> bool:
        """Tell whether a file is below a path."""
        ...

    async def children(self, path: str, *, after: str | None, limit: int) -> Children:
        """Return one page of a directory."""
        ...

    def files(
        self,
        path: str,
        *,
        after: str | None = None,
        bodies: bool = False,
        filter: Contains | None = None,
        within: Glob | None = None,
    ) -> AsyncIterator[Entry]:
        """Iterate over all files below a path, in order; `after` is the key of the last one seen.

        The caller looks only at what `within` matches, and judges it; a transaction need not expect anything of the others.
        """
        ...

    def artifacts(
        self, path: str, *, after: str | None
    ) -> AsyncIterator[tuple[str, ArtifactRecord, int]]:
        """Iterate over (path, artifact, time of its record) at or below a path, by path; `after` is the last path seen."""
        ...


class VersionedReads(TreeReads, Protocol):
    """Reads of a tree whose files have older versions."""

    async def identity(self, path: str, *, bodies: bool = False) -> Identity:
        """Return which file a path stands for."""
        ...

    async def version_state(
        self, file_id: str, version: int, *, bodies: bool = False
    ) -> PastState | None:
        """Return the last ended state of a version."""
        ...

    def versions(self, file_id: str, *, below: int | None) -> AsyncIterator[PastState]:
        """Iterate over the ended versions of a file, newest first."""
        ...


def directory_key(path: str) -> str:
    """The key below which everything in a directory lies; a cursor's position behind the directory."""
    return subtree_range("head", path)[0]


def _directory_of(prefix: str) -> str:
    return path_of_field(prefix.split("\x01", 1)[1].rstrip(SEGMENT_END))


class LiveReads:
    """Reads of the newest state."""

    def __init__(self, reader: Reader, now: int) -> None:
        self.reader = reader
        self.now = now
        self.expired = 0

    async def find(self, path: str, *, bodies: bool = False) -> Entry | None:
        """Return the live file at a path. Cost: 1 read."""
        [record] = await self.reader.get_many([head_key(path)], bodies=bodies)
        if record is None:
            return None
        entry = Entry.of(record)
        return None if entry.is_expired(self.now) else entry

    async def find_many(self, paths: Sequence[str], *, bodies: bool = False) -> list[Entry | None]:
        """Return the live files at some paths, from one snapshot. Cost: 1 read."""
        records = await self.reader.get_many([head_key(path) for path in paths], bodies=bodies)
        entries = [None if record is None else Entry.of(record) for record in records]
        return [None if e is None or e.is_expired(self.now) else e for e in entries]

    async def has(self, path: str) -> bool:
        """Tell whether a live file is at a path or below it. Cost: 1 read."""
        low, high = subtree_range("head", path)
        prefix = head_key(path)[:-1] if path != "/" else low
        return await has_live(self.reader, prefix, high, self.now)

    async def has_below(self, path: str) -> bool:
        """Tell whether a live file is below a path. Cost: 1 read."""
        return await has_live(self.reader, *subtree_range("head", path), self.now)

    async def children(self, path: str, *, after: str | None, limit: int) -> Children:
        """Return one page of a directory; what is below sub-directories is skipped by seeking."""
        low, _ = subtree_range("head", path)
        page = await self.reader.scan(low, after=after, limit=limit, delimiter=SEGMENT_END)
        items: list[tuple[str, Entry | str]] = []
        for record in page.records:
            entry = Entry.of(record)
            if not entry.is_expired(self.now):
                items.append((record.key, entry))
        check = bool(page.prefixes) and await self._something_expired()
        for prefix in page.prefixes:
            directory = _directory_of(prefix)
            if not check or await self.has_below(directory):
                items.append((prefix, directory))
        items.sort(key=lambda item: item[0])
        return Children(items, page.next)

    async def _something_expired(self) -> bool:
        page = await self.reader.scan(
            EXPIRY_PREFIX, before=EXPIRY_PREFIX + number(self.now + 1), limit=1
        )
        return bool(page.records)

    async def files(
        self,
        path: str,
        *,
        after: str | None = None,
        bodies: bool = False,
        filter: Contains | None = None,
        within: Glob | None = None,
    ) -> AsyncIterator[Entry]:
        """Iterate over all live files below a path."""
        del within
        low, _ = subtree_range("head", path)
        while True:
            page = await self.reader.scan(
                low,
                after=after,
                limit=BODY_PAGE if bodies else SCAN_PAGE,
                bodies=bodies,
                filter=filter,
            )
            for record in page.records:
                entry = Entry.of(record)
                if not entry.is_expired(self.now):
                    yield entry
            if page.next is None:
                return
            after = page.next
            await asyncio.sleep(0)  # a store that answers in place never gives the loop a turn

    async def artifacts(
        self, path: str, *, after: str | None
    ) -> AsyncIterator[tuple[str, ArtifactRecord, int]]:
        """Iterate over the live artifacts at or below a path, by path."""
        low, high = subtree_range("art", path)
        low = low if path == "/" else artifact_key(path)[:-1]
        start = None if after is None else artifact_key(after)
        async for record in scan_range(self.reader, low, after=start, before=high):
            artifact = decode(ArtifactRecord, record.value)
            if artifact.due is None or artifact.due > self.now:
                yield path_in_key(record.key), artifact, record.at

    # -- by file id

    async def version_state(
        self, file_id: str, version: int, *, bodies: bool = False
    ) -> PastState | None:
        """Return the last ended state of a version."""
        return await last_state(self.reader, file_id, version, bodies=bodies)

    async def versions(self, file_id: str, *, below: int | None) -> AsyncIterator[PastState]:
        """Iterate over the ended versions of a file, newest first, each by its last state."""
        prefix = states_prefix(file_id)
        before = None if below is None else prefix + number(below)
        seen: int | None = None
        async for record in scan_range(self.reader, prefix, before=before, reverse=True, page=64):
            state = PastState.of(record)
            if state.version != seen:
                seen = state.version
                yield state

    async def identity(self, path: str, *, bodies: bool = False) -> Identity:
        """Return which file a path stands for: the live one, else the one that was deleted there. Cost: 1 read."""
        head, gone = await self.reader.get_many([head_key(path), gone_key(path)], bodies=bodies)
        if head is not None:
            entry = Entry.of(head)
            live = None if entry.is_expired(self.now) else entry
            return Identity(live, entry, entry.file_id, entry.version)
        if gone is None:
            return Identity(None, None, None, 0)
        found = decode(Gone, gone.value)
        return Identity(None, None, found.file_id, found.version)
