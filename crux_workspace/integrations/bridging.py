"""Calling a workspace from wherever a framework runs: on its loop, on another one, or in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from crux_workspace.api.facade import Workspace
from crux_workspace.api.sync_facade import SyncWorkspace
from crux_workspace.errors import ErrorCode, InvalidInputError, StateError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Bridge"]

_T = TypeVar("_T")


class Bridge:
    """Runs coroutines on the loop that a workspace belongs to."""

    def __init__(self, workspace: Workspace | SyncWorkspace) -> None:
        given: object = workspace
        if isinstance(given, SyncWorkspace):
            self.ws: Workspace = given._target
            self._loop: asyncio.AbstractEventLoop | None = given._loop
        elif isinstance(given, Workspace):
            self.ws = given
            self._loop = given._core.loop
        else:
            raise InvalidInputError(
                f"{type(given).__name__} is no workspace.", details={"option": "workspace"}
            )

    async def awaited(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Await work, on the workspace's loop also when another one runs here."""
        self.ws._core.check_process()
        running = asyncio.get_running_loop()
        loop = self._loop or self.ws._core.loop or running
        if loop is running:
            return await work()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), loop))

    def waited(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Wait for work from a thread that does not run the workspace's loop.

        Raises:
            StateError: On the loop's own thread it would wait for itself (``WRONG_THREAD``), there is no loop (``WRONG_LOOP``), or
                the process was forked since the workspace was opened (``FORKED``).
        """
        self.ws._core.check_process()
        loop = self._loop or self.ws._core.loop
        if loop is None:
            raise StateError(
                "The workspace has no event loop yet; use open_workspace_sync, or call it once on its loop.",
                code=ErrorCode.WRONG_LOOP,
            )
        return SyncWorkspace(self.ws, loop)._wait(work())
