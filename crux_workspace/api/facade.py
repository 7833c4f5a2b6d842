"""`Workspace`: what a program holds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from crux_workspace.api.core import WorkspaceCore
from crux_workspace.api.describe import describe
from crux_workspace.api.prompts import PromptMethods
from crux_workspace.api.runner import Runner
from crux_workspace.api.transaction import Transaction, TransactionRequest
from crux_workspace.api.versions import VersionMethods
from crux_workspace.api.view import WorkspaceView
from crux_workspace.api.watching import WatchMethods
from crux_workspace.engine.reads import TreeReads
from crux_workspace.errors import ErrorCode, InvalidInputError, StateError
from crux_workspace.model.files import GcReport, NamespacePage, Usage
from crux_workspace.model.labels import check_label
from crux_workspace.model.options import check_flags
from crux_workspace.model.paths import check_namespace, check_namespace_prefix
from crux_workspace.model.settings import Mount
from crux_workspace.operations import housekeeping, reading
from crux_workspace.operations.space import Space
from crux_workspace.storage.layout import partition_name

if TYPE_CHECKING:
    from crux_workspace.api.sync_facade import SyncWorkspace

__all__ = ["Workspace"]

_T = TypeVar("_T")


class Workspace(VersionMethods, WatchMethods, PromptMethods):
    """Files in a namespace: every change versioned, every call one commit.

    Make one with `workspace` or `open_workspace`. It belongs to the event loop of its first call. A view made by `for_namespace` or
    `acting_as` shares everything with the workspace it came from.
    """

    def __init__(
        self,
        core: WorkspaceCore,
        *,
        bound: str | None = None,
        actor: str | None = None,
        is_view: bool = False,
    ) -> None:
        self._core = core
        self._is_view = is_view
        self._runner = Runner(core, bound, actor)

    def __repr__(self) -> str:
        core, runner = self._core, self._runner
        mounts = ", ".join(mount.path for mount in core.router.mounts)
        return f"Workspace(id={core.workspace_id!r}, bound={runner.bound!r}, mounts=[{mounts}])"

    async def _tree(self, space: Space) -> TreeReads:
        return space.reads()

    def _as_workspace(self) -> Workspace:
        return self

    # -- what it is

    @property
    def id(self) -> str:
        """Id of the workspace."""
        return self._core.workspace_id

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """The mounts, by path."""
        return self._core.router.mounts

    @property
    def closed(self) -> bool:
        """Whether `aclose` was called."""
        return self._core.closed

    def describe(self) -> dict[str, object]:
        """Return what the workspace is, as plain data that JSON can hold: no I/O, no credentials, no name of a namespace.

        Returns:
            ``id``; ``namespace`` (``fixed``, ``computed`` or ``none``: how calls that name none find theirs); ``mounts`` (path, access,
            description, kind of source); ``tools`` (names of the generated tools); ``records`` (kind of store and its declared
            capabilities); ``assets`` (kind of store, ``inline_text_below_bytes``, ``accepts_binary``); ``retention`` (``ttl_ms``,
            ``log_ms``, ``asset_grace_ms``); ``limits``; ``versioning``. Of a view it is that of its workspace.

        Example:
            >>> ws.describe()["retention"]["ttl_ms"] is None
            True
        """
        return describe(self._core)

    # -- views

    def for_namespace(self, namespace: str) -> Workspace:
        """Return a view bound to a namespace; no I/O. Its calls take no ``namespace=``.

        Args:
            namespace: Name of the namespace, taken literally.

        Raises:
            InvalidInputError: A blank or oversized name, or this view is bound already (``INVALID_ARGUMENT``).
        """
        if self._runner.bound is not None:
            raise InvalidInputError("This view is bound to a namespace already.")
        return Workspace(
            self._core, bound=check_namespace(namespace), actor=self._runner.actor, is_view=True
        )

    def acting_as(self, actor: str) -> Workspace:
        """Return a view whose commits carry an actor; without one they carry the active span's run id, if any.

        Args:
            actor: Who acts, e.g. ``agent:writer``.

        Raises:
            InvalidInputError: A blank or oversized name (``INVALID_ARGUMENT``).
        """
        actor = check_label("actor", actor)
        return Workspace(self._core, bound=self._runner.bound, actor=actor, is_view=True)

    def at(self, moment: int | datetime, *, namespace: str | None = None) -> WorkspaceView:
        """Return a read-only view of the tree as of a commit.

        Args:
            moment: Sequence of a commit (0 is the empty tree), or an aware datetime: the last commit at or before it.
            namespace: Bind the view to this namespace.

        Returns:
            The view. It resolves at its first call, where a sequence beyond the newest is ``INVALID_ARGUMENT`` and a moment before
            the retained log ``COMMIT_NOT_FOUND``.

        Raises:
            InvalidInputError: A datetime without time zone (``INVALID_ARGUMENT``).
        """
        bound = self._runner.bound
        if namespace is not None:
            bound = self.for_namespace(namespace)._runner.bound
        return WorkspaceView(Runner(self._core, bound, None), moment)

    def as_sync(self) -> SyncWorkspace:
        """Return a blocking facade for other threads; calls run on the loop that owns this workspace.

        Raises:
            StateError: The process was forked since it was opened (``FORKED``), or no loop owns it yet (``WRONG_LOOP``).
        """
        from crux_workspace.api.sync_facade import SyncWorkspace

        self._core.check_process()
        loop = self._core.loop
        if loop is None:
            try:
                loop = self._core.loop = asyncio.get_running_loop()
            except RuntimeError:
                raise StateError(
                    "The workspace has no event loop yet; use open_workspace_sync, or call as_sync() on the loop.",
                    code=ErrorCode.WRONG_LOOP,
                ) from None
        return SyncWorkspace(self, loop)

    # -- transactions

    @overload
    def transaction(
        self,
        callback: None = None,
        *,
        max_attempts: int = 1,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> TransactionRequest[None]: ...

    @overload
    def transaction(
        self,
        callback: Callable[[Transaction], Awaitable[_T]],
        *,
        max_attempts: int = 1,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> TransactionRequest[_T]: ...

    @overload
    def transaction(
        self,
        callback: Callable[[Transaction], _T],
        *,
        max_attempts: int = 1,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> TransactionRequest[_T]: ...

    def transaction(
        self,
        callback: Callable[[Transaction], Any] | None = None,
        *,
        max_attempts: int = 1,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> TransactionRequest[Any]:
        """Make several changes one commit: ``async with ws.transaction() as tx``, or ``await ws.transaction(callback)``.

        The transaction reads the namespace as of its start plus its own writes. At the end all is committed, or nothing: when what
        it read or wrote changed meanwhile, on an exception, on cancellation, on a crash. Paths that it did not touch never conflict.

        Args:
            callback: Gets the transaction, sync or async; its result is the result.
            max_attempts: How often to run the callback when it meets a conflict.
            idempotency_key: A transaction with a known key applies nothing; kept 24 h.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            What to enter, or to await: the callback's result, or `Replayed` for a known key.

        Raises:
            ConflictError: Something it read or wrote changed (``TRANSACTION_CONFLICT``).
            StateError: Use after the end (``TRANSACTION_CLOSED``).
            LimitExceededError: A limit refuses the final state (``QUOTA_EXCEEDED``, ``COMMIT_TOO_LARGE``).

        Cost:
            1 read, 1 commit; and 1 read for each path

        Example:
            >>> async with ws.transaction() as tx:
            ...     await tx.write("/outputs/report.md", "# Report")
            ...     await tx.write("/outputs/data.csv", "a,b")
        """
        return TransactionRequest(self._runner, callback, max_attempts, idempotency_key, namespace)

    # -- upkeep

    async def usage(self, *, namespace: str | None = None) -> Usage:
        """Return what a namespace holds.

        Args:
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            Live bytes and files, versions and history; expired files do not count as live.

        Raises:
            StorageError: The store failed (``STORE_UNAVAILABLE``).

        Cost:
            2 reads

        Example:
            >>> (await ws.usage()).live_files
            1
        """

        async def call(space: Space) -> Usage:
            return await reading.usage(space)

        return await self._runner.run("usage", None, namespace, call)

    async def namespaces(
        self, prefix: str = "", *, limit: int = 100, cursor: str | None = None
    ) -> NamespacePage:
        """List the namespaces of this workspace id, in code point order. One exists from its first commit until it is dropped.

        Args:
            prefix: Only names that start with this, literally.
            limit: Most names of this page.
            cursor: Where the page before ended.

        Returns:
            Names, and the cursor of the next page.

        Raises:
            InvalidInputError: A bad option, or a foreign cursor (``INVALID_ARGUMENT``, ``INVALID_CURSOR``).

        Cost:
            1 read

        Example:
            >>> (await ws.namespaces()).names
            ['default']
        """
        check_namespace_prefix(prefix)
        core = self._core

        async def call() -> NamespacePage:
            return await housekeeping.list_namespaces(
                core.records, core.workspace_id, prefix, limit=limit, cursor=cursor
            )

        return await self._runner.run_unbound("namespaces", call)

    async def drop_namespace(self, name: str) -> None:
        """Remove a namespace whole and at once: files, history, log. Its assets are left to `gc` of that namespace.

        Args:
            name: The namespace; one that does not exist is no error.

        Raises:
            InvalidInputError: A blank or oversized name (``INVALID_ARGUMENT``).

        Cost:
            1 store call

        Example:
            >>> await ws.drop_namespace("thread:1")
        """
        partition = partition_name(self._core.workspace_id, check_namespace(name))

        async def call() -> None:
            await housekeeping.drop_partition(self._core.records, partition)

        await self._runner.run_unbound("drop_namespace", call)

    async def gc(self, dry_run: bool = True, *, namespace: str | None = None) -> GcReport:
        """Collect what nothing needs any more: expired files, surplus versions, released and orphaned assets, old log entries.

        What killed processes left of their uploads goes too.

        Args:
            dry_run: Only count.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            What was collected, or would be.

        Raises:
            StorageError: A store failed (``STORE_UNAVAILABLE``); what is left is collected next time.

        Cost:
            pages, 1 commit for each bounded step

        Example:
            >>> (await ws.gc()).dry_run
            True
        """

        async def call(space: Space) -> GcReport:
            check_flags(dry_run=dry_run)
            return await housekeeping.gc(space, dry_run=dry_run)

        return await self._runner.run("gc", None, namespace, call)

    # -- life

    async def aclose(self) -> None:
        """End its watches, wait for commits in flight, and close what was opened with the workspace; idempotent.

        Later calls are ``WORKSPACE_CLOSED``, on every view of it. A view opened nothing and closes nothing.
        """
        if not self._is_view:
            await self._core.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
