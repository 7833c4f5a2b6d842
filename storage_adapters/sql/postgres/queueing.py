"""Places that are taken in turn, and waited for only so long.

Unlike a lock of asyncio under a timeout it does not mind whose task waits, so a commit that its caller has left can go on waiting in
another one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ["Places", "given_up"]


class Places:
    """A number of places; who finds none free gets one in the order in which they came, or `error` after `wait_s`."""

    __slots__ = ("__weakref__", "_error", "_free", "_wait_s", "_waiting")

    def __init__(self, places: int, wait_s: float, error: Callable[[], Exception]) -> None:
        self._free = places
        self._wait_s = wait_s
        self._error = error
        self._waiting: deque[asyncio.Future[None]] = deque()

    def try_enter(self) -> bool:
        """Take a place if one is free."""
        if not self._free:
            return False
        self._free -= 1
        return True

    async def enter(self) -> None:
        """Take a place; whoever has one leaves it by `leave`."""
        if self.try_enter():
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        timer = given_up(waiter, self._wait_s, self._error)
        try:
            await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.leave()  # it was given in the step in which its owner was cancelled
            waiter.cancel()
            raise
        finally:
            timer.cancel()

    def leave(self) -> None:
        """Hand the place to the next who waits."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._free += 1


def given_up(
    waiter: asyncio.Future[Any], wait_s: float, error: Callable[[], Exception]
) -> asyncio.TimerHandle:
    """Fail a future that is not done after a while."""

    def fail() -> None:
        if not waiter.done():
            waiter.set_exception(error())

    return asyncio.get_running_loop().call_later(wait_s, fail)
