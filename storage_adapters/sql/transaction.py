"""One transaction of the writer: what its jobs have decided so far, and the rows that wait to be written.

Rows are written at the end of the group, many to a statement. A later job that asks for a key or range that waits makes them be
written first; only `meta` is answered from memory, because every commit of a partition asks for it.
"""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct, field

from crux_workspace.storage.layout import META_KEY, Meta, encode_meta
from storage_adapters.sql import statements

__all__ = ["PartitionState", "Transaction"]

_KEYS_PER_DELETE = 64


class PartitionState(Struct):
    """What a transaction knows of one partition."""

    name: str
    entered: bool = False
    """Whether the partition was looked for."""
    id: int | None = None
    """None while the partition does not exist."""
    meta: Meta | None = None
    meta_value: bytes | None = None
    """`meta` as it is written; None where it was not encoded yet."""
    meta_known: bool = False
    meta_waits: bool = False
    """`meta` was changed and not written yet."""
    waiting: list[str] = field(default_factory=list)
    """Sorted keys, `meta` left out, of rows that wait to be written or deleted."""

    def touches(self, keys: Iterable[str]) -> bool:
        """Tell whether one of the keys waits."""
        waiting = self.waiting
        for key in keys:
            at = bisect_left(waiting, key)
            if at < len(waiting) and waiting[at] == key:
                return True
        return False

    def touches_range(self, low: str, high: str) -> bool:
        """Tell whether a key of [low, high) waits."""
        at = bisect_left(self.waiting, low)
        return at < len(self.waiting) and self.waiting[at] < high


class Transaction:
    """Rows that wait and partitions that were entered, between BEGIN and COMMIT."""

    __slots__ = (
        "_bodies",
        "_deletes",
        "_freed",
        "_next_body",
        "_puts",
        "_replaced",
        "connection",
        "partitions",
        "size",
    )

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.partitions: dict[str, PartitionState] = {}
        self.size = 0
        """Bytes of values and bodies decided on so far."""
        self._puts: list[tuple[int, str, int, int, bytes, int | None]] = []
        self._deletes: list[tuple[int, str]] = []
        self._bodies: list[tuple[int, bytes]] = []
        self._freed: list[int] = []
        self._replaced: dict[str, list[str]] = {}
        """Keys to be put by partition, of which it is not known yet whether they are there."""
        self._next_body = 0

    def rows(self, text: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run one statement and drain it."""
        return self.connection.execute(text, parameters).fetchall()

    def enter(self, name: str) -> PartitionState:
        """Return what is known of a partition; nothing is read for it."""
        state = self.partitions.get(name)
        if state is None:
            state = self.partitions[name] = PartitionState(name)
        return state

    def read(
        self, state: PartitionState, keys: list[str], *, bodies: bool
    ) -> list[tuple[Any, ...]]:
        """Read (key, value, body, revision, at, body id) of those of some keys that exist, at least one of them asked for.

        The first read of a partition finds its id along; a body that was not asked for is None.
        """
        count = len(keys)
        wanted: tuple[str, ...]
        if count > statements.MAX_LISTED:
            listed, wanted = None, (json.dumps(keys, ensure_ascii=False),)
        else:
            listed = statements.padded_count(count)
            wanted = (*keys, *keys[:1] * (listed - count))
        if state.entered:
            text = statements.read_known(listed, bodies=bodies)
            return self.rows(text, (state.id, *wanted)) if state.id is not None else []
        rows = self.rows(statements.enter(listed, bodies=bodies), (state.name, *wanted))
        _, _, _, state.id, last_body, _ = rows.pop()
        state.entered = True
        if not self._next_body:
            self._next_body = (last_body or 0) + 1
        return rows

    def create(self, state: PartitionState) -> int:
        """Create the partition of a first commit."""
        part = self.connection.execute(statements.NEW_PARTITION, (state.name,)).lastrowid
        assert part is not None
        state.id = part
        return part

    def new_body(self, data: bytes) -> int:
        """Let a body wait to be written; return its id."""
        body = self._next_body
        self._next_body += 1
        self._bodies.append((body, data))
        self.size += len(data)
        return body

    def put(
        self,
        state: PartitionState,
        part: int,
        stamp: tuple[int, int],
        rows: Iterable[tuple[str, bytes, int | None]],
    ) -> None:
        """Let records wait to be written: (key, value, body id) each."""
        puts, waiting = self._puts, state.waiting
        sequence, at = stamp
        size = 0
        for key, value, body in rows:
            puts.append((part, key, sequence, at, value, body))
            size += len(value)
            insort(waiting, key)
        self.size += size

    def delete(self, state: PartitionState, part: int, key: str) -> None:
        """Let a record wait to be deleted."""
        self._deletes.append((part, key))
        insort(state.waiting, key)

    def replace(self, state: PartitionState, keys: Collection[str]) -> None:
        """Note that keys will be put that nobody has read: what bodies they have is asked once for the whole group."""
        if state.waiting and state.touches(keys):
            self.flush()
        if state.id is not None:
            self._replaced.setdefault(state.name, []).extend(keys)

    def free(self, bodies: Iterable[int]) -> None:
        """Let bodies that lost their owner wait to be deleted."""
        self._freed.extend(bodies)

    def flush(self) -> None:
        """Write what waits: deletes first, because a body id may come free for its next owner."""
        for name, keys in self._replaced.items():
            rows = self.read(self.partitions[name], keys, bodies=False)
            self._freed.extend(body for *_, body in rows if body is not None)
        self._replaced.clear()
        if self._deletes or self._freed:
            self._write_deletes()
        if self._bodies:
            self._insert(statements.insert_bodies, self._bodies)
        for state in self.partitions.values():
            if state.meta_waits and state.meta is not None and state.id is not None:
                meta = state.meta
                value = state.meta_value or encode_meta(meta)
                self._puts.append((state.id, META_KEY, meta.sequence, meta.at, value, None))
            state.meta_waits = False
            state.waiting.clear()
        if self._puts:
            self._insert(statements.put_records, self._puts)

    def _insert(self, text_of: Callable[[int], str], rows: list[Any]) -> None:
        """Write what waits, many rows to a statement."""
        execute = self.connection.execute
        for start in range(0, len(rows), statements.ROWS_PER_INSERT):
            chunk = rows[start : start + statements.ROWS_PER_INSERT]
            execute(text_of(len(chunk)), tuple(chain.from_iterable(chunk)))
        rows.clear()

    def _write_deletes(self) -> None:
        by_part: dict[int, list[str]] = {}
        for part, key in self._deletes:
            by_part.setdefault(part, []).append(key)
        for part, keys in by_part.items():
            for start in range(0, len(keys), _KEYS_PER_DELETE):
                chunk = keys[start : start + _KEYS_PER_DELETE]
                padded = _padded(chunk)
                self.connection.execute(statements.delete_records(len(padded)), (part, *padded))
        for start in range(0, len(self._freed), _KEYS_PER_DELETE):
            padded_bodies = _padded(self._freed[start : start + _KEYS_PER_DELETE])
            self.connection.execute(statements.delete_bodies(len(padded_bodies)), padded_bodies)
        self._deletes.clear()
        self._freed.clear()

    def drop(self, name: str) -> None:
        """Remove a partition whole."""
        state = self.enter(name)
        self.flush()
        if not state.entered:
            self.read(state, [META_KEY], bodies=False)
        if state.id is not None:
            for text in statements.DROP:
                self.connection.execute(text, (state.id,))
        self.partitions[name] = PartitionState(name, entered=True, meta_known=True)


def _padded(values: list[Any]) -> list[Any]:
    return values + values[:1] * (statements.padded_count(len(values)) - len(values))
