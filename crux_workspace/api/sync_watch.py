"""The blocking form of a watch."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from crux_workspace.errors import InvalidInputError
from crux_workspace.events.delivery import EventCallback
from crux_workspace.events.watching import WatchHandle
from crux_workspace.model.events import WorkspaceChangeEvent

__all__ = ["SyncWatchHandle"]

_T = TypeVar("_T")


class _Wait(Protocol):
    def __call__(self, work: Coroutine[Any, Any, _T], /) -> _T: ...


class SyncWatchHandle:
    """A running watch for blocking code: a context manager and a plain iterator.

    Waiting for the next event blocks the calling thread only. `stop` from another thread ends the iteration.
    """

    def __init__(self, handle: WatchHandle, wait: _Wait) -> None:
        """Use `SyncWorkspace.watch`."""
        self._handle = handle
        self._wait = wait

    def __repr__(self) -> str:
        return f"Sync{self._handle!r}"

    @property
    def stopped(self) -> bool:
        """Whether the watch has ended."""
        return self._handle.stopped

    @property
    def cursor(self) -> str | None:
        """The place behind everything that is done with; None until it is known."""
        return self._handle.cursor

    def ready(self) -> None:
        """Wait until the watch knows where it begins; see `WatchHandle.ready`."""
        self._wait(self._handle.ready())

    def stop(self) -> None:
        """End the watch; idempotent."""
        if not self._handle.stopped:
            self._wait(self._handle.stop())

    def on(self, callback: EventCallback) -> Callable[[], None]:
        """Call `callback` with each event, in a worker thread, where blocking calls are allowed; see `WatchHandle.on`.

        Raises:
            InvalidInputError: It cannot be called (``INVALID_ARGUMENT``).
        """
        if not callable(callback):
            raise InvalidInputError("callback must be callable.")

        async def call(event: WorkspaceChangeEvent) -> None:
            result = await asyncio.to_thread(callback, event)
            if inspect.isawaitable(result):
                await result

        async def subscribe() -> Callable[[], None]:
            return self._handle.on(call)

        leave = self._wait(subscribe())

        async def unsubscribe() -> None:
            leave()

        def end() -> None:
            self._wait(unsubscribe())

        return end

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> WorkspaceChangeEvent:
        async def step() -> WorkspaceChangeEvent | None:
            return await anext(self._handle, None)

        event = self._wait(step())
        if event is None:
            raise StopIteration
        return event

    def __enter__(self) -> Self:
        try:
            self.ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
