"""How long to wait before something is tried again."""

from __future__ import annotations

import asyncio
import random

from crux_workspace.errors import ConflictError, ErrorCode

__all__ = ["before_another_attempt", "jitter_s"]

_MOST_DOUBLINGS = 16


def jitter_s(failures: int, *, first_s: float, most_s: float) -> float:
    """Return a random time of at most `first_s` after one failure, twice as much after each further one, never more than `most_s`."""
    bound = first_s * 2.0 ** min(failures - 1, _MOST_DOUBLINGS)
    return random.uniform(0, min(most_s, bound))  # noqa: S311 - no secret


async def before_another_attempt(conflict: ConflictError, attempt: int, attempts: int) -> None:
    """Wait before a transaction is tried once more; when it is not to be, raise what it met.

    Raises:
        ConflictError: It was the last attempt, or another conflict than that of the transaction itself.
    """
    if conflict.code != ErrorCode.TRANSACTION_CONFLICT or attempt >= attempts:
        raise conflict
    await asyncio.sleep(jitter_s(attempt, first_s=0.01, most_s=0.32))
