"""`Transaction`: several changes as one commit, all or nothing."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator
from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar

from crux_workspace.api.publishing import PublishMethods
from crux_workspace.api.runner import Runner
from crux_workspace.engine.reads import TreeReads
from crux_workspace.errors import (
    ConflictError,
    ErrorCode,
    InvalidInputError,
    StateError,
    WorkspaceError,
)
from crux_workspace.model.files import IfVersion, WorkspaceEntry
from crux_workspace.model.labels import check_label
from crux_workspace.model.options import check_callable, needed_number
from crux_workspace.model.paths import PathLike, check_namespace
from crux_workspace.model.pausing import before_another_attempt
from crux_workspace.model.transactions import Replayed
from crux_workspace.operations import transacting
from crux_workspace.operations.space import Options, Space
from crux_workspace.operations.transacting import StagedSpace
from crux_workspace.telemetry import OperationSpan

__all__ = ["Transaction", "TransactionRequest"]

_T = TypeVar("_T")


class _StagedRunner(Runner):
    """Runs the verbs of a transaction over its staged space."""

    __slots__ = ("staged",)

    def __init__(self, live: Runner, staged: StagedSpace, within: OperationSpan) -> None:
        super().__init__(live.core, live.bound, live.actor)
        self.staged = staged
        self.within = within

    def _space(self, namespace: str | None) -> Space:
        self.core.enter()
        if namespace is not None and check_namespace(namespace) != self.staged.ports.namespace:
            raise InvalidInputError(
                "A transaction belongs to one namespace; begin another one for the other namespace.",
                details={"option": "namespace"},
            )
        self.staged.check_open()
        return self.staged


class Transaction(PublishMethods):
    """Changes that are staged privately and committed together.

    It reads the namespace as of its start plus its own writes. Version numbers are those that the commit gives; results carry no
    commit yet. Use after the end is ``TRANSACTION_CLOSED``.
    """

    replayed: Replayed | None = None
    """Set when the idempotency key was known: nothing was applied, this is what its commit was."""
    committed: Replayed | None = None
    """The commit, once there is one."""
    verb: str = "transaction"
    """What the log shows as the commit's verb; may be set before the end where there is no idempotency key."""

    def __init__(self, runner: _StagedRunner) -> None:
        self._runner = runner
        self._staged = runner.staged

    def __repr__(self) -> str:
        state = "open" if self._staged.open else "ended"
        return f"Transaction({state}, paths={len(self._staged.tree.files)})"

    async def _tree(self, space: Space) -> TreeReads:
        assert isinstance(space, StagedSpace)
        return space.reads()

    async def copy(
        self,
        src: PathLike,
        dst: PathLike,
        *,
        overwrite: bool = False,
        to_namespace: str | None = None,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceEntry:
        """Copy as `Workspace.copy` does, within the transaction's namespace.

        Args:
            src: A file or a directory.
            dst: Where the copy is to be.
            overwrite: Append a version to a file that is there.
            to_namespace: Refused: a transaction belongs to one namespace.
            if_version: The destination must be at this version (0: no file), or be this very file and version.
            idempotency_key: Refused: give it to the transaction.
            namespace: Only the transaction's own.

        Returns:
            The copy.

        Raises:
            InvalidInputError: Another namespace, or an idempotency key (``INVALID_ARGUMENT``).
        """
        if to_namespace is not None:
            raise InvalidInputError(
                "A transaction belongs to one namespace; copy to another one outside of it.",
                details={"option": "to_namespace"},
            )
        return await super().copy(
            src,
            dst,
            overwrite=overwrite,
            if_version=if_version,
            idempotency_key=idempotency_key,
            namespace=namespace,
        )

    async def delete(
        self,
        path: PathLike,
        *,
        recursive: bool = False,
        purge: bool = False,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> None:
        """Delete as `Workspace.delete` does; a purge cannot be undone and is refused here.

        Args:
            path: A file or a directory.
            recursive: Needed for a directory.
            purge: Refused.
            if_version: The head must be this version, or this very file and version.
            idempotency_key: Refused: give it to the transaction.
            namespace: Only the transaction's own.

        Raises:
            InvalidInputError: A purge, another namespace, or an idempotency key (``INVALID_ARGUMENT``).
        """
        if purge:
            raise InvalidInputError(
                "A purge erases for good and in several steps; call it outside of the transaction.",
                details={"option": "purge"},
            )
        await super().delete(
            path,
            recursive=recursive,
            if_version=if_version,
            idempotency_key=idempotency_key,
            namespace=namespace,
        )

    def transaction(self, *_: object, **__: object) -> NoReturn:
        """Refuse: a transaction does not hold another one.

        Raises:
            InvalidInputError: Always (``INVALID_ARGUMENT``).
        """
        raise InvalidInputError(
            "A transaction cannot hold another one; go on with this one, or begin the other on the workspace.",
        )

    async def _commit(self, idempotency_key: str | None) -> None:
        if idempotency_key is None:
            self._staged.verb = check_label("verb", self.verb)
        done = await transacting.apply(self._staged, idempotency_key)
        if done is None:
            return
        self.committed = done.commit
        if not done.fresh:
            self.replayed = done.commit

    async def _rollback(self) -> None:
        await self._staged.close()


class TransactionRequest(Generic[_T]):
    """What `Workspace.transaction` returns: enter it with ``async with``, or await it when it has a callback."""

    def __init__(
        self,
        runner: Runner,
        callback: Callable[[Transaction], _T | Awaitable[_T]] | None,
        max_attempts: int,
        idempotency_key: str | None,
        namespace: str | None,
    ) -> None:
        needed_number("max_attempts", max_attempts)
        if callback is not None:
            check_callable("callback", callback)
        Options(idempotency_key)
        self._runner = runner
        self._callback = callback
        self._max_attempts = max_attempts
        self._key = idempotency_key
        self._namespace = namespace
        self._tx: Transaction | None = None
        self._span: OperationSpan | None = None

    async def begin(self) -> Transaction | Replayed:
        """Begin, or answer a known key; whoever begins says by `close` when it is over."""
        return await self._begin(self._key)

    async def _begin(self, key: str | None) -> Transaction | Replayed:
        if self._span is None:
            self._span = self._runner.open("transaction")

        async def call(space: Space) -> StagedSpace | Replayed:
            return await transacting.begin(space, key)

        begun = await self._runner.run_in(self._span, self._namespace, call)
        if isinstance(begun, Replayed):
            return begun
        return Transaction(_StagedRunner(self._runner, begun, self._span))

    def close(self, error: BaseException | None) -> None:
        """Say that it is over, all attempts included: done, failed, or given up for a reason of the caller's own."""
        span, self._span = self._span, None
        if span is None:
            return
        if error is None:
            span.finish(is_transfer=False)
        elif isinstance(error, WorkspaceError):
            span.abort(error)
        else:
            span.cancel()

    async def __aenter__(self) -> Transaction:
        if self._callback is not None:
            raise InvalidInputError("Await a transaction that has a callback; do not enter it.")
        if self._tx is not None:
            raise StateError(
                "The transaction was entered before; begin another one.",
                code=ErrorCode.TRANSACTION_CLOSED,
            )
        try:
            begun = await self.begin()
            if isinstance(begun, Replayed):
                fresh = await self._begin(None)
                assert isinstance(fresh, Transaction)
                fresh.replayed = begun
                begun = fresh
        except BaseException as error:
            self.close(error)
            raise
        self._tx = begun
        return begun

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._tx is not None
        try:
            await self.end(self._tx, failed=error is not None)
        except BaseException as failure:
            self.close(failure)
            raise
        self.close(error)

    async def end(
        self, tx: Transaction, *, failed: bool, idempotency_key: str | None = None
    ) -> None:
        """Commit, or when something failed or the key was known, drop what was staged; the key may come as late as now."""
        if failed or tx.replayed is not None:
            await tx._rollback()
            return

        assert self._span is not None
        handed_over = False

        async def call() -> None:
            nonlocal handed_over
            handed_over = True
            await tx._commit(self._key or idempotency_key)

        try:
            await self._runner.finish_in(self._span, call)
        finally:
            if not handed_over:
                await tx._rollback()

    def __await__(self) -> Generator[Any, None, _T | Replayed]:
        return self._run().__await__()

    async def _run(self) -> _T | Replayed:
        if self._callback is None:
            raise InvalidInputError(
                "Enter the transaction with 'async with', or give it a callback."
            )
        try:
            result = await self._tried(self._callback)
        except BaseException as error:
            self.close(error)
            raise
        self.close(None)
        return result

    async def _tried(self, callback: Callable[[Transaction], _T | Awaitable[_T]]) -> _T | Replayed:
        for attempt in range(1, self._max_attempts + 1):
            try:
                return await self._attempt(callback)
            except ConflictError as conflict:
                await self.pause(conflict, attempt)
        raise AssertionError("unreachable")

    async def pause(self, conflict: ConflictError, attempt: int) -> None:
        """Wait before the next attempt; when there is to be none, raise the conflict."""
        await before_another_attempt(conflict, attempt, self._max_attempts)

    async def _attempt(
        self, callback: Callable[[Transaction], _T | Awaitable[_T]]
    ) -> _T | Replayed:
        tx = await self.begin()
        if isinstance(tx, Replayed):
            return tx
        try:
            result = callback(tx)
            if inspect.isawaitable(result):
                result = await result
        except BaseException:
            await tx._rollback()
            raise
        await self.end(tx, failed=False)
        return result if tx.replayed is None else tx.replayed
