"""What became of a commit: certainly nothing, or nobody knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from crux_workspace.errors import WorkspaceError
from crux_workspace.storage.records import Batch, OutcomeUnknown, Plan, Reader
from storage_adapters.sql.postgres.failures import LOST, is_contended, is_lost, translated

__all__ = ["Contended", "certain", "planned", "uncertain"]


class Contended(Exception):
    """The server gave up the transaction for another one's sake."""


def planned(batch: Batch) -> Plan:
    """Return the plan that ends in a batch that is made already."""

    async def plan(reader: Reader) -> Batch:
        del reader
        return batch

    return plan


@contextmanager
def certain() -> Iterator[None]:
    """Nothing is applied yet: whatever fails, nothing was written."""
    try:
        yield
    except (asyncpg.PostgresError, *LOST) as error:
        if is_contended(error):
            raise Contended from error
        raise translated(error) from error


@contextmanager
def uncertain() -> Iterator[None]:
    """Whoever loses the connection here does not know whether the commit was made."""
    try:
        with certain():
            yield
    except WorkspaceError as error:
        if error.__cause__ is not None and is_lost(error.__cause__):
            raise OutcomeUnknown from error.__cause__
        raise
