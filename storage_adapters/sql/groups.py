"""Group commit: several jobs, one transaction, every verdict after COMMIT.

A job that refuses leaves no rows, so its neighbours go on. When the database itself fails, the whole transaction is rolled back and
each job runs again in one of its own: nobody pays for a neighbour, and no savepoint is needed.
"""

from __future__ import annotations

import sqlite3
from asyncio import Future
from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from crux_workspace.storage.records import (
    Batch,
    Committed,
    OutcomeUnknown,
    Plan,
    StoreError,
)
from storage_adapters.sql.committing import Commit
from storage_adapters.sql.failures import is_busy, is_refused, translated
from storage_adapters.sql.locking import WriteLock
from storage_adapters.sql.transaction import Transaction

__all__ = ["MAX_GROUP_BYTES", "MAX_GROUP_JOBS", "GroupRunner", "Job", "Verdict"]

MAX_GROUP_JOBS = 64
MAX_GROUP_BYTES = 1 << 20


class Job(Struct, eq=False):
    """One call of `commit`, `commit_planned` or `drop` on its way through the writer."""

    partition: str
    work: Plan | Batch | None
    """A plan to run, a batch to judge, or None to drop the partition."""
    future: Future[Committed | None]
    """Belongs to the loop; the writer never looks at it."""


Verdict: TypeAlias = tuple[Job, Committed | BaseException | None]


class _DatabaseFailed(Exception):
    """The transaction cannot go on; the cause says why."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class GroupRunner:
    """Runs groups of jobs on the writer's connection; used by the writer's thread alone."""

    def __init__(self, connection: sqlite3.Connection, lock: WriteLock) -> None:
        self._connection = connection
        self._lock = lock

    def run(self, jobs: Sequence[Job], deliver: Callable[[list[Verdict]], None]) -> None:
        """Run the jobs in order and deliver each one's verdict once it holds, in as few transactions as the caps allow."""
        start = 0
        while start < len(jobs):
            try:
                verdicts = self._group(jobs[start:])
            except Exception as error:
                self._roll_back()
                verdicts = [(job, _unknown(error)) for job in jobs[start:]]
            start += len(verdicts)
            deliver(verdicts)

    def _group(self, jobs: Sequence[Job]) -> list[Verdict]:
        """Run a first part of the jobs in one transaction; return its verdicts."""
        try:
            with self._lock:
                return self._transact(jobs)
        except _DatabaseFailed as failed:
            if len(jobs) > 1 and not is_busy(failed.error):
                return self._one_by_one(jobs)
            return [(job, _verdict(failed.error)) for job in jobs]

    def _one_by_one(self, jobs: Sequence[Job]) -> list[Verdict]:
        verdicts: list[Verdict] = []
        for job in jobs:
            verdicts += self._group([job])
            verdict = verdicts[-1][1]
            if isinstance(verdict, BaseException) and is_busy(verdict.__cause__):
                # Waiting for the lock again for each of the others would take minutes.
                cause = verdict.__cause__
                verdicts += [(other, _verdict(cause)) for other in jobs[len(verdicts) :]]
                break
        return verdicts

    def _transact(self, jobs: Sequence[Job]) -> list[Verdict]:
        try:
            self._connection.execute("begin immediate")
        except sqlite3.Error as error:
            raise _DatabaseFailed(error) from error
        try:
            transaction = Transaction(self._connection)
            verdicts: list[Verdict] = []
            for job in jobs:
                verdicts.append((job, _judge(transaction, job)))
                if transaction.size >= MAX_GROUP_BYTES:
                    break
            transaction.flush()
        except Exception as error:
            self._roll_back()
            cause = error.error if isinstance(error, _DatabaseFailed) else error
            raise _DatabaseFailed(cause) from error
        return self._commit(verdicts)

    def _commit(self, verdicts: list[Verdict]) -> list[Verdict]:
        try:
            self._connection.execute("commit")
        except sqlite3.Error as error:
            self._roll_back()
            if is_refused(error):
                raise _DatabaseFailed(error) from error
            return [(job, _unknown(error)) for job, _ in verdicts]
        return verdicts

    def _roll_back(self) -> None:
        """Roll back, unless the database already did (as it does when it is full)."""
        if self._connection.in_transaction:
            try:
                self._connection.execute("rollback")
            except sqlite3.Error:
                # The next BEGIN reports what is wrong; hiding the first error would not help.
                return


def _judge(transaction: Transaction, job: Job) -> Committed | BaseException | None:
    """Return the job's result or its refusal; raise when the transaction cannot go on."""
    if job.work is None:
        transaction.drop(job.partition)
        return None
    commit = Commit(transaction, job.partition)
    if isinstance(job.work, Batch):
        batch = job.work
    else:
        try:
            batch = commit.plan(job.work)
        except BaseException as error:
            if commit.failure is not None:
                raise _DatabaseFailed(commit.failure) from error
            return _raisable(error)
        if commit.failure is not None:
            raise _DatabaseFailed(commit.failure)
    try:
        return commit.apply(batch)
    except StoreError as refusal:
        return refusal


def _raisable(error: BaseException) -> BaseException:
    """Return what a future can hold: it refuses StopIteration."""
    return (
        RuntimeError("a plan raised StopIteration") if isinstance(error, StopIteration) else error
    )


def _verdict(error: BaseException | None) -> BaseException | None:
    if isinstance(error, sqlite3.Error | OverflowError):
        return translated(error)
    return error


def _unknown(error: Exception) -> OutcomeUnknown:
    unknown = OutcomeUnknown("the commit was not answered")
    unknown.__cause__ = error
    return unknown
