"""One commit inside the writer's transaction: plan it, judge it, and let its rows wait.

Everything that can refuse happens before the first row is decided on, so a refused commit leaves nothing to take back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import Any, TypeVar

import msgspec

from crux_workspace.errors import ErrorCode, InternalError, StorageError
from crux_workspace.storage.capabilities import StoreCapabilities
from crux_workspace.storage.layout import (
    META_KEY,
    Meta,
    advance,
    decode_meta,
    encode_meta,
    judge_ceilings,
    judge_identity,
    log_rows,
    resolve_key,
)
from crux_workspace.storage.records import (
    SEQUENCE_MARK,
    Batch,
    Committed,
    Contains,
    Page,
    Plan,
    PreconditionFailed,
    Put,
    Record,
    Take,
)
from storage_adapters.sql import statements
from storage_adapters.sql.judging import judge_empty, judge_expected, judge_quiet
from storage_adapters.sql.reading import Query, scan
from storage_adapters.sql.transaction import PartitionState, Transaction

__all__ = ["CAPABILITIES", "Commit"]

T = TypeVar("T")

CAPABILITIES = StoreCapabilities(
    search=True, plans_under_lock=True, multi_process=True, durable=True, task_agnostic=True
)


class Commit:
    """A commit in the making; to its plan it is the `Reader`, whose awaits never suspend."""

    __slots__ = ("_known", "_name", "_revisions", "_state", "_transaction", "failure")

    def __init__(self, transaction: Transaction, name: str) -> None:
        self._transaction = transaction
        self._name = name
        self._state: PartitionState = transaction.enter(name)
        self._known: dict[str, tuple[Any, ...] | None] = {}
        self._revisions: dict[str, int] = {}
        """Of each key that is known; 0 is absent."""
        self.failure: sqlite3.Error | None = None
        """An error of the database that the plan met, whatever it made of it."""

    async def get_many(self, keys: Sequence[str], *, bodies: bool = True) -> list[Record | None]:
        """See `Reader.get_many`."""
        try:
            self._read(keys, bodies)
        except sqlite3.Error as error:
            self.failure = error
            raise
        known = self._known
        found: list[Record | None] = []
        for asked in keys:
            if asked == META_KEY:
                found.append(self._meta())
            elif (row := known[asked]) is None:
                found.append(None)
            elif bodies:
                found.append(Record(*row[:5]))
            else:
                found.append(Record(asked, row[1], None, row[3], row[4]))
        return found

    async def scan(
        self,
        prefix: str,
        *,
        after: str | None = None,
        before: str | None = None,
        reverse: bool = False,
        limit: int,
        bodies: bool = False,
        delimiter: str | None = None,
        filter: Contains | None = None,
    ) -> Page:
        """See `Reader.scan`."""
        query = scan(
            self._name,
            prefix,
            after=after,
            before=before,
            reverse=reverse,
            limit=limit,
            bodies=bodies,
            delimiter=delimiter,
            filter=filter,
        )
        try:
            if self._state.waiting or self._state.meta_waits:
                self._transaction.flush()
            return self._run(query)
        except sqlite3.Error as error:
            self.failure = error
            raise

    def plan(self, plan: Plan) -> Batch:
        """Drive the plan to its batch; it may await nothing but this reader."""
        steps = plan(self).__await__()
        try:
            next(steps)
        except StopIteration as stop:
            batch: Batch = stop.value
            return batch
        steps.close()
        raise InternalError("a plan awaited something else than its reader")

    def apply(self, batch: Batch) -> Committed:
        """Judge the batch and let its rows wait.

        Raises:
            PreconditionFailed: An expectation does not hold.
            CeilingExceeded: A counter would pass its ceiling.
        """
        state, known = self._state, self._known
        if not state.meta_known:
            self._read((), bodies=False)
        meta = state.meta
        judge_identity(meta, batch)
        after = advance(meta, batch)
        puts: dict[str, Put] = {}
        sources: list[str] = []
        for put in batch.puts:
            key = put.key
            if SEQUENCE_MARK in key:
                key = resolve_key(key, after.sequence)
                self._revisions[key], known[key] = (
                    0,
                    None,
                )  # nobody has written a key with a sequence that is yet to come
            puts[key] = put
            if type(put.body) is Take:
                sources.append(put.body.key)
        asked = {**batch.expect, **dict.fromkeys((*batch.deletes, *sources))}
        if not asked.keys() <= known.keys():
            self._read(asked, bodies=False)
        if not batch.expect.items() <= self._revisions.items():
            judge_expected(self._revisions, meta, batch)
        if sources:
            self._judge_sources(sources)
        if batch.expect_empty:
            judge_empty(self._transaction, state, batch)
        if batch.expect_quiet:
            judge_quiet(self._transaction, state, batch)
        judge_ceilings(meta, batch)
        self._write(batch, puts, (after.sequence, after.at))
        state.meta, state.meta_value = after, None
        state.meta_waits = True
        return Committed(after.sequence, after.at)

    def _judge_sources(self, sources: list[str]) -> None:
        """Refuse a batch that takes the body of a record that is not there."""
        for source in sources:
            if source != META_KEY and self._known[source] is None:
                raise PreconditionFailed("revision", source)

    def _run(self, query: Query[T]) -> T:
        try:
            request = next(query)
            while True:
                request = query.send(self._transaction.rows(*request))
        except StopIteration as stop:
            value: T = stop.value
            return value

    def _read(self, keys: Collection[str], bodies: bool) -> None:
        """Get to know keys; with `bodies`, also the bodies of keys known without."""
        known, state = self._known, self._state
        if known:
            missing = [key for key in keys if key not in known and key != META_KEY]
            if bodies:
                missing += [
                    key
                    for key in keys
                    if (row := known.get(key)) is not None and row[5] and row[2] is None
                ]
        else:
            missing = [key for key in keys if key != META_KEY]
        if missing and state.waiting and state.touches(missing):
            self._transaction.flush()
        ask = missing if state.meta_known else [*missing, META_KEY]
        if not ask:
            return
        known.update(dict.fromkeys(missing))
        revisions = self._revisions
        revisions.update(dict.fromkeys(missing, 0))
        for row in self._transaction.read(state, ask, bodies=bodies):
            known[row[0]] = row
            revisions[row[0]] = row[3]
        if not state.meta_known:
            if (row := known.pop(META_KEY, None)) is not None:
                del revisions[META_KEY]
                state.meta, state.meta_value = _meta_of(row[1]), row[1]
            state.meta_known = True

    def _meta(self) -> Record | None:
        state, meta = self._state, self._state.meta
        if meta is None:
            return None
        if state.meta_value is None:
            state.meta_value = encode_meta(meta)
        return Record(META_KEY, state.meta_value, None, meta.sequence, meta.at)

    def _write(self, batch: Batch, puts: dict[str, Put], stamp: tuple[int, int]) -> None:
        transaction, state, known = self._transaction, self._state, self._known
        if not puts.keys() <= known.keys():
            transaction.replace(state, puts.keys() - known.keys())
        part = state.id if state.id is not None else transaction.create(state)
        held: set[int] = set()
        for key in dict.fromkeys(batch.deletes):
            if (row := known[key]) is not None and key not in puts:
                transaction.delete(state, part, key)
                held.add(row[5])
        for key in puts:
            if (row := known.get(key)) is not None:
                held.add(row[5])
        held.discard(None)
        kept: set[int] = set()
        rows: list[tuple[str, bytes, int | None]] = []
        for key, put in puts.items():
            body = put.body
            rows.append((key, put.value, None if body is None else self._body(body, held, kept)))
        if len(held) > len(kept):
            transaction.free(held - kept)
        for key, value, data in log_rows(batch, stamp[0]):
            rows.append((key, value, None if data is None else transaction.new_body(data)))
        transaction.put(state, part, stamp, rows)

    def _body(self, body: bytes | Take, held: set[int], kept: set[int]) -> int | None:
        """Return the id of a put's body; a taken one moves, unless it has another owner."""
        if not isinstance(body, Take):
            return self._transaction.new_body(body)
        row = self._known.get(body.key)
        taken: int | None = None if row is None else row[5]
        if taken is None:
            return None
        if taken in held and taken not in kept:
            kept.add(taken)
            return taken
        ((data,),) = self._transaction.rows(statements.BODY, (taken,))
        return self._transaction.new_body(data)


def _meta_of(value: bytes) -> Meta:
    try:
        return decode_meta(value)
    except msgspec.DecodeError as error:
        raise StorageError(
            "the record that heads a namespace cannot be read; restore the database from a backup",
            code=ErrorCode.RECORD_CORRUPT,
        ) from error
