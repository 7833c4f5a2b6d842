"""An upload whose bytes come from somebody else's stream, and which ends well when that does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

__all__ = ["Abandoned", "feed"]

_GRACE_S = 5.0


class Abandoned(Exception):
    """Ends an upload that will not be finished, so that what it stored is removed."""


async def feed(
    chunks: AsyncIterator[bytes], upload: Callable[[AsyncIterator[bytes]], Awaitable[object]]
) -> None:
    """Upload chunks in a task of its own, at most one ahead.

    A stream that breaks, or a caller that is cancelled, does not cancel the upload, which would leave its parts behind: it makes
    the upload fail, and waits for it for some seconds.
    """
    queue: asyncio.Queue[bytes | Abandoned | None] = asyncio.Queue(1)

    async def taken() -> AsyncIterator[bytes]:
        while (item := await queue.get()) is not None:
            if isinstance(item, Abandoned):
                raise item
            yield item

    async def run() -> None:
        await upload(taken())

    task = asyncio.ensure_future(run())
    try:
        async for chunk in chunks:
            await _put(queue, chunk, task)
        await _put(queue, None, task)
        await asyncio.shield(task)
    except BaseException:
        if not task.done():
            while not queue.empty():
                queue.get_nowait()
            queue.put_nowait(Abandoned())
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task], timeout=_GRACE_S)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise


async def _put(
    queue: asyncio.Queue[bytes | Abandoned | None],
    item: bytes | None,
    task: asyncio.Future[None],
) -> None:
    """Hand an item over; raises what ended the upload meanwhile."""
    handing = asyncio.ensure_future(queue.put(item))
    try:
        await asyncio.wait([handing, task], return_when=asyncio.FIRST_COMPLETED)
    finally:
        handing.cancel()
    if task.done():
        task.result()
