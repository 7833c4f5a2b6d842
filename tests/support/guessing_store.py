"""A store that makes every plan by guessing first, as those do that a way to a server lies before."""

from __future__ import annotations

from crux_workspace.storage.guessing import Guesses, Noting
from crux_workspace.storage.knowing import Habit
from crux_workspace.storage.planning import PartitionReader, replanned
from crux_workspace.storage.records import Batch, Committed, Plan, RecordStore
from crux_workspace.testing import CommitOnlyRecordStore

__all__ = ["GuessingRecordStore", "guess_always"]

_ENOUGH = 1_000


def guess_always(guesses: Guesses, partition: str) -> None:
    """Let the next plan be a guess, whatever became of the ones before it."""
    known = guesses.get(partition)
    if known is not None:
        known.creating, known.changing = Habit(evidence=_ENOUGH), Habit(evidence=_ENOUGH)


class GuessingRecordStore(CommitOnlyRecordStore):
    """Remembers what it wrote and read; several may share what they know, as the stores of one process."""

    def __init__(self, inner: RecordStore, guesses: Guesses) -> None:
        super().__init__(inner)
        self.guesses = guesses

    async def commit(self, partition: str, batch: Batch) -> Committed:
        """See `RecordStore.commit`."""
        since = self.guesses.generation
        done = await super().commit(partition, batch)
        self.guesses.committed(partition, batch, done, since)
        return done

    async def commit_planned(self, partition: str, plan: Plan) -> Committed:
        """Guess, then plan by reading."""
        guess_always(self.guesses, partition)
        done = await self.guesses.commit(
            partition, plan, lambda batch, _: self.commit(partition, batch)
        )
        return done or await replanned(lambda: self._once(partition, plan))

    async def drop(self, partition: str) -> None:
        """See `RecordStore.drop`."""
        await super().drop(partition)
        self.guesses.forget(partition)

    async def _once(self, partition: str, plan: Plan) -> Committed:
        reader = Noting(self.guesses, partition, PartitionReader(self, partition))
        done = await self.commit(partition, await plan(reader))
        self.guesses.noted(partition, reader)
        return done
