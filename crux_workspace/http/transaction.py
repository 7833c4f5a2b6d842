"""`HttpTransaction`: several changes over HTTP as one commit, all or nothing."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator
from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar

from crux_workspace.errors import (
    ConflictError,
    ErrorCode,
    InvalidInputError,
    PathNotFoundError,
    StateError,
)
from crux_workspace.http import decoding
from crux_workspace.http.calling import Caller
from crux_workspace.http.staging import StagedCaller, begin
from crux_workspace.http.writing import HttpWrites
from crux_workspace.model.files import IfVersion, WorkspaceEntry, WorkspaceFile
from crux_workspace.model.labels import check_label
from crux_workspace.model.options import check_callable, needed_number
from crux_workspace.model.paths import PathLike
from crux_workspace.model.pausing import before_another_attempt
from crux_workspace.model.transactions import Replayed

__all__ = ["HttpTransaction", "HttpTransactionRequest"]

_T = TypeVar("_T")


class HttpTransaction(HttpWrites):
    """Changes that the service stages privately and commits together, as `Transaction` does.

    It reads the namespace as of its start plus its own writes. The service holds it open between the calls, and drops it when it is
    left alone for a minute; a service that has forgotten it answers ``TRANSACTION_CONFLICT``, and nothing is applied.
    """

    replayed: Replayed | None = None
    """Set when the idempotency key was known: nothing was applied, this is what its commit was."""
    committed: Replayed | None = None
    """The commit, once there is one."""
    verb: str = "transaction"
    """What the log shows as the commit's verb; may be set before the end where there is no idempotency key."""

    _caller: StagedCaller

    def __init__(self, caller: StagedCaller) -> None:
        """Use `HttpWorkspace.transaction`."""
        self._caller = caller

    def __repr__(self) -> str:
        return f"HttpTransaction({'open' if self._caller.open else 'ended'})"

    async def _updated(
        self,
        path: str,
        new: dict[str, Any],
        expected: int | str | None,
        namespace: str | None,
        key: str | None,
    ) -> WorkspaceFile | None:
        """Write the new value with the attributes that the file has: nobody else changes it inside of a transaction."""
        if not new:
            self._caller.key_headers(key)  # refuses it
        file = await self.stat(path, namespace=namespace)
        if file is None:
            raise PathNotFoundError(f"There is no file at {path}.", details={"path": path})
        return await self.write(
            path,
            new["value"],
            mime_type=file.mime_type,
            metadata=file.metadata,
            namespace=namespace,
        )

    async def _judge(self, path: str, expected: int | str | None, namespace: str | None) -> None:
        """Let the service say why a file is not the one to change: a change of no attribute is refused for the same reason."""
        arguments = {"path": path, "if_version": expected}
        await self._change("set", arguments, namespace, None, decoding.file)

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
        """Copy as `HttpWorkspace.copy` does, within the transaction's namespace.

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
        """Delete as `HttpWorkspace.delete` does; a purge cannot be undone and is refused here.

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
        """Refuse: a transaction does not hold another one (``INVALID_ARGUMENT``)."""
        raise InvalidInputError(
            "A transaction cannot hold another one; go on with this one, or begin the other on the workspace.",
        )

    async def _commit(self) -> None:
        ended = await self._caller.commit_all(self.verb)
        self.committed = ended.commit
        if ended.replayed:
            self.replayed = ended.commit

    async def _rollback(self) -> None:
        if self._caller.open:
            await self._caller.drop()


class HttpTransactionRequest(Generic[_T]):
    """What `HttpWorkspace.transaction` returns: enter it with ``async with``, or await it when it has a callback."""

    def __init__(
        self,
        caller: Caller,
        callback: Callable[[HttpTransaction], _T | Awaitable[_T]] | None,
        max_attempts: int,
        idempotency_key: str | None,
        namespace: str | None,
    ) -> None:
        needed_number("max_attempts", max_attempts)
        if callback is not None:
            check_callable("callback", callback)
        if idempotency_key is not None:
            check_label("idempotency_key", idempotency_key)
        self._caller = caller
        self._callback = callback
        self._max_attempts = max_attempts
        self._key = idempotency_key
        self._namespace = namespace
        self._tx: HttpTransaction | None = None

    async def _begin(self) -> HttpTransaction:
        begun = await begin(self._caller, self._namespace, self._key)
        tx = HttpTransaction(begun.caller)
        tx.replayed = begun.replayed
        return tx

    async def __aenter__(self) -> HttpTransaction:
        if self._callback is not None:
            raise InvalidInputError("Await a transaction that has a callback; do not enter it.")
        if self._tx is not None:
            raise StateError(
                "The transaction was entered before; begin another one.",
                code=ErrorCode.TRANSACTION_CLOSED,
            )
        self._tx = await self._begin()
        return self._tx

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._tx is not None
        await _end(self._tx, failed=error is not None)

    def __await__(self) -> Generator[Any, None, _T | Replayed]:
        return self._run().__await__()

    async def _run(self) -> _T | Replayed:
        if self._callback is None:
            raise InvalidInputError(
                "Enter the transaction with 'async with', or give it a callback."
            )
        for attempt in range(1, self._max_attempts + 1):
            try:
                return await self._attempt(self._callback)
            except ConflictError as conflict:
                await before_another_attempt(conflict, attempt, self._max_attempts)
        raise AssertionError("unreachable")

    async def _attempt(
        self, callback: Callable[[HttpTransaction], _T | Awaitable[_T]]
    ) -> _T | Replayed:
        tx = await self._begin()
        if tx.replayed is not None:
            await tx._rollback()
            return tx.replayed
        try:
            result = callback(tx)
            if inspect.isawaitable(result):
                result = await result
        except BaseException:
            await tx._rollback()
            raise
        await _end(tx, failed=False)
        replayed: Replayed | None = tx.replayed
        return result if replayed is None else replayed


async def _end(tx: HttpTransaction, *, failed: bool) -> None:
    """Commit, or when something failed or the key was known, drop what was staged."""
    if failed or tx.replayed is not None:
        await tx._rollback()
        return
    try:
        await tx._commit()
    finally:
        await tx._rollback()
