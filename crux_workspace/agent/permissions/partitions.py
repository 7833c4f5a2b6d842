"""Small records of the agent room in a `RecordStore`: partitions of their own, one change a commit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from crux_workspace.errors import ErrorCode, StorageError, WorkspaceError
from crux_workspace.model.clocks import Clock, IdSource
from crux_workspace.storage.failures import unavailable
from crux_workspace.storage.layout import FIELD_END, META_KEY, decode_meta, key, log_key
from crux_workspace.storage.records import (
    Batch,
    OutcomeUnknown,
    PreconditionFailed,
    Put,
    Reader,
    Record,
    RecordStore,
    StoreError,
)

__all__ = ["Change", "Partition", "corrupt", "decoded", "partition_of", "scanned", "typed_failures"]

_T = TypeVar("_T")
_ATTEMPTS = 5
_KEPT_LOG = 16
_PAGE = 256
_TIP = key("tip")
"""Read and written by every change, so that two changes never pass each other, whatever they scanned."""


class _Unchanged(Exception):
    """The plan found nothing to change."""


@dataclass(slots=True)
class Change(Generic[_T]):
    """What a plan wants done, and what it answers."""

    result: _T
    puts: dict[str, Any] = field(default_factory=dict)
    """{key: JSON value}"""
    deletes: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be written."""
        return not self.puts and not self.deletes


def partition_of(*fields: str) -> str:
    """Name a partition of the agent room; no workspace's partition begins so."""
    return FIELD_END + key(*fields)


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition, read and changed as JSON records."""

    records: RecordStore
    name: str
    clock: Clock
    ids: IdSource

    async def get(self, record_key: str) -> Any:  # noqa: ANN401 - JSON
        """Return the value at a key, or None."""
        with typed_failures():
            (record,) = await self.records.get_many(self.name, [record_key])
        return None if record is None else decoded(record)

    async def scan(self, prefix: str) -> list[Record]:
        """Return all records whose key starts with `prefix`."""
        with typed_failures():
            return await scanned(_Whole(self), prefix)

    async def sequence(self) -> int:
        """Return how many commits there were."""
        with typed_failures():
            return (await self.records.sequences([self.name]))[0]

    async def drop(self) -> None:
        """Remove everything."""
        with typed_failures():
            await self.records.drop(self.name)

    async def change(self, verb: str, decide: Callable[[Reader, str], Awaitable[Change[_T]]]) -> _T:
        """Read, decide and write as one commit; decided again when somebody else came first or the answer was lost.

        `decide` gets the reader and an id that stays the same over all attempts.
        """
        mark = self.ids()
        trouble: StoreError | None = None
        for _ in range(_ATTEMPTS):
            try:
                with typed_failures(PreconditionFailed, OutcomeUnknown):
                    return await asyncio.shield(self._attempt(verb, mark, decide))
            except (PreconditionFailed, OutcomeUnknown) as error:
                trouble = error
        raise StorageError(
            "The record store did not settle on a change of the permissions; repeat the call.",
            retryable=True,
        ) from trouble

    async def _attempt(
        self, verb: str, mark: str, decide: Callable[[Reader, str], Awaitable[Change[_T]]]
    ) -> _T:
        wanted: list[Change[_T]] = []

        async def plan(reader: Reader) -> Batch:
            watching = _Watching(reader)
            head, _ = await watching.get_many([META_KEY, _TIP])
            meta = None if head is None else decode_meta(head.value)
            change = await decide(watching, mark)
            wanted[:] = [change]
            if change.is_empty:
                raise _Unchanged
            trimmed = [] if meta is None else [log_key(max(0, meta.sequence - _KEPT_LOG))]
            return Batch(
                commit_id=self.ids(),
                verb=verb,
                now=self.clock(),
                incarnation=None if meta is None else meta.incarnation,
                expect={k: r for k, r in watching.seen.items() if k != META_KEY},
                puts=[
                    *(Put(k, msgspec.json.encode(v)) for k, v in change.puts.items()),
                    Put(_TIP, msgspec.json.encode({"by": mark})),
                ],
                deletes=[*(k for k in change.deletes if k not in change.puts), *trimmed],
            )

        with suppress(_Unchanged):
            await self.records.commit_planned(self.name, plan)
        return wanted[0].result


class _Watching:
    """A reader that notes the revisions of what is read by key."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.seen: dict[str, int] = {}

    async def get_many(self, keys: Any, *, bodies: bool = True) -> list[Record | None]:  # noqa: ANN401
        found = await self._reader.get_many(keys, bodies=bodies)
        for record_key, record in zip(keys, found, strict=True):
            self.seen[record_key] = 0 if record is None else record.revision
        return found

    async def scan(self, prefix: str, **options: Any) -> Any:  # noqa: ANN401 - the reader's own
        return await self._reader.scan(prefix, **options)


class _Whole:
    """The partition as a reader."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    async def get_many(self, keys: Any, *, bodies: bool = True) -> list[Record | None]:  # noqa: ANN401
        return await self._partition.records.get_many(self._partition.name, keys, bodies=bodies)

    async def scan(self, prefix: str, **options: Any) -> Any:  # noqa: ANN401 - the store's own
        return await self._partition.records.scan(self._partition.name, prefix, **options)


@contextmanager
def typed_failures(*passed: type[StoreError]) -> Iterator[None]:
    """Turn what a store raises, bare exceptions too, into the error that users know."""
    try:
        yield
    except Exception as error:
        if isinstance(error, (WorkspaceError, *passed)):
            raise
        raise unavailable("record store", error) from error


async def scanned(reader: Reader, prefix: str) -> list[Record]:
    """Return all records below a prefix, page by page."""
    found: list[Record] = []
    after: str | None = None
    while True:
        page = await reader.scan(prefix, after=after, limit=_PAGE)
        found += page.records
        if page.next is None:
            return found
        after = page.next


def decoded(record: Record) -> Any:  # noqa: ANN401 - JSON
    """Return a record's value as JSON data."""
    try:
        return msgspec.json.decode(record.value)
    except msgspec.DecodeError:
        raise corrupt("a record of the permissions") from None


def corrupt(what: str) -> StorageError:
    """Return the error for a record that cannot be understood."""
    return StorageError(
        f"{what[0].upper()}{what[1:]} is damaged and was left as it is.",
        code=ErrorCode.RECORD_CORRUPT,
    )
