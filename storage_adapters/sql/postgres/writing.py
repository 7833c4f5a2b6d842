"""The ways of a batch into the database: guessed, planned by plain reads, or planned under the lock."""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

from crux_workspace.storage.guessing import Noting
from crux_workspace.storage.planning import MAX_PLANS
from crux_workspace.storage.records import Batch, Committed, Plan, PreconditionFailed
from storage_adapters.sql.postgres.committing import MovedOn, Request, apply
from storage_adapters.sql.postgres.database import Database
from storage_adapters.sql.postgres.failures import queue_error
from storage_adapters.sql.postgres.grouping import Commits, Heads
from storage_adapters.sql.postgres.outcomes import Contended, certain, planned, uncertain
from storage_adapters.sql.postgres.planning import FreeReader, HeldReader
from storage_adapters.sql.postgres.pool import Connection
from storage_adapters.sql.postgres.queueing import Places

__all__ = ["Writer"]

_UNLOCKED_PLANS = 3
"""How many plans are judged after they were made; whoever is refused so often plans while it holds the lock."""

_ATTEMPTS = 5
"""How often a transaction is made that the server gave up for another one's sake."""


class Writer:
    """Commits of one store. It minds in no task: a caller may leave, and another task goes on (`StoreCapabilities.task_agnostic`)."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._guesses = database.guesses
        self._turns: WeakValueDictionary[str, Places] = WeakValueDictionary()
        self._heads = Heads(database)
        self._commits = Commits(database)

    async def aclose(self) -> None:
        """Wait for groups whose members have all left."""
        await self._heads.aclose()
        await self._commits.aclose()

    def forget(self, partition: str) -> None:
        """Guess nothing of a partition that is dropped."""
        self._guesses.forget(partition)

    async def commit(self, partition: str, batch: Batch) -> Committed:
        """Apply a batch by itself, or, when its quiet paths cannot be judged from outside, under the lock."""
        request = Request(partition, batch)
        since = self._guesses.generation
        for _ in range(_ATTEMPTS):
            try:
                async with self._database.pool.writing() as connection:
                    committed = await self._apply(connection, request)
            except MovedOn:
                break
            except Contended:
                continue
            self._guesses.committed(partition, batch, committed, since)
            return committed
        return await self._commit_under_lock(partition, planned(batch))

    async def commit_planned(self, partition: str, plan: Plan) -> Committed:
        """Plan and apply; commits to one partition queue up here.

        They would wait for each other in the database anyway, each holding a connection.
        """
        turn = self._turn(partition)
        await turn.enter()
        try:
            return await self._plan_until_accepted(partition, plan)
        finally:
            turn.leave()

    async def _plan_until_accepted(self, partition: str, plan: Plan) -> Committed:
        if not self._database.is_proxied:  # a proxy tells nobody when another server takes over
            guessed = await self._guesses.commit(
                partition,
                plan,
                lambda batch, told: self._apply_since(
                    Request(partition, batch, told.generation, told.meta)
                ),
            )
            if guessed is not None:
                return guessed
        for attempt in range(1, MAX_PLANS + 1):
            try:
                if attempt <= _UNLOCKED_PLANS:
                    return await self._plan_and_commit(partition, plan)
                return await self._commit_under_lock(partition, plan)
            except PreconditionFailed:
                if attempt == MAX_PLANS:
                    raise
        raise AssertionError("unreachable")

    async def _plan_and_commit(self, partition: str, plan: Plan) -> Committed:
        """Plan by plain reads, and apply; both together with others that are ready at the same time."""
        guesses = self._guesses
        reader = Noting(guesses, partition, FreeReader(self._database, self._heads, partition))
        batch = await plan(reader)
        committed = await self._apply_since(Request(partition, batch, reader.since))
        guesses.noted(partition, reader)
        return committed

    async def _apply_since(self, request: Request) -> Committed:
        """Apply a batch, with others that are ready at the same time, by a connection that its plan still holds for.

        Raises:
            PreconditionFailed: An expectation does not hold, or another server may have taken over since the plan was made.
        """
        partition, batch = request.partition, request.batch
        try:
            committed = await self._apply_soon(request)
        except (MovedOn, Contended):
            return await self._commit_under_lock(partition, planned(batch), request.since)
        assert request.since is not None
        self._guesses.committed(partition, batch, committed, request.since)
        return committed

    async def _apply_soon(self, request: Request) -> Committed:
        if self._commits.takes(request):
            row = await self._commits.join(request)
            committed = None if row is None else request.verdict(row)
            if committed is not None:
                return committed
        async with self._database.pool.writing() as connection:
            self._database.check_since(request.since)
            return await self._apply(connection, request)

    async def _apply(self, connection: Connection, request: Request) -> Committed:
        """Apply a batch by itself; while it waits for no lock, others gather behind it."""
        with uncertain():
            if request.is_plain and not self._database.is_proxied:
                with self._commits.lane():
                    row = await self._apply_if_free(connection, request)
                committed = None if row is None else request.verdict(row)
                if committed is not None:
                    return committed
            return await apply(self._database, connection, request)

    async def _apply_if_free(self, connection: Connection, request: Request) -> Any:  # noqa: ANN401 - a row of the driver
        """Return the verdict, or None where the partition is locked.

        Where nobody has committed since the plan, one statement does; not while other namespaces are written too: what takes longer
        gathers more of their commits behind it.
        """
        texts, rows = self._database.texts, self._database.rows
        if len(self._turns) == 1 and (parameters := request.following) is not None:
            for row in await rows(connection, texts.follow, parameters):
                return row
        for row in await rows(connection, texts.commit_if_free, (*request.parameters, 0)):
            return row
        return None

    async def _commit_under_lock(
        self, partition: str, plan: Plan, planned_since: int | None = None
    ) -> Committed:
        """Plan and apply in one transaction that holds the partition's lock from its start."""
        database = self._database
        for _ in range(_ATTEMPTS):
            try:
                async with database.holding(partition) as connection:
                    database.check_since(planned_since)
                    since = self._guesses.generation
                    reader = HeldReader(database, connection, partition)
                    request = Request(partition, await plan(reader))
                    with certain():
                        committed = await apply(database, connection, request)
                    with uncertain():
                        await database.commit(connection)
            except Contended:
                continue
            self._guesses.committed(partition, request.batch, committed, since)
            return committed
        raise queue_error()

    def _turn(self, partition: str) -> Places:
        turn = self._turns.get(partition)
        if turn is None:
            wait_s = self._database.address.options.lock_timeout_ms / 1000
            turn = self._turns[partition] = Places(1, wait_s, queue_error)
        return turn
