"""Transactions that are held open between requests: found by name, repeated steps told again, dropped when left alone."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import ClientDisconnect

from crux_workspace.api.inside import staged_by
from crux_workspace.api.transaction import Transaction, TransactionRequest
from crux_workspace.errors import (
    ErrorCode,
    InvalidInputError,
    LimitExceededError,
    StateError,
)
from crux_workspace.model.transactions import Replayed
from crux_workspace.server.calls import STEP, Call
from crux_workspace.server.problems import Refusal, busy

if TYPE_CHECKING:
    from crux_workspace.server.limits import ServiceLimits
    from crux_workspace.server.principals import Principal

__all__ = ["Transactions"]

_MOST_ENDED = 10_000
_T = TypeVar("_T", "_Open", "_Ended")


class _Outcome:
    """What a request does, and how it ends: to be told again when its answer was lost.

    It goes on when the request that began it is given up, and whoever asks meanwhile waits for the end.
    """

    __slots__ = ("_digest", "_streamed", "_task")

    def __init__(self, call: Call, digest: str, work: Coroutine[Any, Any, Any]) -> None:
        self._digest = digest
        self._streamed: str | None = None
        self._task = asyncio.ensure_future(work)
        self._task.add_done_callback(lambda task: self._look_at(call, task))

    def _look_at(self, call: Call, task: asyncio.Future[Any]) -> None:
        """Keep of the request what tells it from others; an error that nobody asks for again is no news."""
        self._streamed = call.streamed
        if not task.cancelled():
            task.exception()

    @property
    def broke_off(self) -> bool:
        """Whether it ended for a reason of the request alone, such as a body that did not come whole."""
        task = self._task
        if not task.done():
            return False
        return task.cancelled() or isinstance(task.exception(), Refusal | ClientDisconnect)

    async def ended(self) -> None:
        """Wait for the end, however it is."""
        await asyncio.wait({self._task})

    async def check_same(self, call: Call, digest: str) -> None:
        """Refuse to tell a request what another one gave; a streamed body is taken in and compared where the first came whole.

        Raises:
            InvalidInputError: It is another one (``INVALID_ARGUMENT``).
        """
        same = digest == self._digest
        if same and self._streamed is not None:
            await call.take_streamed()
            same = call.streamed == self._streamed
        if not same:
            raise InvalidInputError(
                "The number, or the end of the transaction, was used for another request; give each change a number of its own.",
                details={"option": STEP},
            )

    async def told(self) -> Any:  # noqa: ANN401 - any result
        """Wait for the end, and tell it: a result, or the error."""
        return await asyncio.shield(self._task)


@dataclass(slots=True, eq=False)
class _Open:
    principal: Principal
    namespace: str
    request: TransactionRequest[None]
    tx: Transaction
    due: float
    step: int = 0
    """Number of the last change that its client numbered."""
    last: _Outcome | None = None
    """What that one gives."""
    memory: int = 0
    """Bytes that it held after its last request."""
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def end(self, *, failed: bool, idempotency_key: str | None = None) -> None:
        """Commit what was staged, or drop it; its span ends with it."""
        try:
            await self.request.end(self.tx, failed=failed, idempotency_key=idempotency_key)
        except BaseException as error:
            self.request.close(error)
            raise
        self.request.close(asyncio.CancelledError() if failed else None)

    async def stage(
        self, call: Call, step: str, work: Callable[[], Coroutine[Any, Any, Any]]
    ) -> Any:  # noqa: ANN401 - any result
        """Carry out a change; one whose number is the last one's is told again instead.

        Raises:
            InvalidInputError: The number is none, below the last one's, or that of another request (``INVALID_ARGUMENT``).
        """
        number = int(step) if step.isascii() and step.isdigit() and len(step) < 10 else 0
        digest = call.digest()
        while (last := self.last) is not None and number == self.step:
            await last.ended()
            if self.last is not last:
                continue
            if last.broke_off:
                break
            await last.check_same(call, digest)
            return await last.told()
        if number <= self.step and (number != self.step or self.last is None):
            raise InvalidInputError(
                f"The step of the transaction must be above {self.step}, or {self.step} again.",
                details={"option": STEP},
            )
        self.step, self.last = number, _Outcome(call, digest, work())
        return await self.last.told()


@dataclass(slots=True, eq=False)
class _Ended:
    """One that was committed; what it had staged is let go of."""

    principal: Principal
    namespace: str
    due: float
    outcome: _Outcome


class Transactions:
    """The transactions that are held open between requests."""

    def __init__(self, limits: ServiceLimits, clock: Callable[[], float] = monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._open: dict[str, _Open] = {}
        self._ended: OrderedDict[str, _Ended] = OrderedDict()
        self._beginning: Counter[Principal] = Counter()

    async def begin(self, call: Call) -> str:
        """Begin one; returns the name that its further requests give.

        Raises:
            Refusal: The caller holds too many (429).
        """
        mine = sum(one.principal is call.principal for one in self._open.values())
        if mine + self._beginning[call.principal] >= self._limits.max_transactions:
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
        self._beginning[call.principal] += 1
        try:
            tx = await request.__aenter__()
        finally:
            self._beginning[call.principal] -= 1
        name = secrets.token_hex(16)
        self._open[name] = _Open(call.principal, call.namespace, request, tx, self._due())
        return name

    def replayed(self, name: str) -> Replayed | None:
        """Return the commit that its idempotency key had made before."""
        return self._open[name].tx.replayed

    def _find(self, call: Call, among: Mapping[str, _T]) -> tuple[str, _T]:
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
        name, found = self._find(call, self._open)
        if getattr(call.query, "at", None) is not None:
            raise InvalidInputError(
                f"A transaction does not offer this: {verb}.", details={"option": "transaction"}
            )

        async def work() -> Any:  # noqa: ANN401 - any result
            async with found.busy:
                try:
                    if call.demands_version(given):
                        given["if_version"] = await call.expected(found.tx, given["path"])
                    return await getattr(found.tx, verb)(**given)
                finally:
                    found.due = self._due()
                    await self._check_size(name, found)

        step = call.request.headers.get(STEP)
        return await (work() if step is None else found.stage(call, step, work))

    async def _check_size(self, name: str, found: _Open) -> None:
        """Drop a transaction that has become too large, or too large beside the others.

        Raises:
            LimitExceededError: It holds more than one may (``COMMIT_TOO_LARGE``).
            Refusal: All hold more together than they may (503).
        """
        staged, limits = staged_by(found.tx), self._limits
        found.memory = staged.memory_bytes
        for size, most, what in (
            (staged.memory_bytes, limits.max_transaction_bytes, "in memory"),
            (staged.uploaded_bytes, limits.max_uploaded_bytes, "in the asset store"),
        ):
            if size > most:
                await self._drop(name, found)
                raise LimitExceededError(
                    f"The transaction was dropped: it held {size} bytes {what}, and one may hold {most}.",
                    code=ErrorCode.COMMIT_TOO_LARGE,
                    details={"size": size, "limit": most},
                    hint="Make several transactions of it, or write large files outside of them.",
                )
        if sum(one.memory for one in self._open.values()) > limits.max_staged_bytes:
            await self._drop(name, found)
            raise busy("staged changes; the transaction was dropped")

    async def _drop(self, name: str, found: _Open) -> None:
        if self._open.pop(name, None) is not None:
            await found.end(failed=True)

    async def commit(self, call: Call) -> tuple[Replayed | None, bool]:
        """Commit it; how it ended is told again for as long as an open one would wait.

        Returns:
            The commit, if there was anything to commit, and whether a known key had made it before.
        """
        digest = call.digest()
        if call.transaction in self._ended:
            _, ended = self._find(call, self._ended)
            await ended.outcome.check_same(call, digest)
        else:
            name, found = self._find(call, self._open)
            self._take(name)
            found.tx.verb = call.body.verb
            ending = _Outcome(call, digest, self._end(found, call.idempotency_key))
            ended = _Ended(found.principal, found.namespace, self._due(), ending)
            self._ended[name] = ended
            while len(self._ended) > _MOST_ENDED:
                self._ended.popitem(last=False)
        done: tuple[Replayed | None, bool] = await ended.outcome.told()
        return done

    async def _end(self, found: _Open, key: str | None) -> tuple[Replayed | None, bool]:
        async with found.busy:
            await found.end(failed=False, idempotency_key=key)
        return found.tx.replayed or found.tx.committed, found.tx.replayed is not None

    def _due(self) -> float:
        return self._clock() + self._limits.transaction_seconds

    async def rollback(self, call: Call) -> None:
        """Drop it."""
        name, found = self._find(call, self._open)
        async with found.busy:
            self._take(name)
            await found.end(failed=True)

    def _take(self, name: str) -> None:
        if self._open.pop(name, None) is None:
            raise _closed()

    async def sweep(self) -> None:
        """Drop those that were left alone for too long."""
        now = self._clock()
        for name, ended in list(self._ended.items()):
            if ended.due <= now:
                del self._ended[name]
        for name, found in list(self._open.items()):
            if found.due <= now and not found.busy.locked():
                del self._open[name]
                await found.end(failed=True)

    async def aclose(self) -> None:
        """Drop all of them."""
        while self._open:
            _, found = self._open.popitem()
            await found.end(failed=True)


def _closed() -> StateError:
    return StateError(
        "There is no such open transaction: it was ended, or left alone for too long.",
        code=ErrorCode.TRANSACTION_CLOSED,
        hint="Begin another one and repeat its operations.",
    )
