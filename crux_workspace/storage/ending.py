"""The end of a store: begun once, and not given up because somebody stops waiting for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

__all__ = ["Ending"]


class Ending:
    """Closes once, in a task of its own: whoever is cancelled meanwhile only does not wait for the end."""

    __slots__ = ("_task",)

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    @property
    def has_begun(self) -> bool:
        """Whether somebody closes, or has closed."""
        return self._task is not None

    @property
    def is_over(self) -> bool:
        """Whether everything is closed."""
        return self._task is not None and self._task.done()

    async def reach(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait for the end, which the first caller begins; whoever closes again waits for the same one."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(close())
        await asyncio.shield(self._task)
