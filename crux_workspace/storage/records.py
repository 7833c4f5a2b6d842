"""The record store contract: what the engine asks of a place that keeps records.

A *partition* is one namespace of one workspace. Its records are ordered by key, by Unicode code point. A partition changes only
by commits, numbered 1, 2, 3 … without gaps; the number of the commit that last wrote a record is the record's *revision*. Stores
know nothing of files or versions: they keep values and bodies, judge expectations, add counters, and write two kinds of record
themselves (`meta` and `log/`, see `crux_workspace.storage.layout`).

Values never leave a store mutable: values and bodies are ``bytes``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct, field

from crux_workspace.model.changes import Change
from crux_workspace.storage.capabilities import StoreCapabilities

__all__ = [
    "SEQUENCE_MARK",
    "Batch",
    "BatchTooLarge",
    "CeilingExceeded",
    "Committed",
    "Contains",
    "NotifyingRecordStore",
    "OutcomeUnknown",
    "Page",
    "PartitionPage",
    "Plan",
    "PreconditionFailed",
    "Put",
    "Reader",
    "Record",
    "RecordStore",
    "StoreError",
    "Take",
]

SEQUENCE_MARK = "\x04"
"""In a put's key this character stands for the sequence of the commit (16 decimal digits); the store replaces it."""


class StoreError(Exception):
    """Root of what a store tells the engine; never raised to users."""


class PreconditionFailed(StoreError):
    """An expectation of the batch does not hold; nothing was written.

    Attributes:
        what: ``revision``, ``empty``, ``quiet``, ``incarnation``, ``epoch`` or ``upload``.
        subject: The key, the low end of the range, or the path that was expected otherwise.
    """

    def __init__(self, what: str, subject: str = "") -> None:
        super().__init__(what, subject)
        self.what = what
        self.subject = subject


class CeilingExceeded(StoreError):
    """A counter would pass its ceiling by a positive net addition; nothing was written."""

    def __init__(self, counter: str, limit: int, used: int, added: int = 0) -> None:
        super().__init__(counter, limit, used, added)
        self.counter = counter
        self.limit = limit
        self.used = used
        self.added = added


class BatchTooLarge(StoreError):
    """The batch passes a ceiling of the store (`StoreCapabilities`); nothing was written."""

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(what, size, limit)
        self.what = what
        self.size = size
        self.limit = limit


class OutcomeUnknown(StoreError):
    """The store did not answer: the batch may or may not have been applied, or may still be."""


class Record(Struct, frozen=True, gc=False):
    """One record as a store returns it."""

    key: str
    value: bytes
    """UTF-8 JSON text of an object; the store never looks inside."""
    body: bytes | None
    """Bytes kept apart from the value; None when there are none or when they were not asked for."""
    revision: int
    """Sequence of the commit that last wrote the record."""
    at: int
    """Time of that commit, ms since the epoch."""


class Take(Struct, frozen=True, gc=False):
    """A put's body: the body of the record at `key` changes owner.

    The same batch deletes that record or puts it with another body; a record that takes its own body keeps it. All takes of a
    batch see the bodies as they were before the batch, so two records can swap bodies. Taking from a record that is not there is
    refused like a stale expectation (``revision``).
    """

    key: str


class Put(Struct, frozen=True, gc=False):
    """Create or replace one record; `SEQUENCE_MARK` in the key stands for the commit's sequence."""

    key: str
    value: bytes
    body: bytes | Take | None = None


class Batch(Struct, kw_only=True, gc=False):
    """One commit as the engine asks for it: applied whole, or refused whole.

    The store judges in this order: its own ceilings (`BatchTooLarge`), ``incarnation``, ``epoch``, uploads, ``expect``,
    ``expect_empty``, ``expect_quiet``, the counters' ceilings.
    """

    commit_id: str
    """Id of this commit (hex); in the log it recognises a commit whose answer was lost."""
    verb: str
    """The public verb that commits, e.g. ``write``."""
    now: int
    """The committer's clock, ms; the commit's time is max(now, time of the last commit). Stores have no clock."""
    incarnation: str | None
    """Commit id of the partition's commit 1; None says that the partition does not exist yet."""
    actor: str | None = None
    """Who commits; kept in the log."""
    epoch: int | None = None
    """Protect epoch that `meta` must still have; given by batches that collect."""
    oldest_upload_at: int | None = None
    """Time of the oldest asset upload that the batch refers to; refused (`upload`) when it is at or before `meta`'s swept time."""
    sweeping_to: int | None = None
    """Given by a batch that is about to delete orphaned uploads up to this time: becomes `meta`'s swept time."""
    expect: dict[str, int] = field(default_factory=dict)
    """Revision each key must have; 0 says absent."""
    expect_empty: list[tuple[str, str]] = field(default_factory=list)
    """Key ranges [low, high) that must hold no record."""
    expect_quiet: list[tuple[str, bool]] = field(default_factory=list)
    """(path, subtree): no commit after `quiet_since` may have touched the path (or, with subtree, anything below it).

    A change whose name was erased may have touched any.
    """
    quiet_since: int | None = None
    """Sequence that `expect_quiet` starts from; a log trimmed beyond it refuses."""
    puts: list[Put] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    """Keys to delete; absent ones are no error. Applied before the puts."""
    counters: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    """{name: (add, ceiling)}; a ceiling refuses only a positive addition that ends above it."""
    changes: list[Change] = field(default_factory=list)
    """What the commit did, sorted by path; the store writes them to the log."""


class Committed(Struct, frozen=True, gc=False):
    """A commit that is applied and, where the store is durable, durable."""

    sequence: int
    at: int


class Contains(Struct, frozen=True, gc=False):
    """Scan filter: records whose body contains `needle`; records without a body always pass."""

    needle: bytes


class Page(Struct, frozen=True, gc=False):
    """One page of a scan, in key order (descending when reversed)."""

    records: list[Record]
    prefixes: list[str] = field(default_factory=list)
    """With a delimiter: the common prefixes of this page, each ending with the delimiter, each once."""
    next: str | None = None
    """`after` (or, reversed, `before`) of the next page; None when this page is the last."""


class PartitionPage(Struct, frozen=True, gc=False):
    """One page of partition names, in code point order."""

    names: list[str]
    next: str | None = None


class Reader(Protocol):
    """What a plan may ask: the reads of one partition, and nothing else."""

    async def get_many(self, keys: Sequence[str], *, bodies: bool = True) -> list[Record | None]:
        """See `RecordStore.get_many`."""
        ...

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
        """See `RecordStore.scan`."""
        ...


Plan = Callable[[Reader], Awaitable[Batch]]
"""Reads through the reader and returns the batch to commit. It does no other I/O, holds no lock, may be called several times and on
any thread, and may raise: then nothing is committed and the exception reaches the caller of `commit_planned`."""


@runtime_checkable
class RecordStore(Protocol):
    """Ordered records in partitions that change by atomic commits.

    A call that raises anything but a `StoreError` is taken for an unavailable store. Partitions and keys are opaque strings without
    NUL; a key may hold any other character, and is compared by code point.
    """

    @property
    def capabilities(self) -> StoreCapabilities:
        """What this store can do; fixed for its lifetime (R-130)."""
        ...

    async def get_many(
        self, partition: str, keys: Sequence[str], *, bodies: bool = True
    ) -> list[Record | None]:
        """Return the records at `keys`, in that order, None where there is none.

        Must: read all of them from one consistent snapshot (R-010); return equal keys twice when asked twice (R-011); leave
        bodies out when ``bodies=False`` (R-012); find nothing in an absent partition (R-013); return ``bytes``, the very ones
        that were put (R-014, R-015, R-016); take thousands of keys (R-017).
        """
        ...

    async def scan(
        self,
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
    ) -> Page:
        """Return up to `limit` records and prefixes whose key starts with `prefix`, strictly between `after` and `before`.

        With a `delimiter`, keys that contain it behind the prefix are folded into one common prefix (up to and including the first
        delimiter); folded keys are skipped by seeking, not read. An `after` that is itself a common prefix (it ends with the
        delimiter behind the prefix) passes over everything below it. A page may be shorter than `limit` only when `next` says so or
        the range is exhausted; with a filter a page may be empty and still have a `next`.

        Must: order by code point (R-020); treat no character of the prefix as a pattern (R-021); return each record that exists
        during the whole paging exactly once (R-022); leave both bounds out (R-023); page by any limit in both directions (R-024)
        and say in `next` whether anything follows (R-025); bound the highest prefix rightly (R-026); leave bodies out unless
        asked (R-027); find nothing in an absent partition (R-028). Fold by the delimiter (R-100), each prefix once over all pages
        (R-101) in both directions (R-102), from behind an `after` that is a prefix (R-103), counted once (R-104), a key that is a
        prefix too (R-105). Judge a filter exactly where `search` is declared (R-110), never hide what passes (R-111), reach all
        of it (R-112).

        May: return short or empty pages with a `next`, when filtered; ignore the filter where `search` is not declared.
        """
        ...

    async def commit(self, partition: str, batch: Batch) -> Committed:
        """Apply the batch whole, give it the next sequence, and write `meta` and the log.

        Must: refuse with `PreconditionFailed`, `CeilingExceeded` or `BatchTooLarge` and write nothing (R-030); judge `expect`
        (R-031), never repeat a revision of a key (R-032); judge `expect_empty` (R-033), the incarnation (R-034), the epoch
        (R-035), uploads (R-036) and counters (R-037), in order (R-038); create no partition by a refused commit (R-039). Number
        commits densely (R-040), stamp records (R-041), never go back in time (R-042), delete before it puts (R-043), replace the
        sequence mark (R-044), replace records whole (R-045), write `meta` (R-046), take thousands of puts (R-047). Move bodies by
        `Take` (R-050), keep a self-taken one (R-051), swap (R-052), take what was there before (R-053), or none (R-054),
        never from nothing (R-057). Write
        the log in its value (R-055) or in bodies (R-056), and judge `expect_quiet` by it: the path (R-060), the subtree (R-061),
        the source of a rename (R-062), a trimmed log (R-063), all changes of a commit (R-064, R-065), all commits (R-066), an
        erased name as anywhere (R-067). Stay
        all or nothing under cancellation (R-080) and death of the process; let one of several racing commits win (R-082) and all
        independent ones (R-083); keep the declared ceilings (R-120, R-121, R-122, R-123); acknowledge only what is applied
        (R-134) and, where `durable`, what stays (R-132); see other stores' commits where `multi_process` (R-133, R-135).

        Raises:
            OutcomeUnknown: The answer was lost; the batch may or may not be applied.
        """
        ...

    async def commit_planned(self, partition: str, plan: Plan) -> Committed:
        """Run the plan and commit its batch: under the write lock where `plans_under_lock`, else again on each refusal.

        A plan is awaited on the caller's loop or driven by ``send(None)`` under the lock; it awaits only its reader.
        `crux_workspace.storage.planning.commit_replanned` is the body for stores that cannot plan under a lock.

        Must: let the plan see earlier commits (R-070) through a reader that answers like the store (R-075); hand its exception on
        as it is and write nothing (R-071); lose no commit among many (R-072), a partition's first included (R-077); plan again
        when refused (R-073) or keep everybody else out (R-074); judge the batch like any other (R-076); leave no lock behind when
        cancelled (R-081).
        """
        ...

    async def sequences(self, partitions: Sequence[str]) -> list[int]:
        """Return the last sequence of each partition, 0 for one that does not exist; one call whatever their number.

        Must: answer in order, twice when asked twice, for thousands (R-090).
        """
        ...

    async def partitions(
        self, prefix: str, *, after: str | None = None, limit: int
    ) -> PartitionPage:
        """Return the names of existing partitions that start with `prefix`, in code point order.

        Must: treat no character of the prefix as a pattern (R-091); page each name once (R-092); keep partitions and keys apart
        that would be equal when joined (R-093).
        """
        ...

    async def drop(self, partition: str) -> None:
        """Remove a partition whole and at once; an absent one is no error.

        Must: leave nothing of it and all of its neighbours (R-094); refuse batches made for it, though it be created again (R-095).
        """
        ...

    async def aclose(self) -> None:
        """Wait for commits in flight and release everything this store opened; idempotent (R-131)."""
        ...


@runtime_checkable
class NotifyingRecordStore(RecordStore, Protocol):
    """A record store that declares `notify`: it hears of commits that other processes make."""

    def listen(self, partition: str, heard: Callable[[int], None]) -> Callable[[], None]:
        """Have `heard` called with the sequence of commits of a partition, 0 when it was dropped; returns what ends it.

        It is called on the store's loop and must not wait. Word is a hint: it may come late, twice, out of order, for several
        commits once, or not at all. A store that heard nothing for a while because its connection was gone says how far the
        partition is as soon as it hears again.

        Must: bring word of another store's commit and drop (R-136), only of the partition that was asked for, and none any more
        after the returned function was called (R-137).
        """
        ...


def take_sources(puts: Sequence[Put]) -> Mapping[str, str]:
    """Return {key of the put: key whose body it takes} of a batch's puts."""
    return {put.key: put.body.key for put in puts if isinstance(put.body, Take)}
