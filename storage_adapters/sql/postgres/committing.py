"""A batch as the parameters of the function that judges and applies it, and its verdict as the contract's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, TypeVar

from crux_workspace.errors import InternalError
from crux_workspace.storage.capabilities import StoreCapabilities
from crux_workspace.storage.layout import (
    FIELD_END,
    FORMAT,
    LOG_PREFIX,
    check_size,
    log_key,
    log_rows,
    prefix_end,
)
from crux_workspace.storage.records import (
    SEQUENCE_MARK,
    Batch,
    CeilingExceeded,
    Committed,
    PreconditionFailed,
    Put,
    Record,
    Take,
)
from storage_adapters.sql.judging import judge_log
from storage_adapters.sql.postgres.database import Database
from storage_adapters.sql.postgres.following import following
from storage_adapters.sql.postgres.pool import Connection

__all__ = ["CAPABILITIES", "MovedOn", "Request", "apply"]

CAPABILITIES = StoreCapabilities(
    notify=True,
    search=True,
    multi_process=True,
    durable=True,
    task_agnostic=True,
    max_commit_paths=100_000,
    max_commit_bytes=64 << 20,
    max_value_bytes=1 << 20,
    max_body_bytes=32 << 20,
)

_QUIET_ATTEMPTS = 3
_LARGEST_PLAIN = 256 << 10

T = TypeVar("T")


class MovedOn(Exception):
    """The namespace goes on faster than its log can be read from outside the lock."""


class Request:
    """A batch as it is sent."""

    __slots__ = (
        "_written",
        "batch",
        "is_plain",
        "partition",
        "seen",
        "since",
        "size",
        "told",
    )

    def __init__(
        self,
        partition: str,
        batch: Batch,
        since: int | None = None,
        told: Record | None = None,
    ) -> None:
        """Write a batch down.

        Args:
            partition: Where it belongs.
            batch: What is to be judged and applied.
            since: As of which `Guesses.generation` its plan was made; None for a batch that was planned elsewhere, or under the lock.
            told: `meta` as the plan was told it, if nobody is likely to have committed since.

        Raises:
            BatchTooLarge: It passes a ceiling of the store.
        """
        check_size(batch, CAPABILITIES)
        self.partition = partition
        self.batch = batch
        self.since = since
        self.seen = (batch.quiet_since or 0) if batch.expect_quiet else None
        self.size = sum(_size(put) for put in batch.puts)
        """Bytes of its values and bodies."""
        self.is_plain = (
            self.seen is None and batch.incarnation is not None and self.size <= _LARGEST_PLAIN
        )
        """Whether it is small, and judged in one step for a partition that was there when it was planned."""
        self.told = told
        self._written: tuple[Sequence[Any], Sequence[Any]] | None = None

    @property
    def parameters(self) -> Sequence[Any]:
        """The parameters of the function that commits."""
        if self._written is None:
            self._written = _parameters(self.partition, self.batch)
        fixed, moving = self._written
        return (*fixed, self.seen, *moving)

    @property
    def following(self) -> Sequence[Any] | None:
        """The parameters of `Texts.follow`, where that is worth a try."""
        return None if self.told is None else following(self.partition, self.batch, self.told)

    def verdict(self, row: Sequence[Any]) -> Committed | None:
        """Return what became of it; None where quiet paths have to be looked for in the log up to ``row[2]``.

        Raises:
            PreconditionFailed: An expectation does not hold.
            CeilingExceeded: A counter would pass its ceiling.
        """
        verdict, subject, sequence, stamp, used = row[:5]
        if verdict == "done":
            return Committed(sequence, stamp)
        if verdict != "moved":
            raise _refusal(self.batch, verdict, subject, used)
        return None


async def apply(database: Database, connection: Connection, request: Request) -> Committed:
    """Have a batch judged and applied: one round trip, and another two for each time that quiet paths must be looked for in the log.

    Raises:
        PreconditionFailed: An expectation does not hold.
        CeilingExceeded: A counter would pass its ceiling.
        MovedOn: Only outside the write lock.
    """
    for _ in range(_QUIET_ATTEMPTS):
        [row] = await database.rows(connection, database.texts.commit, request.parameters)
        committed = request.verdict(row)
        if committed is not None:
            return committed
        seen, last = request.seen, row[2]
        assert seen is not None
        await _judge_quiet(database, connection, request.partition, request.batch, seen, last)
        request.seen = last
    raise MovedOn


async def _judge_quiet(
    database: Database, connection: Connection, partition: str, batch: Batch, seen: int, last: int
) -> None:
    if seen >= last:
        return
    end = prefix_end(LOG_PREFIX)
    rows = await database.rows(
        connection, database.texts.log_since, (partition, log_key(seen + 1), end)
    )
    newest = log_key(last) + "\x7f"
    judge_log([row for row in rows if row[0] <= newest], seen, last, batch)


def _refusal(
    batch: Batch, verdict: str, subject: str, used: int
) -> PreconditionFailed | CeilingExceeded:
    if verdict != "ceiling":
        return PreconditionFailed(verdict, subject)
    add, ceiling = batch.counters[subject]
    if ceiling is None:
        raise InternalError("the database judged a counter that has no ceiling")
    return CeilingExceeded(subject, ceiling, used, add)


def _parameters(partition: str, batch: Batch) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the function's parameters before and behind the one that changes from attempt to attempt."""
    puts = {put.key: put for put in batch.puts}
    deletes = [key for key in batch.deletes if key not in puts]
    takes, copies = _bodies_of_others(puts, {*deletes, *puts})
    keys = list(puts)
    values = [put.value for put in puts.values()]
    bodies = [_bytes_of(put) for put in puts.values()]
    for key, value, body in _log(batch):
        keys.append(key)
        values.append(value)
        bodies.append(body)
        takes.append(None)
        copies.append(None)
    expect = batch.expect
    counters = batch.counters
    replaces = bool(deletes) or any(expect.get(key) != 0 for key in puts)
    fixed = (
        partition,
        batch.commit_id,
        batch.now,
        batch.incarnation,
        batch.epoch,
        batch.oldest_upload_at,
        batch.sweeping_to,
        any(put.key.startswith("keep" + FIELD_END) for put in batch.puts),
    )
    moving = (
        list(expect) or None,
        list(expect.values()) or None,
        [low for low, _ in batch.expect_empty] or None,
        [high for _, high in batch.expect_empty] or None,
        list(counters),
        [add for add, _ in counters.values()],
        [ceiling for _, ceiling in counters.values()],
        replaces,
        deletes,
        keys,
        values,
        _if_any(bodies),
        _if_any(takes),
        _if_any(copies),
        FORMAT,
    )
    return fixed, moving


def _bodies_of_others(
    puts: Mapping[str, Put], gone: Set[str]
) -> tuple[list[str | None], list[str | None]]:
    """Return for each put the key whose body it takes over, and the one whose body it copies: each body has one owner."""
    takes: list[str | None] = []
    copies: list[str | None] = []
    taken: set[str] = set()
    for put in puts.values():
        source = put.body.key if isinstance(put.body, Take) else None
        moves = source is not None and source in gone and source not in taken
        takes.append(source if moves else None)
        copies.append(None if moves else source)
        if source is not None and moves:
            taken.add(source)
    return takes, copies


def _if_any(items: list[T | None]) -> list[T | None] | None:
    return items if any(item is not None for item in items) else None


def _size(put: Put) -> int:
    return len(put.value) + (len(put.body) if isinstance(put.body, bytes) else 0)


def _bytes_of(put: Put) -> bytes | None:
    return None if isinstance(put.body, Take) else put.body


def _log(batch: Batch) -> list[tuple[str, bytes, bytes | None]]:
    """Return the rows of the log with the mark where the sequence will stand."""
    placeholder = log_key(0)
    marked = LOG_PREFIX + SEQUENCE_MARK + FIELD_END
    return [
        (marked + key.removeprefix(placeholder), value, body)
        for key, value, body in log_rows(batch, 0)
    ]
