"""Asking without waiting: at once where it can be, and finished elsewhere where it cannot."""

from __future__ import annotations

import asyncio

import pytest

from crux_workspace.events.instant import LATER, begin


async def _answer(seconds: float | None) -> int:
    if seconds is not None:
        await asyncio.sleep(seconds)
        await asyncio.sleep(0)
    return 7


def test_an_answer_at_once() -> None:
    assert begin(_answer(None)) == (7, None)


def test_a_failure_at_once() -> None:
    async def fail() -> int:
        raise LookupError

    with pytest.raises(LookupError):
        begin(fail())


@pytest.mark.parametrize("seconds", [0, 0.001])
async def test_an_answer_later(seconds: float) -> None:
    answer, rest = begin(_answer(seconds))
    assert answer is LATER
    assert rest is not None
    assert await asyncio.create_task(rest) == 7


async def test_cancelling_the_rest_cancels_the_work() -> None:
    ended = False

    async def work() -> None:
        nonlocal ended
        try:
            await asyncio.sleep(10)
        finally:
            ended = True

    _, rest = begin(work())
    assert rest is not None
    task = asyncio.create_task(rest)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended
