"""What a store remembers of the records that its commits wrote and its plans read, within bounds."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from crux_workspace.storage.layout import META_KEY, advance, decode_meta, encode_meta
from crux_workspace.storage.records import Batch, Committed, Record

__all__ = ["LEAST_PAUSE", "Habit", "Known", "Memory"]

LEAST_PAUSE = 4
_EVIDENCE = 4
"""How many plans in a row a guess would have served before one is made."""
_LONGEST_PAUSE = 256
_MOST_PARTITIONS = 1024
_MOST_BYTES = 8 << 20
_LARGEST = 4096  # bytes of a record that is remembered
_OVERHEAD = 300  # bytes, about, that Python adds to one
_FRESH_S = 10.0
"""How long the server's last word of a partition is good for: who seldom writes may as well read."""


@dataclass(slots=True)
class Habit:
    """When one kind of guess is made: after some evidence, and less often after each wrong one."""

    evidence: int = 0
    """How many plans in a row that were made by reading would have been served."""
    waits: int = 0
    """How many plans, less one, are made by reading before the next guess."""
    pause: int = LEAST_PAUSE

    @property
    def is_time(self) -> bool:
        """Whether the next plan may be made by guessing."""
        return self.evidence >= _EVIDENCE and not self.waits

    def pass_one(self) -> None:
        """Note that a plan is made."""
        if self.waits:
            self.waits -= 1

    def was_refused(self) -> None:
        """Note that the store refused a guess."""
        self.evidence = 0
        self.waits = self.pause + 1
        self.pause = min(self.pause * 2, _LONGEST_PAUSE)


@dataclass(slots=True)
class Known:
    """What is known of one incarnation of a partition."""

    incarnation: str
    meta: Record
    told_at: float
    """When the server last said something of it, in seconds of the memory's clock."""
    records: dict[str, Record] = field(default_factory=dict)
    """By key, without bodies; the one learned last stands last."""
    size: int = 0
    creating: Habit = field(default_factory=Habit)
    """For plans that are told of no record at all."""
    changing: Habit = field(default_factory=Habit)
    """For plans that are told of some."""

    def remember(self, record: Record) -> None:
        """Take a record in place of what was known of it, unless it is large."""
        self.drop(record.key)
        if len(record.value) <= _LARGEST:
            self.records[record.key] = record
            self.size += _size(record)

    def drop(self, key: str) -> None:
        """Forget a record."""
        record = self.records.pop(key, None)
        if record is not None:
            self.size -= _size(record)


class Memory:
    """What is known of partitions: at most `_MOST_PARTITIONS`, and about `_MOST_BYTES` of records, those used last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.generation = 0
        """Grows whenever everything is forgotten: what was read before may be another server's word."""
        self._clock = clock
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._size = 0

    def get(self, partition: str) -> Known | None:
        """Return what is known of a partition."""
        return self._known.get(partition)

    def use(self, partition: str) -> Known | None:
        """Return what is known of a partition, if the server confirmed it a moment ago."""
        known = self._known.get(partition)
        if known is None:
            return None
        if self._clock() - known.told_at > _FRESH_S:
            self.forget(partition)
            return None
        self._known.move_to_end(partition)
        return known

    def read(
        self, partition: str, keys: Sequence[str], found: Sequence[Record | None], since: int
    ) -> None:
        """Learn what one read without bodies found; only one that brought `meta` along tells whose incarnation it is."""
        if since != self.generation or META_KEY not in keys:
            return
        meta = found[keys.index(META_KEY)]
        if meta is None:
            self.forget(partition)
            return
        known = self._enter(partition, decode_meta(meta.value).incarnation, meta)
        if meta.revision < known.meta.revision:
            return  # an answer that was overtaken by a commit
        known.meta = meta
        before = known.size
        for key, record in zip(keys, found, strict=True):
            if record is None:
                known.drop(key)
            elif key != META_KEY:
                known.remember(record)
        self._grew(known, before)

    def committed(
        self,
        partition: str,
        batch: Batch,
        done: Committed,
        since: int,
        meta: Record | None = None,
    ) -> None:
        """Learn what a commit wrote.

        Without `meta` as of the commit it is worked out, unless others commit there too: then nothing stays known, for much of it
        would be wrong.
        """
        if since != self.generation:
            return
        known = self._known.get(partition)
        if meta is None:
            meta = _advanced(known, batch, done)
        if meta is None:
            self.forget(partition)
            return
        known = self._enter(partition, batch.incarnation or batch.commit_id, meta)
        known.meta = meta
        before = known.size
        for key in batch.deletes:
            known.drop(key)
        for put in batch.puts:
            if put.key in batch.expect:  # what plans ask for; ended versions are not
                known.remember(Record(put.key, put.value, None, done.sequence, done.at))
            else:
                known.drop(put.key)
        self._grew(known, before)

    def forget(self, partition: str | None = None) -> None:
        """Know nothing any more of one partition, or of all."""
        if partition is None:
            self.generation += 1
            self._known.clear()
            self._size = 0
            return
        known = self._known.pop(partition, None)
        if known is not None:
            self._size -= known.size

    def _enter(self, partition: str, incarnation: str, meta: Record) -> Known:
        known = self._known.get(partition)
        if known is not None and known.incarnation == incarnation:
            known.told_at = self._clock()
            return known
        self.forget(partition)
        known = self._known[partition] = Known(incarnation, meta, self._clock())
        if len(self._known) > _MOST_PARTITIONS:
            self.forget(next(iter(self._known)))
        return known

    def _grew(self, known: Known, before: int) -> None:
        self._size += known.size - before
        while self._size > _MOST_BYTES:
            partition, oldest = next(iter(self._known.items()))
            if oldest is not known:
                self.forget(partition)
                continue
            size = oldest.size
            oldest.drop(next(iter(oldest.records)))
            self._size += oldest.size - size


def _advanced(known: Known | None, batch: Batch, done: Committed) -> Record | None:
    """Return `meta` as it is after a commit that follows what is known; None where it does not."""
    if done.sequence != (1 if known is None else known.meta.revision + 1):
        return None
    if batch.incarnation != (None if known is None else known.incarnation):
        return None
    meta = advance(None if known is None else decode_meta(known.meta.value), batch)
    return Record(META_KEY, encode_meta(meta), None, done.sequence, done.at)


def _size(record: Record) -> int:
    return len(record.key) + len(record.value) + _OVERHEAD
