"""Cancelling a call at each of its steps."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Collection, Iterable, Iterator

__all__ = ["cancelled_after", "steps", "victims_cancelled_after"]


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


async def victims_cancelled_after(
    step: int, clients: Iterable[Awaitable[object]], victims: Collection[int]
) -> bool:
    """Let clients work at once, and cancel some after so many turns of the loop; returns whether those had ended by themselves.

    All the others end well, within five seconds.
    """
    tasks = [asyncio.ensure_future(client) for client in clients]
    for _ in range(step):
        await asyncio.sleep(0)
    ended = all(tasks[victim].done() for victim in victims)
    for victim in victims:
        tasks[victim].cancel()
    async with asyncio.timeout(5):
        await asyncio.wait(tasks)
    for number, task in enumerate(tasks):
        assert number in victims or task.exception() is None
    return ended
