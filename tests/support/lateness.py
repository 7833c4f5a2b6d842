"""How late the event loop is while something else works."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

__all__ = ["Lateness", "measured"]

_TICK_S = 0.001


class Lateness:
    """The worst delay of a callback that was due every millisecond."""

    worst_ms = 0.0
    busiest_ms = 0.0
    """The most that the loop's own thread worked between two such callbacks, whoever else is on the machine."""
    ticks = 0


@asynccontextmanager
async def measured() -> AsyncIterator[Lateness]:
    """Measure the loop's lateness within the block; what lives before it costs the collector nothing meanwhile."""
    lateness = Lateness()
    gc.collect()
    gc.freeze()

    async def tick() -> None:
        due = time.perf_counter()
        while True:
            due, worked = time.perf_counter() + _TICK_S, time.thread_time()
            await asyncio.sleep(_TICK_S)
            late = (time.perf_counter() - due) * 1000
            lateness.worst_ms = max(lateness.worst_ms, late)
            busy = (time.thread_time() - worked) * 1000
            lateness.busiest_ms = max(lateness.busiest_ms, busy)
            lateness.ticks += 1

    ticker = asyncio.ensure_future(tick())
    await asyncio.sleep(0.005)
    lateness.worst_ms, lateness.busiest_ms, lateness.ticks = 0.0, 0.0, 0
    try:
        yield lateness
        await asyncio.sleep(0.002)
    finally:
        ticker.cancel()
        await asyncio.gather(ticker, return_exceptions=True)
        gc.unfreeze()
