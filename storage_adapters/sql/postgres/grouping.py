"""What several clients ask at the same time, sent together: one round trip for all of it, and for commits one flush to disk.

Who finds a lane free goes by itself. While all lanes are taken, others gather; whoever leaves a lane lets all of them go together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, Generic, TypeVar

import asyncpg

from crux_workspace.errors import WorkspaceError
from crux_workspace.storage.records import OutcomeUnknown, Record
from storage_adapters.sql.postgres.committing import Request
from storage_adapters.sql.postgres.database import Database, Rows
from storage_adapters.sql.postgres.failures import LOST, is_lost

__all__ = ["Commits", "Heads"]

_LARGEST_GROUP = 64

Q = TypeVar("Q")
A = TypeVar("A")


class _Job(Generic[Q, A]):
    """Somebody who waits for an answer."""

    __slots__ = ("answer", "asked")

    def __init__(self, asked: Q) -> None:
        self.asked = asked
        self.answer: asyncio.Future[A | None] = asyncio.get_running_loop().create_future()

    def tell(self, answer: A | None) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class _Groups(Generic[Q, A]):
    """Questions of one kind on their way to the server."""

    lanes: int
    """How many go at the same time."""
    largest: int
    """How much one group asks for at most, unless a single question does; in the unit of `_size`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._taken = 0
        self._waiting: list[_Job[Q, A]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_full(self) -> bool:
        """Whether all lanes are taken: who comes now may wait and go together with others."""
        return self._taken >= self.lanes and not self._database.is_proxied

    @contextmanager
    def lane(self) -> Iterator[None]:
        """Take a lane for somebody who goes alone, and waits for nobody on the way."""
        self._taken += 1
        try:
            yield
        finally:
            self._left()

    async def join(self, asked: Q) -> A | None:
        """Go together with others; None for who has to go alone after all, and nothing came of it."""
        job: _Job[Q, A] = _Job(asked)
        self._waiting.append(job)
        return await job.answer

    async def aclose(self) -> None:
        """Wait for groups whose members have all left."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    def _left(self) -> None:
        self._taken -= 1
        if self._waiting and self._taken < self.lanes:
            self._taken += 1
            task = asyncio.get_running_loop().create_task(self._go(self._next()))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _next(self) -> list[_Job[Q, A]]:
        """Return the next group, in the order in which they came."""
        size = count = 0
        for job in self._waiting:
            size += self._size(job.asked)
            if count == _LARGEST_GROUP or (count and size > self.largest):
                break
            count += 1
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group

    async def _go(self, group: list[_Job[Q, A]]) -> None:
        try:
            answers = await self._ask([job.asked for job in group])
            for job, answer in zip(group, answers, strict=True):
                job.tell(answer)
        except Exception as error:
            for job in group:
                self._failed(job, error)
        except BaseException:
            for job in group:
                job.answer.cancel()
            raise
        finally:
            self._left()

    def _failed(self, job: _Job[Q, A], error: Exception) -> None:
        """Nothing came of the group: each goes alone, and meets its own fault and no other one's."""
        job.tell(None)

    def _size(self, asked: Q) -> int:
        raise NotImplementedError

    async def _ask(self, asked: list[Q]) -> Sequence[A | None]:
        raise NotImplementedError


class Commits(_Groups[Request, Rows]):
    """Batches; their answers are verdicts.

    A group waits for nobody: whose partition is locked by another transaction is left out of it and goes alone. So a namespace that is
    held up holds up no other one, and groups cannot wait for each other in a circle.
    """

    lanes = 1
    largest = 4 << 20  # bytes

    def takes(self, request: Request) -> bool:
        """Whether a batch is to go together with others."""
        return self.is_full and request.is_plain

    def _size(self, asked: Request) -> int:
        return asked.size

    async def _ask(self, asked: list[Request]) -> Sequence[Rows | None]:
        verdicts: list[Rows | None] = [None] * len(asked)
        async with self._database.pool.writing() as connection:
            known_since = self._database.guesses.generation
            ready = [
                (*request.parameters, number)
                for number, request in enumerate(asked)
                if request.since == known_since  # whose plan is older goes alone, and is refused
            ]
            found = ready and await connection.fetchmany(
                self._database.texts.commit_if_free, ready, timeout=self._database.timeout_s
            )
        for row in found:
            verdicts[row[5]] = row
        return verdicts

    def _failed(self, job: _Job[Request, Rows], error: Exception) -> None:
        if isinstance(error, WorkspaceError):  # there was no connection
            job.fail(copy(error))
        elif isinstance(error, (asyncpg.PostgresError, *LOST)) and not is_lost(error):
            job.tell(None)
        else:
            unknown = OutcomeUnknown()
            unknown.__cause__ = error
            job.fail(unknown)


class Heads(_Groups[tuple[str, Sequence[str]], list[Record | None]]):
    """What plans read, bodies left out: a partition and keys; the answers are records."""

    lanes = 2
    largest = 10_000  # keys

    async def read(
        self, partition: str, keys: Sequence[str], alone: Callable[[], Any]
    ) -> list[Record | None]:
        """Read records of one partition as of one moment, with others or by `alone`."""
        found = None
        if self.is_full:
            found = await self.join((partition, keys))
        if found is None:
            with self.lane():
                found = await alone()
        return found

    def _size(self, asked: tuple[str, Sequence[str]]) -> int:
        return len(asked[1])

    async def _ask(
        self, asked: list[tuple[str, Sequence[str]]]
    ) -> Sequence[list[Record | None] | None]:
        found: list[dict[str, Record]] = [{} for _ in asked]
        async with self._database.pool.reading() as connection:
            rows = await connection.fetchmany(
                self._database.texts.known_together,
                [(*one, number) for number, one in enumerate(asked)],
                timeout=self._database.timeout_s,
            )
        for number, key, value, revision, at in rows:
            found[number][key] = Record(key, value, None, revision, at)
        return [
            [records.get(key) for key in keys]
            for records, (_, keys) in zip(found, asked, strict=True)
        ]
