"""The future that a store answers a commit by."""

from __future__ import annotations

import asyncio
from typing import TypeVar

__all__ = ["PromptFuture"]

_T = TypeVar("_T")


class PromptFuture(asyncio.Future[_T]):
    """A future that wakes one who waits behind it in the same turn of the loop, where a callback would cost a turn of its own.

    `behind` is done (with None) as soon as this one has its result or exception; cancelling `behind` leaves this one as it is.
    """

    behind: asyncio.Future[None] | None = None

    def set_result(self, result: _T) -> None:
        """See `asyncio.Future.set_result`."""
        super().set_result(result)
        self._wake()

    def set_exception(self, exception: type | BaseException) -> None:
        """See `asyncio.Future.set_exception`."""
        super().set_exception(exception)
        self._wake()

    def _wake(self) -> None:
        if self.behind is not None and not self.behind.done():
            self.behind.set_result(None)
