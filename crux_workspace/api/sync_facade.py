"""The blocking facade: the same methods for code without an event loop."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from datetime import datetime
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from crux_workspace.api.facade import Workspace
from crux_workspace.api.reading import ReadMethods
from crux_workspace.api.sync_watch import SyncWatchHandle
from crux_workspace.api.view import WorkspaceView
from crux_workspace.errors import ErrorCode, StateError
from crux_workspace.events.watching import WatchHandle
from crux_workspace.model.settings import Mount

__all__ = ["SyncView", "SyncWorkspace"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(
            target=self.loop.run_forever, name="crux-workspace-loop", daemon=True
        )
        self.thread.start()

    def close(self) -> None:
        """Stop the loop, wait for its thread, and close it."""

        async def wind_down() -> None:
            await self.loop.shutdown_asyncgens()
            await self.loop.shutdown_default_executor()

        asyncio.run_coroutine_threadsafe(wind_down(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class _Blocking:
    """Runs coroutines on a loop that another thread drives."""

    _target: Any
    _loop: asyncio.AbstractEventLoop

    def _wait(self, work: Coroutine[Any, Any, _T]) -> _T:
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            work.close()
            raise StateError(
                "A blocking call on the thread of the workspace's own loop would wait for itself; await the workspace instead.",
                code=ErrorCode.WRONG_THREAD,
            )
        if self._loop.is_closed():
            work.close()
            raise StateError(
                "The event loop of this workspace is closed.", code=ErrorCode.WORKSPACE_CLOSED
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


def _method(
    of: Callable[Concatenate[Any, _P], Coroutine[Any, Any, _T]],
) -> Callable[Concatenate[Any, _P], _T]:
    """Make the blocking form of an async method."""

    @functools.wraps(of)
    def call(self: _Blocking, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return self._wait(of(self._target, *args, **kwargs))

    return call


def _iterator(
    of: Callable[Concatenate[Any, _P], AsyncIterator[_T]],
) -> Callable[Concatenate[Any, _P], Iterator[_T]]:
    """Make the plain iterator of an async one."""

    @functools.wraps(of)
    def call(self: _Blocking, /, *args: _P.args, **kwargs: _P.kwargs) -> Iterator[_T]:
        return self._iterate(of(self._target, *args, **kwargs))

    return call


def _watcher(
    of: Callable[Concatenate[Any, _P], WatchHandle],
) -> Callable[Concatenate[Any, _P], SyncWatchHandle]:
    """Make the blocking form of a method that begins a watch."""

    @functools.wraps(of)
    def call(self: _Blocking, /, *args: _P.args, **kwargs: _P.kwargs) -> SyncWatchHandle:
        async def begin() -> WatchHandle:
            return of(self._target, *args, **kwargs)

        return SyncWatchHandle(self._wait(begin()), self._wait)

    return call


class _SyncReads(_Blocking):
    list = _method(ReadMethods.list)
    walk = _iterator(ReadMethods.walk)
    read = _method(ReadMethods.read)
    read_text = _method(ReadMethods.read_text)
    read_bytes = _method(ReadMethods.read_bytes)
    read_json = _method(ReadMethods.read_json)
    read_many = _method(ReadMethods.read_many)
    stream = _iterator(ReadMethods.stream)
    exists = _method(ReadMethods.exists)
    is_dir = _method(ReadMethods.is_dir)
    stat = _method(ReadMethods.stat)
    grep = _method(ReadMethods.grep)
    artifacts = _method(ReadMethods.artifacts)


class SyncView(_SyncReads):
    """The blocking form of a view of the past."""

    def __init__(self, view: WorkspaceView, loop: asyncio.AbstractEventLoop) -> None:
        self._target = view
        self._loop = loop

    def __repr__(self) -> str:
        return f"Sync{self._target!r}"


class SyncWorkspace(_SyncReads):
    """A workspace for blocking code: the same method names, `stream`, `walk` and `watch` as plain iterators.

    Calls may come from any thread but the one that drives the workspace's loop (``WRONG_THREAD``).
    """

    def __init__(
        self,
        workspace: Workspace,
        loop: asyncio.AbstractEventLoop,
        *,
        owned: LoopThread | None = None,
    ) -> None:
        self._target: Workspace = workspace
        self._loop = loop
        self._owned = owned

    def __repr__(self) -> str:
        return f"Sync{self._target!r}"

    write = _method(Workspace.write)
    edit = _method(Workspace.edit)
    append = _method(Workspace.append)
    update = _method(Workspace.update)
    set = _method(Workspace.set)
    rename = _method(Workspace.rename)
    move = _method(Workspace.move)
    copy = _method(Workspace.copy)
    delete = _method(Workspace.delete)
    history = _method(Workspace.history)
    diff = _method(Workspace.diff)
    undo = _method(Workspace.undo)
    redo = _method(Workspace.redo)
    finalize = _method(Workspace.finalize)
    withdraw = _method(Workspace.withdraw)
    resolve = _method(Workspace.resolve)
    log = _method(Workspace.log)
    undo_commit = _method(Workspace.undo_commit)
    watch = _watcher(Workspace.watch)
    cursor = _method(Workspace.cursor)
    usage = _method(Workspace.usage)
    namespaces = _method(Workspace.namespaces)
    drop_namespace = _method(Workspace.drop_namespace)
    gc = _method(Workspace.gc)

    @property
    def id(self) -> str:
        """Id of the workspace."""
        return self._target.id

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """The mounts, by path."""
        return self._target.mounts

    @property
    def closed(self) -> bool:
        """Whether the workspace was closed."""
        return self._target.closed

    def describe(self) -> dict[str, object]:
        """Return what the workspace is, as plain data."""
        return self._target.describe()

    def for_namespace(self, namespace: str) -> SyncWorkspace:
        """Return a view bound to a namespace."""
        return SyncWorkspace(self._target.for_namespace(namespace), self._loop)

    def acting_as(self, actor: str) -> SyncWorkspace:
        """Return a view whose commits carry an actor."""
        return SyncWorkspace(self._target.acting_as(actor), self._loop)

    def at(self, moment: int | datetime, *, namespace: str | None = None) -> SyncView:
        """Return a read-only view of the tree as of a commit."""
        return SyncView(self._target.at(moment, namespace=namespace), self._loop)

    def close(self) -> None:
        """Close the workspace, and the loop if it was made for it; idempotent."""
        if self._loop.is_closed():
            return
        self._wait(self._target.aclose())
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
