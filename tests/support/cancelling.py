"""Cancelling a call at each of its steps."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Iterator

__all__ = ["cancelled_after", "steps"]


def steps() -> Iterator[int]:
    """Every one of the first steps, then further and further ones."""
    yield from range(40)
    yield from itertools.accumulate(itertools.repeat(2), lambda n, _: n + n // 4, initial=40)


async def cancelled_after(step: int, work: Awaitable[object]) -> bool:
    """Cancel work after so many turns of the loop; returns whether it had ended by itself."""
    task = asyncio.ensure_future(work)
    for _ in range(step):
        if task.done():
            break
        await asyncio.sleep(0)
    ended = task.done()
    task.cancel()
    async with asyncio.timeout(5):
        await asyncio.wait({task})
    assert task.cancelled() or task.exception() is None
    return ended
