"""Reads as queries: they yield statements with their parameters and are sent the rows."""

from __future__ import annotations

from collections.abc import Sequence

from crux_workspace.storage.layout import META_KEY
from crux_workspace.storage.records import Contains, Page, PartitionPage, Record
from storage_adapters.sql.listing import FIRST_BEHIND, list_children
from storage_adapters.sql.postgres.database import Query
from storage_adapters.sql.postgres.texts import Texts
from storage_adapters.sql.reading import bounds

__all__ = ["find_partitions", "get_many", "scan", "sequences"]

_EXAMINED_PER_PAGE = 4096
"""Most records one page of a filtered scan looks at, so that a rare needle does not keep the server busy for long."""

Span = tuple[str, str | None]


def get_many(
    texts: Texts, partition: str, keys: Sequence[str], *, bodies: bool
) -> Query[list[Record | None]]:
    """Read records by key; one statement, so one snapshot, whatever the number of keys."""
    if not keys:
        return []
    rows = yield texts.known[bodies], (partition, keys)
    if len(keys) == 1:
        return [Record(*rows[0]) if rows else None]
    found = {row[0]: Record(*row) for row in rows}
    return [found.get(key) for key in keys]


def scan(
    texts: Texts,
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
        source = _Source(texts, partition)
        return (
            yield from list_children(
                source, prefix, span, delimiter, reverse, limit, bodies, filter
            )
        )
    if filter is not None:
        return (yield from _search(texts, partition, span, reverse, limit, bodies, filter))
    rows = yield _page(texts, partition, span, limit + 1, bodies=bodies, reverse=reverse)
    records = [Record(*row) for row in rows[:limit]]
    return Page(records, next=records[-1].key if len(rows) > limit else None)


def sequences(texts: Texts, partitions: Sequence[str]) -> Query[list[int]]:
    """Read the last sequence of each partition in one statement."""
    rows = yield texts.sequences, (META_KEY, list(partitions))
    found: dict[str, int] = {row[0]: row[1] for row in rows}
    return [found.get(name, 0) for name in partitions]


def find_partitions(
    texts: Texts, prefix: str, *, after: str | None, limit: int
) -> Query[PartitionPage]:
    """Read one page of partition names."""
    span = bounds(prefix, after, None, None)
    if span is None or limit < 1:
        return PartitionPage([])
    low, high = span
    rows = yield texts.partitions(bounded=high is not None), (low, limit + 1, *_high(high))
    names = [row[0] for row in rows[:limit]]
    return PartitionPage(names, names[-1] if len(rows) > limit else None)


class _Source:
    """The statements that `list_children` needs."""

    def __init__(self, texts: Texts, partition: str) -> None:
        self._texts = texts
        self._partition = partition

    def page(
        self, low: str, high: str | None, limit: int, *, bodies: bool, reverse: bool
    ) -> tuple[str, Sequence[object]]:
        return _page(
            self._texts, self._partition, (low, high), limit, bodies=bodies, reverse=reverse
        )

    def children(
        self, low: str, high: str | None, limit: int, start: int, delimiter: str, behind: str
    ) -> tuple[str, Sequence[object]]:
        text = self._texts.children(bounded=high is not None)
        return text, (self._partition, low, limit, start, delimiter, behind, *_high(high))

    def get_many(self, keys: Sequence[str], *, bodies: bool) -> Query[list[Record | None]]:
        return get_many(self._texts, self._partition, keys, bodies=bodies)


def _high(high: str | None) -> tuple[str, ...]:
    return () if high is None else (high,)


def _page(
    texts: Texts, partition: str, span: Span, limit: int, *, bodies: bool, reverse: bool
) -> tuple[str, Sequence[object]]:
    low, high = span
    text = texts.page(bodies=bodies, contains=False, reverse=reverse, bounded=high is not None)
    return text, (partition, low, limit, *_high(high))


def _search(
    texts: Texts,
    partition: str,
    span: Span,
    reverse: bool,
    limit: int,
    bodies: bool,
    filter: Contains,
) -> Query[Page]:
    low, high = span
    rows = yield (
        texts.boundary(reverse=reverse, bounded=high is not None),
        (partition, low, _EXAMINED_PER_PAGE - 1, *_high(high)),
    )
    last: str | None = rows[0][0] if rows else None
    if last is not None and reverse:
        low = last
    elif last is not None:
        high = last + FIRST_BEHIND
    text = texts.page(bodies=bodies, contains=True, reverse=reverse, bounded=high is not None)
    rows = yield text, (partition, low, limit + 1, *_high(high), filter.needle)
    records = [Record(*row) for row in rows[:limit]]
    return Page(records, next=records[-1].key if len(rows) > limit else last)
