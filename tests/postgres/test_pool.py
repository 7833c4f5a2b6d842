"""The pool by itself: whoever is cancelled, at whichever step, no place in it and no turn is lost."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from storage_adapters.sql.postgres.pool import Pool
from tests.support.cancelling import victims_cancelled_after

SIZE, CLIENTS = 3, 7


class Line:
    """A connection that goes nowhere; making and closing it take a few turns of the loop."""

    made = 0

    def __init__(self) -> None:
        self.over = False

    @classmethod
    async def open(cls) -> Any:
        for _ in range(3):
            await asyncio.sleep(0)
        cls.made += 1
        return cls()

    def is_closed(self) -> bool:
        return self.over

    def is_in_transaction(self) -> bool:
        return False

    def terminate(self) -> None:
        self.over = True

    async def close(self, **_: float) -> None:
        await asyncio.sleep(0)
        self.over = True


async def _client(pool: Pool, number: int) -> None:
    """Write, or read, a few times."""
    for _ in range(2):
        async with pool.writing() if number % 2 else pool.reading():
            await asyncio.sleep(0)
            await asyncio.sleep(0)


@pytest.mark.parametrize("victims", [(0,), (1,), (4, 5), (0, 1, 2, 3), tuple(range(CLIENTS))])
async def test_cancelling_at_any_step_loses_no_place(victims: tuple[int, ...]) -> None:
    for step in itertools.count():
        pool = Pool(Line.open, SIZE, wait_s=5)
        clients = (_client(pool, number) for number in range(CLIENTS))
        was_over = await victims_cancelled_after(step, clients, victims)
        assert pool.open <= SIZE
        async with asyncio.timeout(1):
            held = [await pool.acquire() for _ in range(SIZE)]
            assert pool.open == SIZE
            for connection in held:
                pool.release(connection)
            async with pool.writing(), pool.writing():
                pass
            await pool.aclose()
        assert pool.open == 0
        if was_over:
            break
    assert step > 10, "some were cancelled on the way"
