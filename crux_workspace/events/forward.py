"""Reading the log forwards from a place, and being sure that it is still the same log."""

from __future__ import annotations

from dataclasses import dataclass

from crux_workspace.errors import ErrorCode, StorageError
from crux_workspace.events.cursors import (
    AFTER_COMMIT,
    NO_MARK,
    EventCursor,
    mark,
    start_cursor,
)
from crux_workspace.events.log import log_head, read_meta, sequence_of_key
from crux_workspace.model.changes import Change
from crux_workspace.storage.layout import (
    LOG_NAME,
    LOG_PREFIX,
    META_KEY,
    LogRecord,
    decode_changes,
    key,
    log_key,
    number,
)
from crux_workspace.storage.records import Reader, Record

__all__ = ["Gap", "LoggedCommit", "Stretch", "find_end", "find_oldest", "read_stretch"]

MAX_CHANGES = 4096
"""Most changes of one stretch, its first commit excepted."""
_MAX_TRIES = 10


class Gap(Exception):
    """Events after the place are lost, or the log is not the one the place was in."""


@dataclass(frozen=True, slots=True)
class LoggedCommit:
    """A commit as the log has it."""

    incarnation: bytes
    sequence: int
    commit_id: str
    mark: bytes
    at: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Commits that follow each other, read from one state of the log."""

    incarnation: bytes
    before: bytes
    """Mark of the commit right before the first one; `NO_MARK` when it is not known."""
    commits: tuple[LoggedCommit, ...]
    newest: int
    """Sequence of the namespace's last commit."""


async def find_end(reader: Reader, partition: bytes) -> EventCursor:
    """Return the place after the last commit; for a namespace that does not exist yet, before its first one."""
    for _ in range(_MAX_TRIES):
        [record] = await reader.get_many([META_KEY], bodies=False)
        meta = read_meta(record)
        if meta is None:
            return start_cursor(partition)
        [again, last] = await reader.get_many([META_KEY, log_key(meta.sequence)], bodies=False)
        now = read_meta(again)
        if last is not None and now is not None and now.incarnation == meta.incarnation:
            return EventCursor(
                partition,
                mark(meta.incarnation),
                meta.sequence,
                AFTER_COMMIT,
                mark(log_head(last).commit_id),
            )
    raise _damaged()


async def find_oldest(reader: Reader, partition: bytes) -> EventCursor:
    """Return the place before the oldest commit that the log still has."""
    for _ in range(_MAX_TRIES):
        page = await reader.scan(LOG_PREFIX, limit=1)
        if not page.records:
            return start_cursor(partition)
        oldest = page.records[0]
        sequence = sequence_of_key(oldest.key)
        if sequence == 1:
            return start_cursor(partition)
        [record, still] = await reader.get_many([META_KEY, log_key(sequence)], bodies=False)
        meta = read_meta(record)
        if meta is not None and still is not None:
            commit = mark(log_head(still).commit_id)
            return EventCursor(partition, mark(meta.incarnation), sequence, 0, commit)
        if meta is None:
            return start_cursor(partition)
    raise _damaged()


async def read_stretch(reader: Reader, place: EventCursor, *, limit: int) -> Stretch:
    """Read up to `limit` commits after a place; the first is the place's own commit when the place is inside it.

    One snapshot tells that the log is the one the place was in and gives the commits; further reads only fetch the changes of large
    commits, and stop after `MAX_CHANGES`.

    Raises:
        Gap: The log was replaced, ends before the place, or no longer has what comes next.
        StorageError: The store failed, or a record is damaged.
    """
    for _ in range(_MAX_TRIES):
        keys = [META_KEY, *(log_key(place.sequence + k) for k in range(limit + 1))]
        [record, here, *rest] = await reader.get_many(keys, bodies=False)
        meta = read_meta(record)
        if meta is None:
            if place.sequence == 0:
                return Stretch(NO_MARK, NO_MARK, (), 0)
            raise Gap("the namespace was dropped")
        incarnation = mark(meta.incarnation)
        if place.sequence:
            _check(place, incarnation, meta.sequence, here)
        following = [here, *rest] if place.is_inside else rest
        if following and following[0] is None and meta.sequence > place.sequence:
            raise Gap("the log no longer has what comes next")
        commits = await _decoded(reader, incarnation, following)
        if commits is not None:
            before = NO_MARK if place.is_inside else place.commit
            return Stretch(incarnation, before, commits, meta.sequence)
    raise _damaged()


def _check(place: EventCursor, incarnation: bytes, newest: int, here: Record | None) -> None:
    if place.incarnation != incarnation:
        raise Gap("the namespace was dropped and created again")
    if newest < place.sequence:
        raise Gap("the log ends before the cursor")
    if here is None:
        if place.is_inside:
            raise Gap("the log no longer has the cursor's commit")
    elif place.commit not in (NO_MARK, mark(log_head(here).commit_id)):
        raise Gap("the log was replaced")


async def _decoded(
    reader: Reader, incarnation: bytes, records: list[Record | None]
) -> tuple[LoggedCommit, ...] | None:
    """Decode commits up to the first one that is not there; None when the log changed meanwhile."""
    commits: list[LoggedCommit] = []
    total = 0
    for record in records:
        if record is None:
            break
        head = log_head(record)
        sequence = sequence_of_key(record.key)
        if head.bodies:
            if commits and total >= MAX_CHANGES:
                break
            changes = await _large(reader, sequence, head)
            if changes is None:
                return None
        else:
            changes = head.inline_changes()
        at = record.at if head.at is None else head.at
        commit_id = head.commit_id
        commits.append(
            LoggedCommit(incarnation, sequence, commit_id, mark(commit_id), at, tuple(changes))
        )
        total += len(changes)
    return tuple(commits)


async def _large(reader: Reader, sequence: int, head: LogRecord) -> list[Change] | None:
    """Read the changes of a commit that has bodies; None when it is gone or another by now."""
    further = [key(LOG_NAME, number(sequence), number(k)) for k in range(1, head.bodies)]
    parts = await reader.get_many([log_key(sequence), *further])
    first = parts[0]
    if first is None or log_head(first).commit_id != head.commit_id:
        return None
    changes: list[Change] = []
    for part in parts:
        if part is None or part.body is None:
            return None
        changes += decode_changes(part.body)
    return changes


def _damaged() -> StorageError:
    return StorageError(
        "The log of a namespace cannot be read as a whole; its records are damaged.",
        code=ErrorCode.RECORD_CORRUPT,
    )
