"""Record stores that judge or plan wrongly; part of `crux_workspace.testing.gallery`."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from msgspec import structs

from crux_workspace.model.changes import PURGED_PATH, Change
from crux_workspace.storage.capabilities import StoreCapabilities
from crux_workspace.storage.layout import (
    decode_changes,
    decode_log,
    log_key,
    prefix_end,
    quiet_violation,
)
from crux_workspace.storage.memory import MemoryRecordStore
from crux_workspace.storage.planning import PartitionReader
from crux_workspace.storage.records import Batch, Committed, Plan, PreconditionFailed
from crux_workspace.testing.broken_commits import AltersBatches
from crux_workspace.testing.delegating import DelegatingRecordStore
from crux_workspace.testing.doubles import CommitOnlyRecordStore

__all__ = [
    "ErasedNamesAreQuiet",
    "IgnoresItsOwnCeilings",
    "IgnoresLogBodies",
    "IgnoresRenameSources",
    "LocksNothing",
    "NeverPlansAgain",
    "QuietBySpelling",
    "ReadsFirstLogBody",
    "TrimmedLogIsQuiet",
    "WrapsPlanErrors",
]


class _JudgesQuiet(AltersBatches):
    """Judges `expect_quiet` by the changes that `seen` returns."""

    missing_is_quiet = False

    def seen(self, inline: list[Change], bodies: list[bytes]) -> list[Change]:
        return [*inline, *(c for body in bodies for c in decode_changes(body))]

    def violation(self, changes: list[Change], batch: Batch) -> str | None:
        return quiet_violation(changes, batch.expect_quiet)

    async def altered(self, partition: str, batch: Batch) -> Batch:
        meta = self.meta(partition)
        if not batch.expect_quiet or meta is None:
            return batch
        for sequence in range((batch.quiet_since or 0) + 1, meta.sequence + 1):
            stem = log_key(sequence)
            keys = self._partitions[partition].records.irange(stem, prefix_end(stem))
            found = [r for r in await self.get_many(partition, list(keys)) if r is not None]
            if not found:
                if self.missing_is_quiet:
                    continue
                raise PreconditionFailed("quiet", batch.expect_quiet[0][0])
            inline = decode_log(found[0].value).inline_changes()
            changes = self.seen(inline, [r.body for r in found if r.body is not None])
            path = self.violation(changes, batch)
            if path is not None:
                raise PreconditionFailed("quiet", path)
        return structs.replace(batch, expect_quiet=[])


class IgnoresRenameSources(_JudgesQuiet):
    """Does not count a rename as touching where the file came from."""

    def seen(self, inline: list[Change], bodies: list[bytes]) -> list[Change]:
        """Forget the sources."""
        return [replace(c, from_path=None) for c in super().seen(inline, bodies)]


class ErasedNamesAreQuiet(_JudgesQuiet):
    """Takes a change without a name for one of no path."""

    def seen(self, inline: list[Change], bodies: list[bytes]) -> list[Change]:
        """Forget what was purged."""
        return [c for c in super().seen(inline, bodies) if c.path != PURGED_PATH]


class IgnoresLogBodies(_JudgesQuiet):
    """Judges by the changes in the log's values only."""

    def seen(self, inline: list[Change], bodies: list[bytes]) -> list[Change]:
        """Forget the bodies."""
        return inline


class ReadsFirstLogBody(_JudgesQuiet):
    """Judges by the first thousand changes of a commit."""

    def seen(self, inline: list[Change], bodies: list[bytes]) -> list[Change]:
        """Forget the further bodies."""
        return super().seen(inline, bodies[:1])


class TrimmedLogIsQuiet(_JudgesQuiet):
    """Takes a missing log record for a quiet one."""

    missing_is_quiet = True


class QuietBySpelling(_JudgesQuiet):
    """Takes a path that starts with the same letters for one below."""

    def violation(self, changes: list[Change], batch: Batch) -> str | None:
        """Compare without looking for a slash."""
        for change in changes:
            for path, subtree in batch.expect_quiet:
                if change.path == path or (subtree and change.path.startswith(path.rstrip("/"))):
                    return path
        return None


class IgnoresItsOwnCeilings(DelegatingRecordStore):
    """Declares a ceiling and does not keep it."""

    def __init__(self) -> None:
        super().__init__(MemoryRecordStore())

    @property
    def capabilities(self) -> StoreCapabilities:
        """Declare a ceiling that the inner store knows nothing of."""
        return replace(self.inner.capabilities, max_value_bytes=1_000)


class LocksNothing(MemoryRecordStore):
    """Declares `plans_under_lock` and lets others in between plan and commit."""

    async def commit_planned(self, partition: str, plan: Plan) -> Committed:
        """Pause before the commit."""
        batch = await plan(PartitionReader(self, partition))
        await asyncio.sleep(0)
        return await self.commit(partition, batch)


class WrapsPlanErrors(MemoryRecordStore):
    """Makes an error of its own of a plan's exception."""

    async def commit_planned(self, partition: str, plan: Plan) -> Committed:
        """Wrap what the plan raises."""
        try:
            batch = await plan(PartitionReader(self, partition))
        except Exception as exc:
            message = "the plan failed"
            raise RuntimeError(message) from exc
        return await self.commit(partition, batch)


class NeverPlansAgain(CommitOnlyRecordStore):
    """Cannot plan under a lock and does not plan again."""

    def __init__(self) -> None:
        super().__init__(MemoryRecordStore())

    async def commit_planned(self, partition: str, plan: Plan) -> Committed:
        """Plan once."""
        return await self.commit(partition, await plan(PartitionReader(self, partition)))
