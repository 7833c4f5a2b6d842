"""Transactions that are held open between requests: found by name, repeated steps told again, dropped when left alone."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from crux_workspace.api.transaction import Transaction, TransactionRequest
from crux_workspace.errors import ErrorCode, InvalidInputError, StateError, WorkspaceError
from crux_workspace.model.transactions import Replayed
from crux_workspace.server.calls import Call
from crux_workspace.server.problems import Refusal

if TYPE_CHECKING:
    from crux_workspace.server.limits import ServiceLimits
    from crux_workspace.server.principals import Principal

__all__ = ["STEP", "Ended", "Transactions"]

_Held = TypeVar("_Held", "_Open", "_Ended")
_MOST_ENDED = 1_000
"""Most commits whose end is remembered; those that ended first are forgotten first."""

STEP = "workspace-step"
"""Header that numbers the changes of an open transaction from 1, so that one whose answer was lost can be sent again."""
_VERBS = frozenset(
    [
        "list",
        "read",
        "read_bytes",
        "read_text",
        "read_json",
        "read_many",
        "exists",
        "is_dir",
        "stat",
        "grep",
        "artifacts",
        "write",
        "edit",
        "append",
        "set",
        "rename",
        "move",
        "copy",
        "delete",
        "finalize",
        "withdraw",
    ]
)


class _Outcome:
    """How a request ended, to be told again when its answer was lost."""

    __slots__ = ("_error", "_is_known", "_result")

    def __init__(self) -> None:
        self._is_known = False
        self._result: Any = None
        self._error: Exception | None = None

    async def of(self, work: Awaitable[Any]) -> Any:  # noqa: ANN401 - any result
        """Wait for the work, and remember its end."""
        try:
            self._result = await work
        except (WorkspaceError, Refusal) as error:
            self._error = error
        self._is_known = True
        return self.told()

    def told(self) -> Any:  # noqa: ANN401 - any result
        """Tell it again.

        Raises:
            StateError: It was interrupted, so that nobody knows (``TRANSACTION_CLOSED``).
        """
        if not self._is_known:
            raise _closed()
        if self._error is not None:
            raise self._error
        return self._result


@dataclass(slots=True, eq=False)
class _Open:
    principal: Principal
    namespace: str
    request: TransactionRequest[None]
    tx: Transaction
    due: float
    step: int = 0
    """Number of the last change that its client numbered."""
    last: _Outcome = field(default_factory=_Outcome)
    """What that one gave."""
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    def stage(self, step: str | None, work: Callable[[], Awaitable[Any]]) -> Awaitable[Any]:
        """Carry out a change; one whose number is the last one's is told again instead.

        Raises:
            InvalidInputError: The number is none, or below the last one's (``INVALID_ARGUMENT``).
        """
        if step is None:
            return work()
        number = int(step) if step.isascii() and step.isdigit() and len(step) < 10 else 0
        if number == self.step > 0:
            return self._again()
        if number <= self.step:
            raise InvalidInputError(
                f"The step of the transaction must be above {self.step}, or {self.step} again.",
                details={"option": STEP},
            )
        self.step, self.last = number, _Outcome()
        return self.last.of(work())

    async def _again(self) -> Any:  # noqa: ANN401 - any result
        return self.last.told()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a commit ended."""

    commit: Replayed | None
    replayed: bool


@dataclass(slots=True, eq=False)
class _Ended:
    """What is kept of a transaction that was committed: nothing that was staged."""

    principal: Principal
    namespace: str
    due: float
    outcome: _Outcome = field(default_factory=_Outcome)


class Transactions:
    """The transactions that are held open between requests."""

    def __init__(self, limits: ServiceLimits, clock: Callable[[], float] = monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._open: dict[str, _Open] = {}
        self._ended: dict[str, _Ended] = {}
        self._counts: Counter[Principal] = Counter()

    async def begin(self, call: Call) -> str:
        """Begin one; returns the name that its further requests give.

        Raises:
            Refusal: The caller holds too many (429).
        """
        mine = self._counts[call.principal]
        if mine >= self._limits.max_transactions:
            raise Refusal(
                429,
                f"The token holds {mine} open transactions; end one first.",
                code=ErrorCode.STORE_UNAVAILABLE,
                retryable=True,
                headers={"retry-after": "1"},
            )
        request: TransactionRequest[Any] = call.workspace.transaction(
            idempotency_key=call.idempotency_key
        )
        self._counts[call.principal] += 1
        try:
            tx = await request.__aenter__()
        except BaseException:
            self._counts[call.principal] -= 1
            raise
        name = secrets.token_hex(16)
        due = self._clock() + self._limits.transaction_seconds
        self._open[name] = _Open(call.principal, call.namespace, request, tx, due)
        return name

    def replayed(self, name: str) -> Replayed | None:
        """Return the commit that its idempotency key had made before."""
        return self._open[name].tx.replayed

    def _find(self, call: Call, among: dict[str, _Held]) -> tuple[str, _Held]:
        name = call.transaction or ""
        found = among.get(name)
        if found is None or found.principal is not call.principal:
            raise _closed()
        if call.namespace != found.namespace:
            raise InvalidInputError(
                "A transaction belongs to one namespace; begin another one for the other namespace.",
                details={"option": "namespace"},
            )
        return name, found

    async def run(self, call: Call, verb: str, given: dict[str, Any]) -> Any:  # noqa: ANN401
        """Carry out a verb in the transaction that a request names."""
        _, found = self._find(call, self._open)
        if verb not in _VERBS or getattr(call.query, "at", None) is not None:
            raise InvalidInputError(
                f"A transaction does not offer this: {verb}.", details={"option": "transaction"}
            )

        async def work() -> Any:  # noqa: ANN401 - any result
            if call.expects and "path" in given and given.get("if_version", 0) is None:
                given["if_version"] = await call.expected(found.tx, given["path"])
            return await getattr(found.tx, verb)(**given)

        async with found.busy:
            try:
                return await found.stage(call.request.headers.get(STEP), work)
            finally:
                found.due = self._clock() + self._limits.transaction_seconds

    async def commit(self, call: Call) -> Ended:
        """Commit it; how it ended is told again for as long as an open one would wait."""
        if call.transaction in self._ended:
            _, ended = self._find(call, self._ended)
            told: Ended = ended.outcome.told()
            return told
        name, found = self._find(call, self._open)
        async with found.busy:
            self._take(name, found)
            found.tx.verb = call.body.verb
            due = self._clock() + self._limits.transaction_seconds
            known = self._ended[name] = _Ended(found.principal, found.namespace, due)
            while len(self._ended) > _MOST_ENDED:
                del self._ended[next(iter(self._ended))]
            how: Ended = await known.outcome.of(self._committed(found, call.idempotency_key))
            return how

    async def _committed(self, found: _Open, key: str | None) -> Ended:
        tx = found.tx
        await found.request.end(tx, failed=False, idempotency_key=key)
        return Ended(tx.replayed or tx.committed, tx.replayed is not None)

    async def rollback(self, call: Call) -> None:
        """Drop it."""
        name, found = self._find(call, self._open)
        async with found.busy:
            self._take(name, found)
            await found.request.end(found.tx, failed=True)

    def _take(self, name: str, found: _Open) -> None:
        if self._open.pop(name, None) is None:
            raise _closed()
        self._counts[found.principal] -= 1

    async def sweep(self) -> None:
        """Drop those that were left alone for too long."""
        now = self._clock()
        for name, ended in list(self._ended.items()):
            if ended.due <= now:
                del self._ended[name]
        for name, found in list(self._open.items()):
            if found.due <= now and not found.busy.locked():
                self._take(name, found)
                await found.request.end(found.tx, failed=True)

    async def aclose(self) -> None:
        """Drop all of them."""
        self._counts.clear()
        while self._open:
            _, found = self._open.popitem()
            await found.request.end(found.tx, failed=True)


def _closed() -> StateError:
    return StateError(
        "There is no such open transaction: it was ended, or left alone for too long.",
        code=ErrorCode.TRANSACTION_CLOSED,
        hint="Begin another one and repeat its operations.",
    )
