"""What the record checks work with: a writer that fills batches in, and ways to read a partition whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from crux_workspace.model.changes import Change
from crux_workspace.storage.layout import META_KEY, Meta, decode_meta
from crux_workspace.storage.records import (
    Batch,
    Committed,
    Page,
    PreconditionFailed,
    Put,
    Record,
    RecordStore,
    StoreError,
    Take,
)
from crux_workspace.testing.checks import (
    CheckFailed,
    Checks,
    Fresh,
    NotApplicable,
    holds,
    raises,
    same,
)

__all__ = [
    "RECORD_CHECKS",
    "FreshRecords",
    "Writer",
    "changes",
    "everything",
    "meta_of",
    "one",
    "pages",
    "put",
    "refused",
    "requires_room",
    "seed",
]

FreshRecords = Fresh[RecordStore]
RECORD_CHECKS: Checks[RecordStore] = Checks()

_MOST_PAGES = 20_000


def put(key: str, value: bytes = b"{}", body: bytes | Take | None = None) -> Put:
    """Write a put briefly."""
    return Put(key, value, body)


def changes(count: int, *, under: str = "/d") -> list[Change]:
    """Return `count` changes, sorted by path."""
    return [
        Change("create", f"{under}/{n:05d}.txt", file_id=f"{n:032x}", version=1)
        for n in range(count)
    ]


class Writer:
    """Commits to one partition; fills in what every batch carries."""

    def __init__(self, store: RecordStore, partition: str, fresh: FreshRecords) -> None:
        self.store = store
        self.partition = partition
        self.incarnation: str | None = None
        self.now = 1_000
        self._fresh = fresh

    def batch(self, *puts: Put, **fields: Any) -> Batch:  # noqa: ANN401 - the fields of `Batch`
        """Return a batch that fits the partition as it is."""
        filled: dict[str, Any] = {
            "commit_id": self._fresh.id(),
            "verb": "write",
            "now": self.now,
            "incarnation": self.incarnation,
            "puts": list(puts),
        }
        filled.update(fields)
        return Batch(**filled)

    async def commit(self, *puts: Put, **fields: Any) -> Committed:  # noqa: ANN401 - the fields of `Batch`
        """Commit a batch."""
        batch = self.batch(*puts, **fields)
        committed = await self.store.commit(self.partition, batch)
        if self.incarnation is None:
            self.incarnation = batch.commit_id
        return committed

    async def one(self, key: str) -> Record:
        """Return the record at `key`; it has to be there."""
        return await one(self.store, self.partition, key)

    async def everything(self) -> list[Record]:
        """Return all records of the partition, with bodies."""
        return await everything(self.store, self.partition)


async def seed(store: RecordStore, fresh: FreshRecords, *puts: Put, **fields: Any) -> Writer:  # noqa: ANN401 - the fields of `Batch`
    """Create a partition with one commit."""
    writer = Writer(store, fresh.name(), fresh)
    await writer.commit(*puts, **fields)
    return writer


async def one(store: RecordStore, partition: str, key: str) -> Record:
    """Return the record at `key`; it has to be there."""
    (record,) = await store.get_many(partition, [key])
    if record is None:
        message = f"there is no record at {key!r}"
        raise CheckFailed(message)
    return record


async def pages(
    store: RecordStore,
    partition: str,
    prefix: str,
    *,
    limit: int,
    reverse: bool = False,
    after: str | None = None,
    before: str | None = None,
    **options: Any,  # noqa: ANN401 - handed on to `scan`
) -> list[Page]:
    """Scan to the end; fails when a page is too long or the paging does not end."""
    found: list[Page] = []
    while True:
        page = await store.scan(
            partition,
            prefix,
            after=after,
            before=before,
            reverse=reverse,
            limit=limit,
            **options,
        )
        holds(
            len(page.records) + len(page.prefixes) <= limit,
            f"a page holds more than {limit} records and prefixes",
        )
        found.append(page)
        holds(len(found) < _MOST_PAGES, "the paging does not end")
        if page.next is None:
            return found
        if reverse:
            holds(before is None or page.next < before, "next does not move on")
            before = page.next
        else:
            holds(after is None or page.next > after, "next does not move on")
            after = page.next


async def everything(store: RecordStore, partition: str) -> list[Record]:
    """Return all records of a partition, with bodies."""
    found = await pages(store, partition, "", limit=500, bodies=True)
    return [record for page in found for record in page.records]


async def meta_of(store: RecordStore, partition: str) -> Meta:
    """Return the partition's decoded `meta`."""
    return decode_meta((await one(store, partition, META_KEY)).value)


@asynccontextmanager
async def refused(
    writer: Writer,
    why: str,
    *,
    subject: str | None = None,
    kind: type[StoreError] = PreconditionFailed,
) -> AsyncIterator[None]:
    """Fail unless the block is refused for this reason and leaves the partition exactly as it was."""
    before = await writer.everything()
    last = await writer.store.sequences([writer.partition])
    async with raises(kind, f"a batch that must be refused ({why})") as caught:
        yield
    error = caught.error
    if isinstance(error, PreconditionFailed):
        same(error.what, why, "the refusal's `what`")
        if subject is not None:
            same(error.subject, subject, "the refusal's `subject`")
    same(await writer.everything(), before, f"records after a refused batch ({why})")
    same(await writer.store.sequences([writer.partition]), last, "sequence after a refused batch")


def requires_room(
    store: RecordStore, *, paths: int = 0, total: int = 0, value: int = 0, body: int = 0
) -> None:
    """Leave the check when the store's declared ceilings are too low for it."""
    limits: Iterable[tuple[str, int, int | None]] = (
        ("max_commit_paths", paths, store.capabilities.max_commit_paths),
        ("max_commit_bytes", max(total, body, value), store.capabilities.max_commit_bytes),
        ("max_value_bytes", value, store.capabilities.max_value_bytes),
        ("max_body_bytes", body, store.capabilities.max_body_bytes),
    )
    for name, wanted, limit in limits:
        if limit is not None and wanted > limit:
            message = f"{name} is {limit}, the check needs {wanted}"
            raise NotApplicable(message)


def keys_of(found: Sequence[Page]) -> list[str]:
    """Return the keys of all records of the pages, in order."""
    return [record.key for page in found for record in page.records]
