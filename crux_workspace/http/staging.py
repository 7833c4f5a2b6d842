"""The calls of an open transaction: each change numbered, so that one whose answer was lost is staged once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from crux_workspace.errors import (
    ConflictError,
    ErrorCode,
    InvalidInputError,
    StateError,
    StorageError,
    WorkspaceError,
)
from crux_workspace.http.calling import Caller
from crux_workspace.http.connection import Request
from crux_workspace.http.decoding import of
from crux_workspace.http.problems import UNKNOWN_OUTCOME, corrupt
from crux_workspace.http.sending import Payload, body_of
from crux_workspace.model.clocks import random_id
from crux_workspace.model.labels import check_label
from crux_workspace.model.paths import check_namespace
from crux_workspace.model.settings import NamespaceRequest
from crux_workspace.model.transactions import Replayed

__all__ = ["Begun", "Ended", "StagedCaller", "begin"]

_T = TypeVar("_T")
_replayed = of(Replayed)
_UNSURE = (*UNKNOWN_OUTCOME, ErrorCode.RECORD_CORRUPT)
"""After these nobody knows what is staged: an unusable answer may stand for a change that was."""
_GOODBYE_S = 5.0
"""How long a service is given to be told that a transaction is dropped."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A transaction that the service holds open."""

    caller: StagedCaller
    replayed: Replayed | None
    """The commit that its idempotency key had made before."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a commit ended."""

    commit: Replayed | None
    replayed: bool


async def begin(live: Caller, namespace: str | None, key: str | None) -> Begun:
    """Begin a transaction on the namespace that a call names."""
    resolved = await live.namespace(namespace)
    query = {} if resolved is None else {"namespace": resolved}
    headers = live.headers() if key is None else {**live.headers(), **live.key_headers(key)}
    answer = await _post(live, "begin", query, headers, {})
    name = answer.get("transaction")
    if not isinstance(name, str) or not name.isalnum() or not name.isascii():
        raise corrupt("a transaction without a name")
    replayed = answer.get("replayed")
    caller = StagedCaller(live, resolved, name, key)
    return Begun(caller, None if replayed is None else _replayed(replayed))


async def _post(
    caller: Caller,
    action: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    body: Mapping[str, Any],
) -> dict[str, Any]:
    answer = await caller.core.connection.json(_request(action, query, headers, body))
    if not isinstance(answer, dict):
        raise corrupt("it is no answer to a transaction")
    return answer


def _request(
    action: str, query: Mapping[str, str], headers: Mapping[str, str], body: Mapping[str, Any]
) -> Request:
    return Request(
        "POST",
        f"/v1/transaction/{action}",
        query,
        {"Content-Type": "application/json", **headers},
        body=body_of(body),
    )


class StagedCaller(Caller):
    """Sends the calls of one transaction."""

    __slots__ = ("_key", "_live", "_name", "_namespace", "_step", "_turn", "broken", "open")

    def __init__(self, live: Caller, namespace: str | None, name: str, key: str | None) -> None:
        super().__init__(live.core, live.bound, live.actor)
        self._live = live
        self._namespace = namespace
        self._name = name
        self._key = key
        self._step = 0
        self._turn = asyncio.Lock()
        self.open = True
        self.broken: StorageError | None = None
        """Why nobody knows any more what is staged."""

    # -- what every request says

    async def namespace(
        self, given: str | None, request: NamespaceRequest | None = None
    ) -> str | None:
        """Return the transaction's own namespace; another one is refused."""
        self.core.enter()
        own = self._namespace
        if own is None and self.core.session is not None:
            own = self.core.session.namespace
        if given is not None and check_namespace(given) != own:
            raise InvalidInputError(
                "A transaction belongs to one namespace; begin another one for the other namespace.",
                details={"option": "namespace"},
            )
        self.check_open()
        return self._namespace

    def check_open(self) -> None:
        """Refuse use after the end (``TRANSACTION_CLOSED``), or after a change whose outcome is not known."""
        if not self.open:
            raise StateError(
                "The transaction has ended; begin another one.", code=ErrorCode.TRANSACTION_CLOSED
            )
        if self.broken is not None:
            raise _given_up(self.broken)

    def headers(self) -> dict[str, str]:
        """Return the headers of this transaction's requests."""
        return {**super().headers(), "Workspace-Transaction": self._name}

    def key_headers(self, key: str | None) -> dict[str, str]:
        """Return the number of the next change; an idempotency key is for the transaction as a whole."""
        if key is not None:
            raise InvalidInputError(
                "Inside a transaction give the idempotency_key to the transaction itself.",
                details={"option": "idempotency_key"},
            )
        self._step += 1
        return {"Workspace-Step": str(self._step)}

    # -- the calls

    async def ask(
        self,
        verb: str,
        arguments: Mapping[str, Any],
        namespace: str | None,
        decode: Callable[[Any], _T],
        beside: Mapping[str, Any] | None = None,
    ) -> _T:
        """Carry out a verb that reads, as the transaction sees it."""
        async with self._translated(changes=False):
            return await super().ask(verb, arguments, namespace, decode, beside)

    async def change(
        self,
        verb: str,
        arguments: Mapping[str, Any],
        namespace: str | None,
        key: str | None,
        decode: Callable[[Any], _T],
    ) -> _T:
        """Stage a change."""
        async with self._turn, self._translated(changes=True):
            return await super().change(verb, arguments, namespace, key, decode)

    async def put(
        self,
        payload: Payload,
        arguments: Mapping[str, Any],
        namespace: str | None,
        key: str | None,
        decode: Callable[[Any], _T],
    ) -> _T:
        """Stage a streamed write."""
        async with self._turn, self._translated(changes=True):
            return await super().put(payload, arguments, namespace, key, decode)

    @asynccontextmanager
    async def _translated(self, *, changes: bool) -> AsyncGenerator[None, None]:
        try:
            yield
        except StateError as error:
            if error.code == ErrorCode.TRANSACTION_CLOSED and self.open:
                raise _forgotten() from error
            raise
        except StorageError as error:
            if changes and error.code in _UNSURE and self.broken is None:
                self.broken = error
            raise
        except asyncio.CancelledError:
            if changes and self.broken is None:
                self.broken = StorageError(
                    "A change was cancelled on its way, and nobody knows whether it was staged."
                )
            raise

    # -- the end

    async def commit_all(self, verb: str) -> Ended:
        """Commit what was staged, once, whatever gets lost on the way.

        Raises:
            ConflictError: What it read or wrote changed, or the service has forgotten it (``TRANSACTION_CONFLICT``).
        """
        self.check_open()
        self.open = False
        key = self._key
        if key is None and verb == "transaction":
            key = random_id()
        headers = self.headers()
        if key is not None:
            headers |= self._live.key_headers(key)
        body = {"verb": check_label("verb", verb)}
        sending = _post(self._live, "commit", self._query(), headers, body)
        try:
            answer = await self._live.commit(sending, headers)
        except StateError as error:
            if error.code != ErrorCode.TRANSACTION_CLOSED:
                raise
            return await self._found_out(key, error)
        commit, replayed = answer.get("commit", ...), answer.get("replayed")
        if commit is ... or not isinstance(replayed, bool):
            raise corrupt("it does not say what was committed")
        return Ended(None if commit is None else _replayed(commit), replayed)

    async def _found_out(self, key: str | None, error: WorkspaceError) -> Ended:
        """The service has forgotten the transaction: ask by its key whether it was committed before that."""
        if key is not None:
            again = await begin(self._live, self._namespace_again(), key)
            await again.caller.drop()
            if again.replayed is not None:
                return Ended(again.replayed, replayed=False)
        raise _forgotten() from error

    def _namespace_again(self) -> str | None:
        return None if self.bound is not None else self._namespace

    def _query(self) -> dict[str, str]:
        return {} if self._namespace is None else {"namespace": self._namespace}

    async def drop(self) -> None:
        """Drop what was staged; a service that cannot be told drops it by itself after a while."""
        self.open = False
        try:
            async with asyncio.timeout(_GOODBYE_S):
                request = _request("rollback", self._query(), self.headers(), {})
                await self.core.connection.done(request)
        except (WorkspaceError, TimeoutError):
            return


def _forgotten() -> ConflictError:
    return ConflictError(
        "The service has forgotten the transaction: it restarted, or it was left alone for too long. Nothing of it was applied.",
        code=ErrorCode.TRANSACTION_CONFLICT,
        details={"conflicts": []},
        hint="Begin another one and repeat its operations.",
    )


def _given_up(cause: StorageError) -> StorageError:
    return StorageError(
        "The transaction was given up after a change whose outcome is not known; nothing of it is applied.",
        code=cause.code,
        hint="Begin another one and repeat its operations.",
    )
