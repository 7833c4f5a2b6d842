"""The blocking facade: the same methods for code without an event loop."""

from __future__ import annotations

import asyncio
import functools
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, overload

from crux_workspace.api.blocking import Blocking, SyncReads, method
from crux_workspace.api.facade import Workspace
from crux_workspace.api.sync_tools import SyncContext, SyncInjection, SyncToolSet
from crux_workspace.api.sync_transaction import SyncTransaction, SyncTransactionRequest
from crux_workspace.api.sync_watch import SyncWatchHandle
from crux_workspace.api.transaction import TransactionRequest
from crux_workspace.api.view import WorkspaceView
from crux_workspace.events.watching import WatchHandle
from crux_workspace.model.options import check_callable
from crux_workspace.model.paths import PathLike
from crux_workspace.model.settings import CONTEXT_PRIORITY, Mount
from crux_workspace.model.transactions import Replayed

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


def _watcher(
    of: Callable[Concatenate[Any, _P], WatchHandle],
) -> Callable[Concatenate[Any, _P], SyncWatchHandle]:
    """Make the blocking form of a method that begins a watch."""

    @functools.wraps(of)
    def call(self: Blocking, /, *args: _P.args, **kwargs: _P.kwargs) -> SyncWatchHandle:
        async def begin() -> WatchHandle:
            return of(self._target, *args, **kwargs)

        return SyncWatchHandle(self._wait(begin()), self._wait)

    return call


class SyncView(SyncReads):
    """The blocking form of a view of the past."""

    def __init__(self, view: WorkspaceView, loop: asyncio.AbstractEventLoop) -> None:
        self._target = view
        self._loop = loop

    def __repr__(self) -> str:
        return f"Sync{self._target!r}"


class SyncWorkspace(SyncReads):
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

    write = method(Workspace.write)
    edit = method(Workspace.edit)
    append = method(Workspace.append)
    update = method(Workspace.update)
    set = method(Workspace.set)
    rename = method(Workspace.rename)
    move = method(Workspace.move)
    copy = method(Workspace.copy)
    delete = method(Workspace.delete)
    history = method(Workspace.history)
    diff = method(Workspace.diff)
    undo = method(Workspace.undo)
    redo = method(Workspace.redo)
    finalize = method(Workspace.finalize)
    withdraw = method(Workspace.withdraw)
    resolve = method(Workspace.resolve)
    log = method(Workspace.log)
    undo_commit = method(Workspace.undo_commit)
    watch = _watcher(Workspace.watch)
    cursor = method(Workspace.cursor)
    usage = method(Workspace.usage)
    namespaces = method(Workspace.namespaces)
    drop_namespace = method(Workspace.drop_namespace)
    gc = method(Workspace.gc)

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

    def as_tools(
        self,
        namespace: str | None = None,
        prefix: str | None = None,
        delete: bool | None = None,
        undo: bool | None = None,
        extra: Iterable[str] | None = None,
        *,
        read_before_write: bool | None = None,
    ) -> SyncToolSet:
        """Return tools over the workspace for a model, as `Workspace.as_tools` does; their calls wait."""
        tools = self._target.as_tools(
            namespace, prefix, delete, undo, extra, read_before_write=read_before_write
        )
        return SyncToolSet(tools, self._loop)

    def as_context(
        self,
        include: Sequence[PathLike] = (),
        max_inline_bytes: int | None = None,
        *,
        priority: int = CONTEXT_PRIORITY,
    ) -> SyncContext:
        """Return a description of the workspace for a prompt, as `Workspace.as_context` does; its text waits."""
        context = self._target.as_context(include, max_inline_bytes, priority=priority)
        return SyncContext(context, self._loop)

    def inject(self, input: Any = None, prompt_id: str | None = None) -> SyncInjection:  # noqa: ANN401
        """Return what the workspace adds to one prompt, as `Workspace.inject` does."""
        return SyncInjection.of(self._wait(self._target.inject(input, prompt_id)), self._loop)

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

    @overload
    def transaction(
        self,
        callback: None = None,
        *,
        max_attempts: int = 1,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> SyncTransactionRequest: ...

    @overload
    def transaction(
        self,
        callback: Callable[[SyncTransaction], _T],
        *,
        max_attempts: int = 1,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> _T | Replayed: ...

    def transaction(
        self,
        callback: Callable[[SyncTransaction], _T] | None = None,
        *,
        max_attempts: int = 1,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> SyncTransactionRequest | _T | Replayed:
        """Make several changes one commit: ``with sws.transaction() as tx``, or ``sws.transaction(callback)``.

        Args:
            callback: A plain function; gets the transaction, on the caller's own thread. Its result is the result.
            max_attempts: How often to run the callback when it meets a conflict.
            idempotency_key: A transaction with a known key applies nothing; kept 24 h.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            What to enter; with a callback its result, or `Replayed` for a known key.

        Raises:
            ConflictError: Something it read or wrote changed (``TRANSACTION_CONFLICT``).
            StateError: Use after the end, or on the thread of the workspace's loop (``TRANSACTION_CLOSED``, ``WRONG_THREAD``).
            LimitExceededError: A limit refuses the final state (``QUOTA_EXCEEDED``, ``COMMIT_TOO_LARGE``).

        Cost:
            1 read, 1 commit; and 1 read for each path

        Example:
            >>> with open_workspace_sync("memory://") as sws, sws.transaction() as tx:
            ...     tx.write("/outputs/report.md", "# Report")
        """
        inner: TransactionRequest[object] = TransactionRequest(
            self._target._runner, None, max_attempts, idempotency_key, namespace
        )
        request = SyncTransactionRequest(inner, self._loop)
        if callback is None:
            return request
        check_callable("callback", callback)
        return request.run(callback)

    def close(self) -> None:
        """Close what was opened with this object: the workspace and the loop of `open_workspace_sync`; idempotent.

        A facade from `Workspace.as_sync`, or a view, opened nothing and closes nothing.
        """
        if self._owned is None or self._loop.is_closed() or self._process != os.getpid():
            return
        self._wait(self._target.aclose())
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
