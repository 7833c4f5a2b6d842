"""Handing events to callbacks: one after the other, each callback awaited, whatever it raises."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from crux_workspace.errors import StateError, WatchGapError
from crux_workspace.model.events import WatchError, WorkspaceChangeEvent

__all__ = ["Callbacks", "Deliverable", "EventCallback", "awaited"]

EventCallback = Callable[[WorkspaceChangeEvent], object]
"""Called with each event; what it returns is awaited if it can be."""

_log = logging.getLogger("crux_workspace")


@dataclass(slots=True, eq=False)
class _Subscription:
    callback: EventCallback
    failures: int = 0
    active: bool = True


class Deliverable(Protocol):
    """What callbacks are served from: a place in the log that moves forward."""

    stopped: bool

    async def next(self) -> WorkspaceChangeEvent | None:
        """Wait for the next event; None when stopped."""
        ...

    def settle(self) -> None:
        """The consumer is done with what it was given."""
        ...

    def give_back(self) -> None:
        """Deliver again what was given and not settled."""
        ...


class Callbacks:
    """The callbacks of one watch, and how they are served."""

    def __init__(self, report: Callable[[WatchError], Awaitable[bool]]) -> None:
        self._report = report
        self._subscriptions: list[_Subscription] = []

    def __bool__(self) -> bool:
        return bool(self._subscriptions)

    def add(self, callback: EventCallback) -> Callable[[], None]:
        """Serve this callback too; returns what ends it."""
        subscription = _Subscription(callback)
        self._subscriptions.append(subscription)

        def unsubscribe() -> None:
            subscription.active = False
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)

        return unsubscribe

    async def serve(self, opened: Callable[[], Awaitable[Deliverable | None]]) -> None:
        """Deliver until the stream is stopped or nobody is left."""
        try:
            stream = await opened()
            while stream is not None and self and await self._one(stream):
                pass
        except Exception as error:
            if not await self._report(WatchError(error, 1, 0)):
                _log.warning("a watch ended: %s", type(error).__name__)

    async def _one(self, stream: Deliverable) -> bool:
        try:
            event = await stream.next()
        except WatchGapError:
            _log.warning("events were lost to a watch whose errors nobody listens to")
            return True
        if event is None:
            return False
        if not self:
            stream.give_back()
            return False
        for subscription in list(self._subscriptions):
            if stream.stopped:
                return False
            if subscription.active:
                await self._call(subscription, event)
        stream.settle()
        return True

    async def _call(self, subscription: _Subscription, event: WorkspaceChangeEvent) -> None:
        failure: Exception
        try:
            await awaited(subscription.callback(event))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            failure = StateError("A watch callback was cancelled from within.")
        except Exception as error:
            failure = error
        else:
            subscription.failures = 0
            return
        subscription.failures += 1
        if not await self._report(WatchError(failure, subscription.failures, 0)):
            _log.warning("a watch callback raised %s", type(failure).__name__)


async def awaited(result: Any) -> None:  # noqa: ANN401 - what a callback returned
    """Wait for what a callback returned, if it can be waited for."""
    if inspect.isawaitable(result):
        await result
