"""What every blocking form is made of: coroutines run on a loop that another thread drives."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from weakref import WeakKeyDictionary

from crux_workspace.api.reading import ReadMethods
from crux_workspace.errors import ErrorCode, StateError

__all__ = ["Blocking", "SyncReads", "iterator", "method"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


_PROCESSES: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()
"""The process that drives each loop: a forked child has the loop too, and nobody who drives it."""


class Blocking:
    """Runs coroutines on a loop that another thread drives."""

    _target: Any
    _loop: asyncio.AbstractEventLoop
    _process: int

    def __new__(
        cls, _target: object, loop: asyncio.AbstractEventLoop, *_: object, **__: object
    ) -> Self:
        """Remember which process the loop's thread belongs to: a fork leaves it behind, for what is made there too."""
        made = super().__new__(cls)
        made._process = _PROCESSES.setdefault(loop, os.getpid())
        return made

    def _refuse(self, work: Coroutine[Any, Any, _T], message: str, code: ErrorCode) -> StateError:
        work.close()
        return StateError(message, code=code)

    def _wait(self, work: Coroutine[Any, Any, _T]) -> _T:
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if self._process != os.getpid():
            raise self._refuse(
                work,
                "This workspace was opened before the process forked and cannot be used in the child; open it again there.",
                ErrorCode.FORKED,
            )
        if running is self._loop:
            raise self._refuse(
                work,
                "A blocking call on the thread of the workspace's own loop would wait for itself; await the workspace instead.",
                ErrorCode.WRONG_THREAD,
            )
        if self._loop.is_closed():
            raise self._refuse(
                work, "The event loop of this workspace is closed.", ErrorCode.WORKSPACE_CLOSED
            )
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _iterate(self, items: AsyncIterator[_T]) -> Iterator[_T]:
        end = object()

        async def step() -> object:
            return await anext(items, end)

        async def stop() -> None:
            close = getattr(items, "aclose", None)
            if close is not None:
                await close()

        try:
            while (item := self._wait(step())) is not end:
                yield item  # type: ignore[misc]
        finally:
            self._wait(stop())


def method(
    of: Callable[Concatenate[Any, _P], Coroutine[Any, Any, _T]],
) -> Callable[Concatenate[Any, _P], _T]:
    """Make the blocking form of an async method."""

    @functools.wraps(of)
    def call(self: Blocking, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return self._wait(of(self._target, *args, **kwargs))

    return call


def iterator(
    of: Callable[Concatenate[Any, _P], AsyncIterator[_T]],
) -> Callable[Concatenate[Any, _P], Iterator[_T]]:
    """Make the plain iterator of an async one."""

    @functools.wraps(of)
    def call(self: Blocking, /, *args: _P.args, **kwargs: _P.kwargs) -> Iterator[_T]:
        return self._iterate(of(self._target, *args, **kwargs))

    return call


class SyncReads(Blocking):
    """The reading verbs, blocking."""

    list = method(ReadMethods.list)
    walk = iterator(ReadMethods.walk)
    read = method(ReadMethods.read)
    read_text = method(ReadMethods.read_text)
    read_bytes = method(ReadMethods.read_bytes)
    read_json = method(ReadMethods.read_json)
    read_many = method(ReadMethods.read_many)
    stream = iterator(ReadMethods.stream)
    exists = method(ReadMethods.exists)
    is_dir = method(ReadMethods.is_dir)
    stat = method(ReadMethods.stat)
    grep = method(ReadMethods.grep)
    artifacts = method(ReadMethods.artifacts)
