"""Several operations as one commit: in one request, or over several requests of a transaction that is held open."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from starlette.responses import Response

from crux_workspace.api.transaction import Transaction, TransactionRequest
from crux_workspace.errors import ErrorCode, InvalidInputError, StateError, WorkspaceError
from crux_workspace.model.transactions import Replayed
from crux_workspace.server import shapes
from crux_workspace.server.calls import Call
from crux_workspace.server.masking import shown
from crux_workspace.server.partial import check_versions
from crux_workspace.server.problems import Refusal
from crux_workspace.server.wire import (
    arguments_of,
    content_of,
    convert_operation,
    json_answer,
    plain,
)

if TYPE_CHECKING:
    from crux_workspace.server.limits import ServiceLimits
    from crux_workspace.server.principals import Principal

__all__ = ["OPERATIONS", "Transactions", "begin", "commit", "rollback", "run_operations"]

OPERATIONS: dict[str, type[Struct]] = {
    "list": shapes.ListQuery,
    "read": shapes.ReadQuery,
    "read_many": shapes.ReadManyBody,
    "exists": shapes.PathQuery,
    "is_dir": shapes.PathQuery,
    "stat": shapes.PathQuery,
    "grep": shapes.GrepQuery,
    "artifacts": shapes.ArtifactsQuery,
    "write": shapes.WriteBody,
    "edit": shapes.EditBody,
    "append": shapes.AppendBody,
    "set": shapes.SetBody,
    "rename": shapes.RelocateBody,
    "move": shapes.RelocateBody,
    "copy": shapes.CopyBody,
    "delete": shapes.DeleteBody,
    "finalize": shapes.FinalizeBody,
    "withdraw": shapes.PathBody,
}
"""What a transaction may hold."""
_READS_BYTES = ("read_bytes", "read_text", "read_json")


async def run_operations(call: Call) -> Response:
    """Carry out a list of operations as one commit, or nothing of it."""
    operations = _checked(call)
    for verb, given in operations:
        await check_versions(call.principal, call.workspace, verb, given)

    async def work(tx: Transaction) -> list[Any]:
        done.clear()
        done.append(tx)
        results = []
        for number, (verb, given) in enumerate(operations):
            try:
                results.append(await getattr(tx, verb)(**given))
            except WorkspaceError as error:
                error.details["operation"] = number
                raise
        return results

    done: list[Transaction] = []
    result = await call.workspace.transaction(
        work, max_attempts=call.body.max_attempts, idempotency_key=call.idempotency_key
    )
    if isinstance(result, Replayed):
        return json_answer({"results": None, "commit": plain(result), "replayed": True})
    commit = done[0].committed
    told = [shown(call.principal, each) for each in result]
    return json_answer({"results": told, "commit": plain(commit), "replayed": False})


def _checked(call: Call) -> list[tuple[str, dict[str, Any]]]:
    given = call.body.operations
    most = call.service.limits.max_operations
    if len(given) > most:
        raise Refusal(
            413,
            f"A transaction request holds at most {most} operations.",
            code=ErrorCode.COMMIT_TOO_LARGE,
            details={"limit": most},
        )
    checked = []
    for number, operation in enumerate(given):
        try:
            checked.append(_operation(operation))
        except Refusal as refusal:
            refusal.details["operation"] = number
            raise
    return checked


def _operation(given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    verb = given.pop("verb", None)
    kind = OPERATIONS.get(verb) if isinstance(verb, str) else None
    if kind is None:
        raise Refusal(
            400,
            "An operation needs a verb that a transaction offers.",
            hint=f"Choose from: {', '.join(OPERATIONS)}.",
            details={"option": "verb"},
        )
    assert isinstance(verb, str)
    if "namespace" in given or "at" in given:
        raise Refusal(400, "A transaction belongs to one namespace, as it is now.")
    arguments = arguments_of(convert_operation(given, kind))
    if verb == "write":
        content_of(arguments)
    return verb, arguments


# -- held open


@dataclass(slots=True, eq=False)
class _Open:
    principal: Principal
    namespace: str
    request: TransactionRequest[None]
    tx: Transaction
    due: float
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)


class Transactions:
    """The transactions that are held open between requests."""

    def __init__(self, limits: ServiceLimits, clock: Callable[[], float] = monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._open: dict[str, _Open] = {}
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

    def _find(self, call: Call) -> tuple[str, _Open]:
        name = call.transaction or ""
        found = self._open.get(name)
        if found is None or found.principal is not call.principal:
            raise StateError(
                "There is no such open transaction: it was ended, or left alone for too long.",
                code=ErrorCode.TRANSACTION_CLOSED,
                hint="Begin another one and repeat its operations.",
            )
        if call.namespace != found.namespace:
            raise InvalidInputError(
                "A transaction belongs to one namespace; begin another one for the other namespace.",
                details={"option": "namespace"},
            )
        return name, found

    async def run(self, call: Call, verb: str, given: dict[str, Any]) -> Any:  # noqa: ANN401
        """Carry out a verb in the transaction that a request names."""
        _, found = self._find(call)
        if verb not in (*OPERATIONS, *_READS_BYTES) or getattr(call.query, "at", None) is not None:
            raise InvalidInputError(
                f"A transaction does not offer this: {verb}.", details={"option": "transaction"}
            )
        async with found.busy:
            try:
                if call.expects and "path" in given and given.get("if_version", 0) is None:
                    given["if_version"] = await call.expected(found.tx, given["path"])
                return await getattr(found.tx, verb)(**given)
            finally:
                found.due = self._clock() + self._limits.transaction_seconds

    async def end(self, call: Call, *, failed: bool) -> Transaction:
        """Commit it, or drop it."""
        name, found = self._find(call)
        async with found.busy:
            if self._open.pop(name, None) is None:
                raise StateError(
                    "The transaction has ended meanwhile.", code=ErrorCode.TRANSACTION_CLOSED
                )
            self._counts[found.principal] -= 1
            await found.request.end(found.tx, failed=failed)
            return found.tx

    async def sweep(self) -> None:
        """Drop those that were left alone for too long."""
        now = self._clock()
        for name, found in list(self._open.items()):
            if found.due <= now and not found.busy.locked():
                del self._open[name]
                self._counts[found.principal] -= 1
                await found.request.end(found.tx, failed=True)

    async def aclose(self) -> None:
        """Drop all of them."""
        self._counts.clear()
        while self._open:
            _, found = self._open.popitem()
            await found.request.end(found.tx, failed=True)


async def begin(call: Call) -> Response:
    """Begin a transaction that further requests work in."""
    name = await call.service.transactions.begin(call)
    lease = int(call.service.limits.transaction_seconds * 1_000)
    replayed = call.service.transactions.replayed(name)
    body = {"transaction": name, "lease_ms": lease, "replayed": plain(replayed)}
    return json_answer(body, 201)


async def commit(call: Call) -> Response:
    """Commit the open transaction that the request names."""
    tx = await call.service.transactions.end(call, failed=False)
    done = tx.replayed or tx.committed
    return json_answer({"commit": plain(done), "replayed": tx.replayed is not None})


async def rollback(call: Call) -> Response:
    """Drop the open transaction that the request names."""
    await call.service.transactions.end(call, failed=True)
    return Response(status_code=204)
