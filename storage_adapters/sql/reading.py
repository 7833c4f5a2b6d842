"""Reads as *queries*: generators that yield statements and are sent their rows.

A query does no I/O itself, so the same one runs in place, in a thread, or inside the writer's transaction. Each of its statements
is drained before the next one starts: no read transaction outlives a page.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Sequence
from typing import Any, TypeAlias, TypeVar

from crux_workspace.storage.layout import META_KEY, prefix_end
from crux_workspace.storage.records import Contains, Page, PartitionPage, Record
from storage_adapters.sql import statements
from storage_adapters.sql.listing import FIRST_BEHIND, list_children

__all__ = [
    "Query",
    "asking_for",
    "bounds",
    "find_partitions",
    "get_many",
    "in_order",
    "run",
    "scan",
    "sequences",
]

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
Query: TypeAlias = Generator[tuple[str, Sequence[Any]], list[Row], T]

NO_END = b""

_EXAMINED_PER_PAGE = 4096
"""Most records one page of a filtered scan looks at, so that a rare needle does not hold a snapshot for long."""


def run(connection: sqlite3.Connection, query: Query[T]) -> T:
    """Run a query on a connection of this thread."""
    try:
        request = next(query)
        while True:
            request = query.send(connection.execute(*request).fetchall())
    except StopIteration as stop:
        value: T = stop.value
        return value


def get_many(partition: str, keys: Sequence[str], *, bodies: bool) -> Query[list[Record | None]]:
    """Read records by key; one statement, so one snapshot, whatever the number of keys."""
    if not keys:
        return []
    return in_order(keys, (yield asking_for(partition, keys, bodies=bodies)))


def asking_for(partition: str, keys: Sequence[str], *, bodies: bool) -> tuple[str, tuple[str, ...]]:
    """Return the statement that reads records by key, at least one."""
    count = len(keys)
    if count > statements.MAX_LISTED:
        text = statements.read_records(None, bodies=bodies)
        return text, (partition, json.dumps(list(keys), ensure_ascii=False))
    padded = statements.padded_count(count)
    padding = (keys[0],) * (padded - count)
    return statements.read_records(padded, bodies=bodies), (partition, *keys, *padding)


def in_order(keys: Sequence[str], rows: Sequence[Row]) -> list[Record | None]:
    """Return the records of rows in the order of the keys that were asked for."""
    if not rows:
        return [None] * len(keys)
    found = {row[0]: Record(*row) for row in rows}
    return [found.get(key) for key in keys]


def bounds(
    prefix: str, after: str | None, before: str | None, delimiter: str | None
) -> tuple[str, str | None] | None:
    """Return the range [low, high) of a scan, or None when it is empty; a `high` of None is no end.

    An `after` that is a common prefix passes over everything below it.
    """
    low, high = prefix, prefix_end(prefix)
    if after is not None and after >= prefix:
        low = after + FIRST_BEHIND
        if delimiter and len(after) > len(prefix) and after.endswith(delimiter):
            low = prefix_end(after) or low
    if before is not None and (high is None or before < high):
        high = before
    if high is not None and low >= high:
        return None
    return low, high


def scan(
    partition: str,
    prefix: str,
    *,
    after: str | None = None,
    before: str | None = None,
    reverse: bool = False,
    limit: int,
    bodies: bool = False,
    delimiter: str | None = None,
    filter: Contains | None = None,
) -> Query[Page]:
    """Read one page of a scan; see `RecordStore.scan`."""
    span = bounds(prefix, after, before, delimiter)
    if span is None or limit < 1:
        return Page([])
    if delimiter:
        source = _Source(partition)
        return (
            yield from list_children(
                source, prefix, span, delimiter, reverse, limit, bodies, filter
            )
        )
    if filter is not None:
        return (yield from _search(partition, span, reverse, limit, bodies, filter))
    rows = yield _Source(partition).page(*span, limit + 1, bodies=bodies, reverse=reverse)
    records = [Record(*row) for row in rows[:limit]]
    return Page(records, next=records[-1].key if len(rows) > limit else None)


class _Source:
    """The statements that `list_children` needs."""

    def __init__(self, partition: str) -> None:
        self._partition = partition

    def page(
        self, low: str, high: str | None, limit: int, *, bodies: bool, reverse: bool
    ) -> tuple[str, Sequence[Any]]:
        text = statements.page(bodies=bodies, contains=False, reverse=reverse)
        return text, (self._partition, low, _end(high), limit)

    def children(
        self, low: str, high: str | None, limit: int, start: int, delimiter: str, behind: str
    ) -> tuple[str, Sequence[Any]]:
        parameters = (self._partition, low, _end(high), start, delimiter, behind, limit)
        return statements.CHILDREN, parameters

    def get_many(self, keys: Sequence[str], *, bodies: bool) -> Query[list[Record | None]]:
        return get_many(self._partition, keys, bodies=bodies)


def _end(high: str | None) -> str | bytes:
    return NO_END if high is None else high


def _search(
    partition: str,
    span: tuple[str, str | None],
    reverse: bool,
    limit: int,
    bodies: bool,
    filter: Contains,
) -> Query[Page]:
    low, high = span
    rows = yield (
        statements.boundary(reverse=reverse),
        (partition, low, _end(high), _EXAMINED_PER_PAGE - 1),
    )
    last: str | None = rows[0][0] if rows else None
    if last is not None and reverse:
        low = last
    elif last is not None:
        high = last + FIRST_BEHIND
    text = statements.page(bodies=bodies, contains=True, reverse=reverse)
    rows = yield text, (partition, low, _end(high), limit + 1, filter.needle)
    records = [Record(*row) for row in rows[:limit]]
    return Page(records, next=records[-1].key if len(rows) > limit else last)


def sequences(partitions: Sequence[str]) -> Query[list[int]]:
    """Read the last sequence of each partition in one statement."""
    rows = yield statements.SEQUENCES, (META_KEY, json.dumps(list(partitions), ensure_ascii=False))
    found: dict[str, int] = dict(rows)
    return [found.get(name, 0) for name in partitions]


def find_partitions(prefix: str, *, after: str | None, limit: int) -> Query[PartitionPage]:
    """Read one page of partition names."""
    span = bounds(prefix, after, None, None)
    if span is None or limit < 1:
        return PartitionPage([])
    low, high = span
    rows = yield statements.PARTITIONS, (low, _end(high), limit + 1)
    names = [row[0] for row in rows[:limit]]
    return PartitionPage(names, names[-1] if len(rows) > limit else None)
