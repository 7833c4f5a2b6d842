"""Record stores that commit wrongly; part of `crux_workspace.testing.gallery`."""

from __future__ import annotations

import asyncio

import msgspec
from msgspec.structs import replace

from crux_workspace.storage.layout import (
    Meta,
    number,
)
from crux_workspace.storage.memory import MemoryRecordStore
from crux_workspace.storage.records import (
    SEQUENCE_MARK,
    Batch,
    CeilingExceeded,
    Committed,
    PreconditionFailed,
    Record,
    StoreError,
    Take,
)

__all__ = [
    "AcceptsAnyIncarnation",
    "AltersBatches",
    "CeilingRefusesAnything",
    "CommitsInTwoSteps",
    "DeletesAfterPuts",
    "DropLeavesRecords",
    "EmptyBodyIsNone",
    "EmptyIncludesHighEnd",
    "ForgetsRevisions",
    "GapAfterRefusal",
    "IgnoresCeilings",
    "IgnoresEpochs",
    "IgnoresSweeps",
    "KeepsSixteenChanges",
    "LosesSelfTakenBodies",
    "MarksOnce",
    "RestartsRevisions",
    "TakesFromNothing",
    "TakesInOrder",
    "TimeGoesBack",
    "WritesPartOfRefused",
]


class AltersBatches(MemoryRecordStore):
    """Commits another batch than it was given."""

    async def altered(self, partition: str, batch: Batch) -> Batch:
        """Return the batch to commit instead."""
        return batch

    def meta(self, partition: str) -> Meta | None:
        """Return the partition's `meta`."""
        held = self._partitions.get(partition)
        return held.meta if held is not None else None

    async def commit(self, partition: str, batch: Batch) -> Committed:
        """Commit the altered batch."""
        return await super().commit(partition, await self.altered(partition, batch))


class ForgetsRevisions(AltersBatches):
    """Does not look at `expect`."""

    async def altered(self, partition: str, batch: Batch) -> Batch:
        """Forget the expectations."""
        return replace(batch, expect={})


class AcceptsAnyIncarnation(AltersBatches):
    """Takes a batch for whatever partition is there now."""

    async def altered(self, partition: str, batch: Batch) -> Batch:
        """Correct the incarnation."""
        meta = self.meta(partition)
        return replace(batch, incarnation=meta.incarnation if meta is not None else None)


class IgnoresEpochs(AltersBatches):
    """Does not look at the protect epoch."""

    async def altered(self, partition: str, batch: Batch) -> Batch:
        """Forget the epoch."""
        return replace(batch, epoch=None)


class IgnoresSweeps(AltersBatches):
    """Lets a batch refer to uploads that were swept."""

    async def altered(self, partition: str, batch: Batch) -> Batch:
        """Forget when the oldest upload was made."""
        return replace(batch, oldest_upload_at=None)


class IgnoresCeilings(AltersBatches):
    """Adds without looking at ceilings."""

    async def altered(self, partition: str, batch: Batch) -> Batch:
        """Forget the ceilings."""
        return replace(batch, counters={n: (add, None) for n, (add, _) in batch.counters.items()})


class CeilingRefusesAnything(AltersBatches):
    """Refuses a subtraction, too, while a counter is above its ceiling."""

    async def altered(self, partition: str, batch: Batch) -> Batch:
        """Judge without looking at the sign."""
        meta = self.meta(partition)
        counters = {} if meta is None else meta.counters
        for name, (add, ceiling) in batch.counters.items():
            used = counters.get(name, 0)
            if ceiling is not None and used + add > ceiling:
                raise CeilingExceeded(name, ceiling, used, add)
        return batch


class EmptyIncludesHighEnd(AltersBatches):
    """Counts the high end of a range in."""

    async def altered(self, partition: str, batch: Batch) -> Batch:
        """Refuse a record at the high end."""
        for low, high in batch.expect_empty:
            if await self.get_many(partition, [high]) != [None]:
                raise PreconditionFailed("empty", low)
        return batch


class LosesSelfTakenBodies(AltersBatches):
    """Moves a body away from the record that it moves it to."""

    async def altered(self, partition: str, batch: Batch) -> Batch:
        """Lose the bodies."""
        puts = [replace(p, body=None) if p.body == Take(p.key) else p for p in batch.puts]
        return replace(batch, puts=puts)


class TakesInOrder(AltersBatches):
    """Moves one body after the other, so a swap gives both records the same."""

    async def altered(self, partition: str, batch: Batch) -> Batch:
        """Work the takes off in order."""
        bodies: dict[str, bytes | None] = {}
        puts = []
        for put in batch.puts:
            body = put.body
            if isinstance(body, Take):
                (source,) = await self.get_many(partition, [body.key])
                body = bodies.get(body.key, source.body if source is not None else None)
            bodies[put.key] = body
            puts.append(replace(put, body=body))
        return replace(batch, puts=puts)


class TakesFromNothing(AltersBatches):
    """Gives no body where the record to take from is not there."""

    async def altered(self, partition: str, batch: Batch) -> Batch:
        """Drop the takes that lead nowhere."""
        puts = []
        for put in batch.puts:
            lost = isinstance(put.body, Take) and await self.get_many(
                partition, [put.body.key]
            ) == [None]
            puts.append(replace(put, body=None) if lost else put)
        return replace(batch, puts=puts)


class EmptyBodyIsNone(AltersBatches):
    """Takes an empty body for none."""

    async def altered(self, partition: str, batch: Batch) -> Batch:
        """Drop empty bodies."""
        return replace(batch, puts=[replace(p, body=p.body or None) for p in batch.puts])


class DeletesAfterPuts(AltersBatches):
    """Deletes what the same batch puts."""

    async def altered(self, partition: str, batch: Batch) -> Batch:
        """Leave out the puts that would be deleted."""
        return replace(batch, puts=[p for p in batch.puts if p.key not in batch.deletes])


class KeepsSixteenChanges(AltersBatches):
    """Logs the changes that fit into a value."""

    async def altered(self, partition: str, batch: Batch) -> Batch:
        """Cut the changes."""
        return replace(batch, changes=batch.changes[:16])


class MarksOnce(AltersBatches):
    """Replaces only the first sequence mark of a key."""

    async def altered(self, partition: str, batch: Batch) -> Batch:
        """Replace the first mark, drop the rest."""
        (last,) = await self.sequences([partition])
        marked = [
            p.key.replace(SEQUENCE_MARK, number(last + 1), 1).replace(SEQUENCE_MARK, "")
            for p in batch.puts
        ]
        puts = [replace(p, key=key) for p, key in zip(batch.puts, marked, strict=True)]
        return replace(batch, puts=puts)


class TimeGoesBack(AltersBatches):
    """Stamps with the committer's clock, however far it is behind."""

    async def altered(self, partition: str, batch: Batch) -> Batch:
        """Forget the time of the last commit."""
        held = self._partitions.get(partition)
        if held is not None and held.meta is not None:
            held.meta = msgspec.structs.replace(held.meta, at=0)
        return batch


class WritesPartOfRefused(MemoryRecordStore):
    """Deletes before it judges."""

    async def commit(self, partition: str, batch: Batch) -> Committed:
        """Leave the deletes of a refused batch done."""
        try:
            return await super().commit(partition, batch)
        except StoreError:
            held = self._partitions.get(partition)
            for key in batch.deletes if held is not None else ():
                self._partitions[partition].records.pop(key, None)
            raise


class GapAfterRefusal(MemoryRecordStore):
    """Uses a sequence up for a batch that it refuses."""

    async def commit(self, partition: str, batch: Batch) -> Committed:
        """Count before judging."""
        try:
            return await super().commit(partition, batch)
        except StoreError:
            held = self._partitions.get(partition)
            if held is not None and held.meta is not None:
                held.meta = msgspec.structs.replace(held.meta, sequence=held.meta.sequence + 1)
            raise


class RestartsRevisions(MemoryRecordStore):
    """Gives a record that is created the revision 1."""

    async def commit(self, partition: str, batch: Batch) -> Committed:
        """Number records by themselves."""
        keys = [p.key for p in batch.puts]
        before = await self.get_many(partition, keys)
        committed = await super().commit(partition, batch)
        records = self._partitions[partition].records
        for key, old in zip(keys, before, strict=True):
            if old is None and key in records:
                records[key] = replace(records[key], revision=1)
        return committed


class CommitsInTwoSteps(MemoryRecordStore):
    """Writes the second half of a batch after a pause."""

    async def commit(self, partition: str, batch: Batch) -> Committed:
        """Commit in halves."""
        half = len(batch.puts) // 2
        committed = await super().commit(partition, replace(batch, puts=batch.puts[:half]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for put in batch.puts[half:]:
            body = put.body if isinstance(put.body, bytes) else None
            record = Record(put.key, put.value, body, committed.sequence, committed.at)
            self._partitions[partition].records[put.key] = record
        return committed


class DropLeavesRecords(MemoryRecordStore):
    """Drops a partition's `meta` and leaves its records."""

    async def drop(self, partition: str) -> None:
        """Forget that the partition exists."""
        held = self._partitions.get(partition)
        if held is not None:
            held.meta = None
