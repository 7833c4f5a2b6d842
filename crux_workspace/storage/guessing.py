"""Planning without reading first, for stores where reading is a way to a server of its own.

A store remembers the small records that its commits wrote and its plans read. A plan is given a reader that tells these, and
calls every other record absent; its batch expects each of them to be so. Right, that saves one of two ways to the server; wrong,
the batch is refused like any stale one, and the plan is made again by reading. So nothing is believed that the store did not judge,
and a plan that refuses, or finds nothing to do, is asked again with what was read.

What is known holds for one incarnation of a partition, and for the servers that it was learned from: a server that took over from another
one may have given out the same revision for something else. `Guesses.forget` is for that; who commits compares `Guesses.generation`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from crux_workspace.storage.knowing import LEAST_PAUSE, Habit, Known, Memory
from crux_workspace.storage.layout import META_KEY
from crux_workspace.storage.records import (
    Batch,
    BatchTooLarge,
    Committed,
    Contains,
    Page,
    Plan,
    PreconditionFailed,
    Reader,
    Record,
    StoreError,
)

__all__ = ["CannotGuess", "Guesses", "Noting", "Told"]


class CannotGuess(StoreError):
    """A plan asks for what only the server can tell, or it is no time for a guess; it is made again by reading."""


class Told(Struct, frozen=True, gc=False):
    """Of what a guess was made."""

    generation: int
    """As of when it is known (`Guesses.generation`)."""
    meta: Record
    """The record `meta`: the batch is made on the commit that wrote it."""


class _Guess:
    """A `Reader` that tells what is known and calls every other record absent."""

    __slots__ = ("_told", "habit", "is_held_back", "known")

    def __init__(self, known: Known) -> None:
        self.known = known
        self.habit: Habit | None = None
        self.is_held_back = False
        self._told: dict[str, int] = {}

    async def get_many(self, keys: Sequence[str], *, bodies: bool = True) -> list[Record | None]:
        """See `Reader.get_many`; bodies are not known."""
        if bodies:
            raise CannotGuess
        records = self.known.records
        told = self._told
        found: list[Record | None] = []
        for key in keys:
            if key == META_KEY:
                found.append(self.known.meta)
                continue
            record = records.get(key)
            found.append(record)
            revision = _revision(record)
            if told.setdefault(key, revision) != revision:
                raise CannotGuess  # somebody committed meanwhile: what the plan was told never was at one time
        self._judge_time()
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
        """See `Reader.scan`; not for guessing."""
        raise CannotGuess

    def hold(self, batch: Batch) -> Batch:
        """Let a batch expect all that its plan was told."""
        expect, told = batch.expect, self._told
        if any(expect.get(key, revision) != revision for key, revision in told.items()):
            raise CannotGuess  # the plan knows better
        if told.keys() <= expect.keys():
            return batch
        return replace(batch, expect={**expect, **told})

    def _judge_time(self) -> None:
        known, told = self.known, self._told
        habit = known.creating if told and not any(told.values()) else known.changing
        if habit is not self.habit:
            self.habit = habit
            if not habit.is_time:
                self.is_held_back = True
                raise CannotGuess


class Noting:
    """A `Reader` that hands on what the server says, and learns from it."""

    __slots__ = ("_guesses", "_partition", "_reader", "is_known", "is_right", "since")

    def __init__(self, guesses: Guesses, partition: str, reader: Reader) -> None:
        self._guesses = guesses
        self._partition = partition
        self._reader = reader
        self.since = guesses.generation
        """As of when what it reads is known."""
        self.is_right = True
        """Whether a guess would have told the same; not when a body or a range was asked for."""
        self.is_known = False
        """Whether it would have told of some record."""

    async def get_many(self, keys: Sequence[str], *, bodies: bool = True) -> list[Record | None]:
        """See `Reader.get_many`."""
        found = await self._reader.get_many(keys, bodies=bodies)
        if bodies:
            self.is_right = False
            return found
        if self.is_right:
            known = self._guesses.told(self._partition, keys)
            for key, told, record in zip(keys, known, found, strict=True):
                if told is not None:
                    self.is_known = True
                if _revision(told) != _revision(record) and key != META_KEY:
                    self.is_right = False
        self._guesses.read(self._partition, keys, found, self.since)
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
        self.is_right = False
        return await self._reader.scan(
            prefix,
            after=after,
            before=before,
            reverse=reverse,
            limit=limit,
            bodies=bodies,
            delimiter=delimiter,
            filter=filter,
        )


class Guesses(Memory):
    """What one store knows of partitions, and the plans that it makes of that."""

    async def commit(
        self, partition: str, plan: Plan, commit: Callable[[Batch, Told], Awaitable[Committed]]
    ) -> Committed | None:
        """Commit what a plan makes of a guess; None when it is better to read, or the guess was wrong.

        Args:
            partition: Where to commit.
            plan: Is believed only when its batch is accepted.
            commit: Has a batch judged and applied; it refuses to send what another server than the one that told may judge.
        """
        known = self.use(partition)
        if known is None:
            return None
        known.creating.pass_one()
        known.changing.pass_one()
        if not (known.creating.is_time or known.changing.is_time):
            return None
        guess, told = _Guess(known), Told(self.generation, known.meta)
        try:
            batch = guess.hold(await plan(guess))
        except Exception:  # whatever it is: a refusal is believed only of a plan that has read
            if guess.habit is not None and not guess.is_held_back:
                guess.habit.waits = LEAST_PAUSE + 1  # it cost no way to the server
            return None
        try:
            done = await commit(batch, told)
        except (PreconditionFailed, BatchTooLarge) as refusal:
            self._was_wrong(partition, guess, refusal)
            return None
        if guess.habit is not None:
            guess.habit.pause = LEAST_PAUSE
        return done

    def told(self, partition: str, keys: Sequence[str]) -> list[Record | None]:
        """Return what a guess would tell, `meta` left out."""
        known = self.get(partition)
        return [None if known is None else known.records.get(key) for key in keys]

    def noted(self, partition: str, reader: Noting) -> None:
        """Learn whether a guess would have served a plan that was made by reading."""
        known = self.get(partition)
        if known is not None:
            habit = known.changing if reader.is_known else known.creating
            habit.evidence = habit.evidence + 1 if reader.is_right else 0

    def _was_wrong(
        self, partition: str, guess: _Guess, refusal: PreconditionFailed | BatchTooLarge
    ) -> None:
        if isinstance(refusal, PreconditionFailed) and refusal.what == "incarnation":
            self.forget(partition)
        if guess.habit is not None:
            guess.habit.was_refused()


def _revision(record: Record | None) -> int:
    return 0 if record is None else record.revision
