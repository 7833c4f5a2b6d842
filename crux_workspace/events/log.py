"""Reading the commit log of a namespace."""

from __future__ import annotations

import msgspec

from crux_workspace.errors import ErrorCode, NotFoundError, StorageError
from crux_workspace.events.cursors import encode_event_cursor
from crux_workspace.model.changes import Change
from crux_workspace.model.versions import CommitEntry
from crux_workspace.storage.layout import (
    FORMAT,
    LOG_NAME,
    LOG_PREFIX,
    LogRecord,
    Meta,
    decode_changes,
    decode_log,
    decode_meta,
    is_log_head,
    key,
    log_key,
    number,
)
from crux_workspace.storage.records import Reader, Record

__all__ = [
    "commit_changes",
    "commit_entry",
    "commit_name",
    "find_commit",
    "last_at",
    "log_head",
    "log_page",
    "oldest_sequence",
    "read_meta",
    "sequence_of_key",
    "time_of",
]


def commit_name(sequence: int, commit_id: str) -> str:
    """Write a commit as users see it: looking it up reads one log record."""
    return f"{sequence}-{commit_id}"


def read_meta(record: Record | None) -> Meta | None:
    """Decode a partition's `meta`.

    Raises:
        StorageError: It is damaged, or of a newer format (``RECORD_CORRUPT``).
    """
    if record is None:
        return None
    try:
        meta = decode_meta(record.value)
    except msgspec.MsgspecError as error:
        raise StorageError(
            "The namespace's meta record cannot be read; the data is damaged.",
            code=ErrorCode.RECORD_CORRUPT,
        ) from error
    if meta.format > FORMAT:
        raise StorageError(
            f"The namespace is written in format {meta.format}, this version reads up to {FORMAT};"
            " upgrade crux-workspace.",
            code=ErrorCode.RECORD_CORRUPT,
            details={"format": meta.format},
        )
    return meta


def log_head(record: Record) -> LogRecord:
    """Decode a commit's first log record.

    Raises:
        StorageError: It is damaged (``RECORD_CORRUPT``).
    """
    try:
        return decode_log(record.value)
    except msgspec.MsgspecError as error:
        raise StorageError(
            "A log record cannot be read; the data is damaged.", code=ErrorCode.RECORD_CORRUPT
        ) from error


def sequence_of_key(log_record_key: str) -> int:
    """Read the sequence out of a log key."""
    return int(log_record_key[len(LOG_PREFIX) : len(LOG_PREFIX) + 16])


async def commit_changes(reader: Reader, record: Record, head: LogRecord) -> list[Change]:
    """Return all changes of a commit; `record` was read with its body."""
    if head.bodies == 0:
        return head.inline_changes()
    sequence = sequence_of_key(record.key)
    further = [key(LOG_NAME, number(sequence), number(k)) for k in range(1, head.bodies)]
    bodies = [record, *(await reader.get_many(further) if further else [])]
    return [c for part in bodies if part and part.body for c in decode_changes(part.body)]


async def commit_entry(
    reader: Reader, record: Record, partition: str, incarnation: str
) -> CommitEntry:
    """Make the entry that users see of a commit's first log record, read with its body."""
    head = log_head(record)
    sequence = sequence_of_key(record.key)
    return CommitEntry(
        sequence=sequence,
        commit=commit_name(sequence, head.commit_id),
        at=record.at if head.at is None else head.at,
        verb=head.verb,
        actor=head.actor,
        changes=await commit_changes(reader, record, head),
        cursor=encode_event_cursor(partition, incarnation, sequence, head.commit_id),
    )


async def log_page(
    reader: Reader, *, before: str | None, limit: int
) -> tuple[list[Record], str | None]:
    """Return first log records below the key `before`, newest first, and the `before` of the next page."""
    page = await reader.scan(LOG_PREFIX, before=before, reverse=True, limit=limit, bodies=True)
    return [record for record in page.records if is_log_head(record.key)], page.next


async def oldest_sequence(reader: Reader) -> int | None:
    """Return the oldest commit that the log still has."""
    page = await reader.scan(LOG_PREFIX, limit=1)
    return sequence_of_key(page.records[0].key) if page.records else None


async def find_commit(reader: Reader, commit: str) -> tuple[Record, LogRecord]:
    """Return the first log record of a commit that a user names.

    Raises:
        NotFoundError: No such commit is in the log (``COMMIT_NOT_FOUND``).
    """
    sequence, _, commit_id = commit.partition("-")
    if sequence.isascii() and sequence.isdigit() and len(sequence) <= 16:
        [record] = await reader.get_many([log_key(int(sequence))])
        if record is not None and (head := log_head(record)).commit_id == commit_id:
            return record, head
    raise NotFoundError(
        "There is no such commit in the log of this namespace; it may be older than the retained log.",
        code=ErrorCode.COMMIT_NOT_FOUND,
        details={"commit": commit[:80]},
    )


async def last_at(reader: Reader, newest: int, at: int) -> int:
    """Return the sequence of the last commit at or before time `at`, 0 when all are later.

    Commit times never go backwards, so this seeks by halves: O(log n) reads.

    Raises:
        NotFoundError: That time lies before the retained log (``COMMIT_NOT_FOUND``).
    """
    oldest = await oldest_sequence(reader)
    if oldest is None:
        return 0
    low, high = oldest - 1, newest
    while low < high:
        middle = (low + high + 1) // 2
        [record] = await reader.get_many([log_key(middle)], bodies=False)
        if record is not None and time_of(record) <= at:
            low = middle
        else:
            high = middle - 1
    if low < oldest and oldest > 1:
        raise NotFoundError(
            "That time lies before the retained log of this namespace.",
            code=ErrorCode.COMMIT_NOT_FOUND,
        )
    return low


def time_of(record: Record) -> int:
    """Return the time of a commit's first log record."""
    head = log_head(record)
    return record.at if head.at is None else head.at
