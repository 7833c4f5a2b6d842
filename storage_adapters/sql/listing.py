"""Scans with a delimiter: the children of a folder, without reading what lies below each of them.

The first rows are read plainly, which is all that most folders need. Where they turn out to lie deep below few children, the rest
is found by seeking: forward by one recursive statement, backward by one statement a child.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from crux_workspace.storage.layout import prefix_end
from crux_workspace.storage.records import Contains, Page, Record

__all__ = ["FIRST_BEHIND", "ChildSource", "list_children"]

FIRST_BEHIND = "\x01"
"""Keys hold no NUL, so nothing lies between a key and the key with this character behind it."""

_FIRST_ROWS = 32
_FIRST_ROWS_BEHIND_A_FOLDER = 8
_MOST_ROWS = 512


Statement = tuple[str, Sequence[Any]]
Row = Sequence[Any]


class ChildSource(Protocol):
    """The statements of one database, for one partition; a `high` of None is no end."""

    def page(
        self, low: str, high: str | None, limit: int, *, bodies: bool, reverse: bool
    ) -> Statement:
        """Read rows of a range, as fields of `Record`."""
        ...

    def children(
        self, low: str, high: str | None, limit: int, start: int, delimiter: str, behind: str
    ) -> Statement:
        """Find the first key of each child by seeking; `start` is the place behind the prefix, from 1."""
        ...

    def get_many(
        self, keys: Sequence[str], *, bodies: bool
    ) -> Generator[Statement, Any, list[Record | None]]:
        """Read records by key."""
        ...


@dataclass(slots=True)
class _Children:
    """The children found so far, in scan order: one row more than the limit tells that there is a next page."""

    prefix: str
    delimiter: str
    limit: int
    names: list[str] = field(default_factory=list)
    rows: dict[str, Row] = field(default_factory=dict)
    folded: set[str] = field(default_factory=set)

    def common(self, key: str) -> str | None:
        """The common prefix that `key` folds into, None for a child of its own."""
        cut = key.find(self.delimiter, len(self.prefix))
        return None if cut < 0 else key[: cut + len(self.delimiter)]

    def add(self, key: str, row: Row | None) -> None:
        """Take one key of the range."""
        common = self.common(key)
        name = key if common is None else common
        if self.names and self.names[-1] == name:
            return
        self.names.append(name)
        if common is not None:
            self.folded.add(common)
        elif row is not None:
            self.rows[key] = row

    @property
    def full(self) -> bool:
        return len(self.names) > self.limit


def list_children(
    source: ChildSource,
    prefix: str,
    span: tuple[str, str | None],
    delimiter: str,
    reverse: bool,
    limit: int,
    bodies: bool,
    filter: Contains | None,
) -> Generator[Statement, Any, Page]:
    """Read one page of a scan with a delimiter; see `RecordStore.scan`."""
    children = _Children(prefix, delimiter, limit)
    yield from _collect(children, source, span, reverse, bodies or filter is not None)
    names = children.names[:limit]
    missing = [n for n in names if n not in children.folded and n not in children.rows]
    found = yield from source.get_many(missing, bodies=bodies or filter is not None)
    records = {name: Record(*row) for name, row in children.rows.items()}
    records.update((record.key, record) for record in found if record is not None)
    chosen = [records[name] for name in names if name in records]
    if filter is not None:
        chosen = [_shown(record, bodies) for record in chosen if _passes(record, filter)]
    prefixes = [name for name in names if name in children.folded]
    return Page(chosen, prefixes, names[-1] if children.full else None)


def _collect(
    children: _Children,
    source: ChildSource,
    span: tuple[str, str | None],
    reverse: bool,
    bodies: bool,
) -> Generator[Statement, Any, None]:
    low, high = span
    # A page that follows a folder mostly goes on with folders like it.
    behind_a_folder = low.endswith(prefix_end(children.delimiter) or children.delimiter)
    wanted = _FIRST_ROWS_BEHIND_A_FOLDER if behind_a_folder else _FIRST_ROWS
    seekable = not reverse and prefix_end(children.delimiter) is not None
    while not children.full:
        before = len(children.names)
        rows: list[Row] = yield source.page(low, high, wanted, bodies=bodies, reverse=reverse)
        for row in rows:
            children.add(row[0], row)
        if len(rows) < wanted:
            return
        last = rows[-1][0]
        common = children.common(last)
        if reverse:
            high = common or last
        else:
            low = (common and prefix_end(common)) or last + FIRST_BEHIND
        sparse = len(children.names) - before < wanted // 4
        if sparse and seekable and not children.full:
            yield from _seek(children, source, low, high)
            return
        wanted = _FIRST_ROWS if sparse else min(wanted * 4, _MOST_ROWS)


def _seek(
    children: _Children, source: ChildSource, low: str, high: str | None
) -> Generator[Statement, Any, None]:
    behind = prefix_end(children.delimiter)
    assert behind is not None
    wanted = children.limit + 1 - len(children.names)
    rows: list[Row] = yield source.children(
        low, high, wanted, len(children.prefix) + 1, children.delimiter, behind
    )
    for row in rows:
        children.add(row[0], None)


def _passes(record: Record, filter: Contains) -> bool:
    return record.body is None or filter.needle in record.body


def _shown(record: Record, bodies: bool) -> Record:
    if bodies or record.body is None:
        return record
    return Record(record.key, record.value, None, record.revision, record.at)
