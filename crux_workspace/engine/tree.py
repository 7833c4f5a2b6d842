"""The live tree of one namespace as a plan reads it, remembering all it read.

Every record that a plan looks at becomes an expectation of its batch: `LiveTree.expect` for single records, `quiet` for whole
subtrees. A file whose time to live has passed is not there (`entry` gives None); `expired` gives it to the planner that must clear it
away.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

from crux_workspace.engine.bodies import readable
from crux_workspace.engine.entry import Entry, GoneFile, PastState
from crux_workspace.engine.keys import (
    gone_key,
    head_key,
    states_prefix,
    version_prefix,
    way_keys,
)
from crux_workspace.events.log import log_head, read_meta
from crux_workspace.storage.layout import (
    META_KEY,
    Meta,
    log_key,
    number,
    subtree_range,
)
from crux_workspace.storage.records import PreconditionFailed, Reader, Record

__all__ = ["SCAN_PAGE", "LiveTree", "has_live", "last_state", "scan_range"]

SCAN_PAGE = 256
_FEW = 8


async def scan_range(
    reader: Reader,
    prefix: str,
    *,
    after: str | None = None,
    before: str | None = None,
    reverse: bool = False,
    bodies: bool = False,
    page: int = SCAN_PAGE,
) -> AsyncIterator[Record]:
    """Iterate over all records of a prefix, page by page."""
    while True:
        found = await reader.scan(
            prefix, after=after, before=before, reverse=reverse, limit=page, bodies=bodies
        )
        for record in found.records:
            yield record
        if found.next is None:
            return
        if reverse:
            before = found.next
        else:
            after = found.next


async def has_live(reader: Reader, low: str, high: str, now: int) -> bool:
    """Tell whether a head of a key range is a live file's. Cost: 1 read where not all of the first ones have expired."""
    after: str | None = None
    while True:
        page = await reader.scan(low, after=after, before=high, limit=_FEW)
        if any(not Entry.of(record).is_expired(now) for record in page.records):
            return True
        if page.next is None:
            return False
        after = page.next


async def last_state(
    reader: Reader, file_id: str, version: int, *, bodies: bool
) -> PastState | None:
    """Return the last ended state of a version: it has the content, unless the version is current."""
    page = await reader.scan(version_prefix(file_id, version), reverse=True, limit=1, bodies=bodies)
    if not page.records:
        return None
    state = PastState.of(page.records[0])
    return await readable(reader, state) if bodies else state


@dataclass(slots=True)
class LiveTree:
    """What one plan sees of a namespace, and what it must find unchanged at its commit."""

    reader: Reader
    now: int
    careful: bool = False
    """True from the second attempt on: a create looks whether its subtree is empty instead of only expecting it."""
    meta: Meta | None = None
    expect: dict[str, int] = field(default_factory=dict)
    quiet: list[tuple[str, bool]] = field(default_factory=list)
    _records: dict[str, Record | None] = field(default_factory=dict)
    looked: bool = False
    """Whether `meta` was read."""
    _pinned: int | None = None

    @property
    def sequence(self) -> int:
        """The newest commit when the plan began to read."""
        return 0 if self.meta is None else self.meta.sequence

    @property
    def since(self) -> int:
        """The commit from which on quiet subtrees must have stayed quiet."""
        return self.sequence if self._pinned is None else self._pinned

    def adopt(
        self, meta: Meta | None, expect: dict[str, int], quiet: list[tuple[str, bool]]
    ) -> None:
        """Take over what was read earlier, as of `meta`, instead of reading it again."""
        self.meta = meta
        self.looked = True
        self._pinned = self.sequence
        self.expect.update(expect)
        self.quiet.extend(quiet)

    async def get(self, keys: Iterable[str], *, bodies: bool = False) -> list[Record | None]:
        """Read records; each becomes an expectation. The first read of a plan brings `meta` along."""
        wanted = list(keys)
        if self.looked:
            found = await self.reader.get_many(wanted, bodies=bodies)
        else:
            found = await self.reader.get_many([*wanted, META_KEY], bodies=bodies)
            self.meta = read_meta(found.pop())
            self.looked = True
        revisions = {
            key: 0 if record is None else record.revision
            for key, record in zip(wanted, found, strict=True)
        }
        if self.expect:
            for key, revision in revisions.items():
                self.rely(key, revision)
        else:
            self.expect = revisions
        return found

    def rely(self, key: str, revision: int) -> None:
        """Expect a record as it was read.

        Raises:
            PreconditionFailed: The plan read it before, and it was another one: what the plan saw never was at one time.
        """
        if self.expect.setdefault(key, revision) != revision:
            raise PreconditionFailed("revision", key)

    async def look(
        self, *paths: str, bodies: bool = False, ways: bool = True, extra: Iterable[str] = ()
    ) -> None:
        """Read the heads and gone records of `paths`, and with `ways` the heads above them, in one call."""
        keys: dict[str, None] = {}
        for path in paths:
            keys.update(dict.fromkeys(way_keys(path) if ways else (head_key(path),)))
        keys.update(dict.fromkeys(extra))
        found = await self.get(keys, bodies=bodies)
        self._records.update(zip(keys, found, strict=True))

    def record(self, key: str) -> Record | None:
        """Return a record that `look` read."""
        return self._records[key]

    def _bound(self, path: str) -> Entry | None:
        record = self._records[head_key(path)]
        return None if record is None else Entry.at_path(path, record)

    def entry(self, path: str) -> Entry | None:
        """Return the live file at a path that was looked at."""
        entry = self._bound(path)
        return None if entry is None or entry.is_expired(self.now) else entry

    def is_bound(self, path: str) -> bool:
        """Tell whether a path that was looked at has a head, live or expired."""
        return self._records[head_key(path)] is not None

    def expired(self, path: str) -> Entry | None:
        """Return the file at a path that was looked at, if its time to live has passed."""
        entry = self._bound(path)
        return entry if entry is not None and entry.is_expired(self.now) else None

    def gone(self, path: str) -> GoneFile | None:
        """Return the deleted file that goes on at a path that was looked at."""
        record = self._records[gone_key(path)]
        return None if record is None else GoneFile.of(record)

    def touched_below(self, path: str) -> bool:
        """Tell whether the plan itself moved something below a path; it never does on the live tree."""
        del path
        return False

    async def below(self, path: str, *, bodies: bool = False) -> list[Entry]:
        """Return all files below a directory, expired ones included; the subtree must stay quiet until the commit."""
        if not self.looked:
            await self.get(())
        self.quiet.append((path, True))
        low, high = subtree_range("head", path)
        records = scan_range(self.reader, low, before=high, bodies=bodies)
        return [Entry.of(record) async for record in records]

    async def has_below(self, path: str) -> bool:
        """Tell whether a live file is below a directory."""
        return await has_live(self.reader, *subtree_range("head", path), self.now)

    async def states(
        self, file_id: str, *, below: int | None = None, bodies: bool = False, page: int = 8
    ) -> AsyncIterator[PastState]:
        """Iterate over the ended states of a file, newest first, of versions below `below`; bodies are as they are kept."""
        prefix = states_prefix(file_id)
        before = None if below is None else prefix + number(below)
        async for record in scan_range(
            self.reader, prefix, before=before, reverse=True, bodies=bodies, page=page
        ):
            yield PastState.of(record)

    async def version_state(
        self, file_id: str, version: int, *, bodies: bool = False
    ) -> PastState | None:
        """Return the last ended state of a version: the one that has its content."""
        state = await last_state(self.reader, file_id, version, bodies=bodies)
        if state is not None:
            self.rely(state.key, state.revision)
        return state

    async def versions_from(
        self, file_id: str, low: int, high: int
    ) -> AsyncIterator[list[PastState]]:
        """Iterate over the ended states of versions low … high-1, oldest first, each version's together."""
        prefix = states_prefix(file_id)
        group: list[PastState] = []
        async for record in scan_range(
            self.reader, prefix, after=prefix + number(low), before=prefix + number(high), page=64
        ):
            state = PastState.of(record)
            if group and group[0].version != state.version:
                yield group
                group = []
            group.append(state)
        if group:
            yield group

    async def actor_of(self, sequence: int) -> str | None:
        """Return who made a commit, for a conflict's details; None when the log no longer has it."""
        [record] = await self.reader.get_many([log_key(sequence)], bodies=False)
        return None if record is None else log_head(record).actor
