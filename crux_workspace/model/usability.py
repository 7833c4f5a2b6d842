"""What belongs to one process and one event loop, until it is closed."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field

from crux_workspace.errors import ErrorCode, StateError

__all__ = ["Usable"]


@dataclass(eq=False, slots=True, kw_only=True)
class Usable:
    """Refuses calls that cannot be served."""

    closed: bool = False
    loop: asyncio.AbstractEventLoop | None = None
    """The loop of the first call; None before it."""
    process: int = field(default_factory=os.getpid)

    def _named(self) -> str:
        """Return what an error calls it."""
        return "The workspace"

    def check_process(self) -> None:
        """Refuse the use in a forked child: the loop that would do the work is not driven there.

        Raises:
            StateError: ``FORKED``.
        """
        if self.process != os.getpid():
            raise StateError(
                "This workspace was opened before the process forked and cannot be used in the child; open it again there.",
                code=ErrorCode.FORKED,
            )

    def enter(self) -> None:
        """Refuse a call that cannot be served: after closing, in a forked child, on another loop.

        Raises:
            StateError: ``WORKSPACE_CLOSED``, ``FORKED`` or ``WRONG_LOOP``.
        """
        if self.closed:
            raise StateError(
                f"{self._named()} is closed; open it again.", code=ErrorCode.WORKSPACE_CLOSED
            )
        self.check_process()
        loop = asyncio.get_running_loop()
        if self.loop is None:
            self.loop = loop
        elif self.loop is not loop:
            raise StateError(
                "This workspace belongs to another event loop; open one per loop, or use as_sync() from threads.",
                code=ErrorCode.WRONG_LOOP,
            )
