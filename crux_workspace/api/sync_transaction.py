"""The blocking form of a transaction."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import NoReturn, TypeVar

from crux_workspace.api.blocking import Blocking, SyncReads, method
from crux_workspace.api.transaction import Transaction, TransactionRequest
from crux_workspace.errors import ConflictError, InvalidInputError
from crux_workspace.model.transactions import Replayed

__all__ = ["SyncTransaction", "SyncTransactionRequest"]

_T = TypeVar("_T")


class SyncTransaction(SyncReads):
    """Changes that are staged privately and committed together, for blocking code; see `Transaction`."""

    def __init__(self, transaction: Transaction, loop: asyncio.AbstractEventLoop) -> None:
        self._target: Transaction = transaction
        self._loop = loop

    def __repr__(self) -> str:
        return f"Sync{self._target!r}"

    write = method(Transaction.write)
    edit = method(Transaction.edit)
    append = method(Transaction.append)
    update = method(Transaction.update)
    set = method(Transaction.set)
    rename = method(Transaction.rename)
    move = method(Transaction.move)
    copy = method(Transaction.copy)
    delete = method(Transaction.delete)
    finalize = method(Transaction.finalize)
    withdraw = method(Transaction.withdraw)

    @property
    def replayed(self) -> Replayed | None:
        """Set when the idempotency key was known: nothing was applied, this is what its commit was."""
        return self._target.replayed

    @property
    def committed(self) -> Replayed | None:
        """The commit, once there is one."""
        return self._target.committed

    @property
    def verb(self) -> str:
        """What the log shows as the commit's verb; may be set before the end where there is no idempotency key."""
        return self._target.verb

    @verb.setter
    def verb(self, verb: str) -> None:
        self._target.verb = verb

    def transaction(self, *_: object, **__: object) -> NoReturn:
        """Refuse: a transaction does not hold another one (``INVALID_ARGUMENT``)."""
        self._target.transaction()


class SyncTransactionRequest(Blocking):
    """What `SyncWorkspace.transaction` returns without a callback: enter it with ``with``."""

    def __init__(
        self, request: TransactionRequest[object], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._target: TransactionRequest[object] = request
        self._loop = loop

    def __enter__(self) -> SyncTransaction:
        return SyncTransaction(self._wait(self._target.__aenter__()), self._loop)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._wait(self._target.__aexit__(kind, error, trace))

    def run(self, callback: Callable[[SyncTransaction], _T]) -> _T | Replayed:
        """Run a callback on the caller's own thread, again on a conflict, as the awaited form does."""
        try:
            result = self._tried(callback)
        except BaseException as error:
            self._target.close(error)
            raise
        self._target.close(None)
        return result

    def _tried(self, callback: Callable[[SyncTransaction], _T]) -> _T | Replayed:
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._attempt(callback)
            except ConflictError as conflict:
                self._wait(self._target.pause(conflict, attempt))

    def _attempt(self, callback: Callable[[SyncTransaction], _T]) -> _T | Replayed:
        tx = self._wait(self._target.begin())
        if isinstance(tx, Replayed):
            return tx
        try:
            result = callback(SyncTransaction(tx, self._loop))
            if inspect.iscoroutine(result):
                result.close()
                raise InvalidInputError(
                    "The blocking form takes a plain function; await the transaction of the workspace instead."
                )
        except BaseException:
            self._wait(self._target.end(tx, failed=True))
            raise
        self._wait(self._target.end(tx, failed=False))
        return result if tx.replayed is None else tx.replayed
