"""The tree as it was right after one commit: bindings from `head/` and `was/`, states from `state/`.

A binding that held at commit s either still holds, or its end is recorded in `was/`: heads are read first, so nothing can slip
between the two reads. Cost: a file that has not changed since is one read; otherwise it grows with the states since s.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import msgspec

from crux_workspace.engine.codec import (
    ArtifactRecord,
    Attributes,
    FilePlace,
    Head,
    Was,
    decode,
)
from crux_workspace.engine.entry import Entry, PastState, artifact_record
from crux_workspace.engine.keys import (
    HEAD_PREFIX,
    WAS_PREFIX,
    file_key,
    head_key,
    path_in_key,
    states_prefix,
    was_key_parts,
    was_prefix,
)
from crux_workspace.engine.reads import Children
from crux_workspace.engine.tree import last_state, scan_range
from crux_workspace.errors import ErrorCode, VersionNotFoundError
from crux_workspace.events.log import log_head, time_of
from crux_workspace.model.globs import Glob
from crux_workspace.storage.layout import log_key, number, path_field, subtree_range
from crux_workspace.storage.records import Contains, Reader, Record

__all__ = ["PastReads", "expired_version", "file_at"]

_TRIES = 5
_PLACE = ("asset", "parts", "line_index", "uri", "enc")
_PAGE = 64


def expired_version(path: str) -> VersionNotFoundError:
    """Make the error of content that is not kept any more."""
    return VersionNotFoundError(
        f"What {path} held then was collected or purged since.",
        code=ErrorCode.VERSION_EXPIRED,
        details={"path": path},
    )


@dataclass(frozen=True, slots=True)
class Binding:
    """A file at a path, since one commit."""

    path: str
    file_id: str
    since: int


class PastReads:
    """Reads of the tree as of commit `sequence`, whose time was `at`."""

    def __init__(self, reader: Reader, sequence: int, at: int) -> None:
        self.reader = reader
        self.sequence = sequence
        self.at = at
        self.expired = 0

    async def find(self, path: str, *, bodies: bool = False) -> Entry | None:
        """Return the file that was at a path.

        Raises:
            VersionNotFoundError: A file was there, but what it held is not kept (``VERSION_EXPIRED``).
        """
        [head] = await self.reader.get_many([head_key(path)], bodies=bodies)
        entry = None if head is None else Entry.of(head)
        bound = await self._bound_at(path, entry)
        return None if bound is None else await self._resolve(bound, entry, bodies=bodies)

    async def find_many(self, paths: Sequence[str], *, bodies: bool = False) -> list[Entry | None]:
        """Return the files that were at some paths."""
        return [await self.find(path, bodies=bodies) for path in paths]

    async def _bound_at(self, path: str, entry: Entry | None) -> Binding | None:
        """Return which file was at a path; `entry` is what is there now."""
        if entry is not None and entry.bound <= self.sequence:
            return Binding(path, entry.file_id, entry.bound)
        prefix = was_prefix(path)
        after = prefix + number(self.sequence) + "\x01"
        page = await self.reader.scan(prefix, after=after, limit=1)
        if not page.records:
            return None
        was = decode(Was, page.records[0].value)
        return Binding(path, was.file_id, was.since) if was.since <= self.sequence else None

    async def _resolve(
        self, binding: Binding, entry: Entry | None, *, bodies: bool
    ) -> Entry | None:
        """Return a file as it was, or None when its time to live had passed."""
        found: Entry | None
        if entry is not None and max(entry.bound, entry.changed) <= self.sequence:
            found = entry
        else:
            found = await file_at(self.reader, binding, self.sequence, bodies=bodies)
        if found is None:
            raise expired_version(binding.path)
        return None if found.is_expired(self.at) else found

    async def has(self, path: str) -> bool:
        """Tell whether a file was at a path or below it."""
        [head] = await self.reader.get_many([head_key(path)], bodies=False)
        entry = None if head is None else Entry.of(head)
        bound = await self._bound_at(path, entry)
        if bound is not None and await self._was_live(bound, entry):
            return True
        return await self.has_below(path)

    async def has_below(self, path: str, *, without: frozenset[str] = frozenset()) -> bool:
        """Tell whether a file was below a path, apart from those at some paths."""
        async for binding, entry in self._bindings(path, None):
            if binding.path not in without and await self._was_live(binding, entry):
                return True
        return False

    async def _was_live(self, binding: Binding, entry: Entry | None) -> bool:
        try:
            return await self._resolve(binding, entry, bodies=False) is not None
        except VersionNotFoundError:
            return True

    async def children(self, path: str, *, after: str | None, limit: int) -> Children:
        """Return one page of a directory; a sub-directory costs one seek, whatever is below it."""
        items: list[tuple[str, Entry | str]] = []
        while True:
            jumped = False
            async for binding, entry in self._bindings(path, after):
                if len(items) == limit:
                    return Children(items, items[-1][0])
                found_path = binding.path
                name = found_path[1 if path == "/" else len(path) + 1 :]
                if "/" in name:
                    directory = found_path[: len(found_path) - len(name) + name.index("/")]
                    after = subtree_range("head", directory)[0]
                    if await self.has_below(directory):
                        items.append((after, directory))
                    jumped = True
                    break
                try:
                    found = await self._resolve(binding, entry, bodies=False)
                except VersionNotFoundError:
                    self.expired += 1
                    continue
                if found is not None:
                    items.append((head_key(found_path), found))
            if not jumped:
                return Children(items, None)

    async def files(
        self,
        path: str,
        *,
        after: str | None = None,
        bodies: bool = False,
        filter: Contains | None = None,
        within: Glob | None = None,
    ) -> AsyncIterator[Entry]:
        """Iterate over all files that were below a path; every content is judged by the caller, `filter` is only a hint."""
        del filter, within
        seen = 0
        async for binding, entry in self._bindings(path, after, bodies=bodies):
            seen += 1
            if seen % _PAGE == 0:
                await asyncio.sleep(0)  # a store that answers in place never gives the loop a turn
            try:
                found = await self._resolve(binding, entry, bodies=bodies)
            except VersionNotFoundError:
                self.expired += 1
                continue
            if found is not None:
                yield found

    async def artifacts(
        self, path: str, *, after: str | None
    ) -> AsyncIterator[tuple[str, ArtifactRecord, int]]:
        """Iterate over the artifacts of then at or below a path, by path."""
        async for entry in self._at_or_below(path, after):
            if entry.is_artifact():
                record = await self.artifact(entry)
                if record is None:
                    self.expired += 1
                else:
                    yield entry.path, record, entry.at

    async def _at_or_below(self, path: str, after: str | None) -> AsyncIterator[Entry]:
        start = None if after is None else head_key(after)
        if path != "/" and (start is None or start < head_key(path)):
            try:
                entry = await self.find(path)
            except VersionNotFoundError:
                self.expired += 1
                return
            if entry is not None:
                yield entry
                return
        async for entry in self.files(path, after=start):
            yield entry

    async def artifact(self, entry: Entry) -> ArtifactRecord | None:
        """Return what an artifact showed then; None when its pinned version is not kept."""
        head = entry.head
        shown: Head | PastState | None = head
        version = head.version
        if head.pinned is not None and head.pinned != head.version:
            version = head.pinned
            shown = await last_state(self.reader, head.file_id, version, bodies=False)
        if shown is None:
            return None
        values = shown.state if isinstance(shown, PastState) else shown
        record = artifact_record(head, values, version)
        record.created_at, record.updated_at = entry.created_at, entry.commit_at
        return record

    async def _bindings(
        self, path: str, after: str | None, *, bodies: bool = False
    ) -> AsyncIterator[tuple[Binding, Entry | None]]:
        """Iterate over the bindings that held, in order, each with what is there now if it still holds."""
        heads = self._heads(path, after, bodies=bodies)
        ends = self._ended(path, after)
        head = await anext(heads, None)
        ended = await anext(ends, None)
        while head is not None or ended is not None:
            order = _order(head, ended)
            if order <= 0 and head is not None:
                entry = Entry.of(head)
                if entry.bound <= self.sequence:
                    yield Binding(entry.path, entry.file_id, entry.bound), entry
                    ended = await anext(ends, None) if order == 0 else ended
                    head = await anext(heads, None)
                    continue
                head = await anext(heads, None)
                if order < 0:
                    continue
            if ended is not None:
                yield ended, None
                ended = await anext(ends, None)

    def _heads(self, path: str, after: str | None, *, bodies: bool) -> AsyncIterator[Record]:
        low, high = subtree_range("head", path)
        return scan_range(
            self.reader, low, after=_behind(after), before=high, bodies=bodies, page=_PAGE
        )

    async def _ended(self, path: str, after: str | None) -> AsyncIterator[Binding]:
        """Iterate over the bindings that held at the sequence and ended since."""
        low, high = subtree_range("was", path)
        start = None if after is None else WAS_PREFIX + _behind(after)[len(HEAD_PREFIX) :] + "\x7f"
        judged: str | None = None
        async for record in scan_range(self.reader, low, after=start, before=high, page=_PAGE):
            found_path, end = was_key_parts(record.key)
            if end <= self.sequence or found_path == judged:
                continue
            judged = found_path
            was = decode(Was, record.value)
            if was.since <= self.sequence:
                yield Binding(found_path, was.file_id, was.since)


def _behind(after: str | None) -> str:
    """Turn a cursor's key into one behind everything it covers: a directory's covers its subtree."""
    if after is None:
        return ""
    return after[:-1] + "\x03" if after.endswith("\x02") else after


def _order(head: Record | None, ended: Binding | None) -> int:
    if head is None or ended is None:
        return 1 if head is None else -1
    left, right = path_field(path_in_key(head.key)), path_field(ended.path)
    return (left > right) - (left < right)


async def file_at(reader: Reader, binding: Binding, sequence: int, *, bodies: bool) -> Entry | None:
    """Return a file as it was right after a commit; None when that is not kept.

    Ended states are read first: if none covers the commit, the head does, unless it ended between the two reads; the second look is
    then conclusive.
    """
    for _ in range(2):
        state = await _state_at(reader, binding.file_id, sequence)
        if state is not None and state.until > sequence and not state.is_tombstone:
            return await _of_state(reader, binding, state, bodies=bodies)
        current = await _current(reader, binding.file_id, binding.path, bodies=bodies)
        if current is not None and current.changed <= sequence:
            return await _past_entry(reader, binding, current)
    return None


async def _of_state(
    reader: Reader, binding: Binding, state: PastState, *, bodies: bool
) -> Entry | None:
    """Return the file of an ended state, with its bytes from wherever the version keeps them."""
    for _ in range(2):
        content = state
        if state.state.partial or (bodies and state.state.is_inline):
            last = await last_state(reader, state.file_id, state.version, bodies=bodies)
            if last is None:
                return None
            content = last
        if not content.state.partial:
            return await _past_entry(reader, binding, _entry_of(state, content.state, content.body))
        current = await _current(reader, binding.file_id, binding.path, bodies=bodies)
        if current is not None and current.version == state.version:
            entry = _entry_of(state, current.head, current.body)
            return await _past_entry(reader, binding, entry)
    return None


async def _past_entry(reader: Reader, binding: Binding, entry: Entry) -> Entry:
    """Show a file at the path it had, named after the last commit that had changed it by then."""
    head = msgspec.structs.replace(entry.head, version_path=entry.version_path)
    started = max(entry.changed, binding.since)
    head.version_sequence, head.version_commit = entry.version_sequence, entry.version_commit
    head.version_at, head.created_at = entry.version_at, entry.created_at
    head.changed, head.bound, head.commit_sequence = entry.changed, binding.since, started
    if started == entry.version_sequence:
        head.commit, head.commit_at = entry.version_commit, entry.version_at
    elif started != entry.commit_sequence:
        [record] = await reader.get_many([log_key(started)], bodies=False)
        if record is None:
            head.commit = ""  # the log no longer tells which commit it was
        else:
            head.commit, head.commit_at = log_head(record).commit_id, time_of(record)
    return Entry(binding.path, head, entry.revision, entry.at, entry.body)


async def _state_at(reader: Reader, file_id: str, sequence: int) -> PastState | None:
    """Return the newest ended state that started at or before a commit."""
    prefix = states_prefix(file_id)
    async for record in scan_range(reader, prefix, reverse=True, page=16):
        state = PastState.of(record)
        if state.start <= sequence:
            return state
    return None


async def _current(
    reader: Reader, file_id: str, path: str, *, bodies: bool = False
) -> Entry | None:
    """Return the live head of a file wherever it is now, None when it is deleted or purged."""
    for _ in range(_TRIES):
        [place] = await reader.get_many([file_key(file_id)], bodies=False)
        where = path
        if place is not None:
            found = decode(FilePlace, place.value)
            if found.gone or found.purged:
                return None
            where = found.path
        [head] = await reader.get_many([head_key(where)], bodies=bodies)
        if head is not None:
            entry = Entry.of(head)
            if entry.file_id == file_id:
                return entry
        if place is None:
            return None
    return None


def _entry_of(state: PastState, content: Attributes, body: bytes | None) -> Entry:
    """Make an entry of an ended state and where the content of its version is."""
    values = state.state
    head = Head(
        file_id=state.file_id,
        version=state.version,
        commit=values.version_commit or "",
        bound=0,
        changed=state.start,
        created_at=state.created_at,
        commit_at=state.version_at,
        version_at=state.version_at,
        version_sequence=state.version_sequence,
        **{
            name: getattr(values, name)
            for name in Attributes.__struct_fields__
            if name not in ("version_at", "version_sequence", *_PLACE)
        },
        **{name: getattr(content, name) for name in _PLACE},
        due=values.due,
    )
    return Entry(values.version_path or "", head, state.until, state.version_at, body)
