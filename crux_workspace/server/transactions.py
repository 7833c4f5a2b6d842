"""Several operations as one commit: in one request, or over several requests of a transaction that is held open."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from starlette.responses import Response

from crux_workspace.api.transaction import Transaction
from crux_workspace.errors import ErrorCode, LimitExceededError, WorkspaceError
from crux_workspace.model.transactions import Replayed
from crux_workspace.server import bodies, shapes
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

__all__ = ["OPERATIONS", "begin", "commit", "rollback", "run_operations"]

OPERATIONS: dict[str, type[Struct]] = {
    "list": shapes.ListQuery,
    "read": shapes.ReadQuery,
    "read_many": bodies.ReadManyBody,
    "exists": shapes.PathQuery,
    "is_dir": shapes.PathQuery,
    "stat": shapes.PathQuery,
    "grep": shapes.GrepQuery,
    "artifacts": shapes.ArtifactsQuery,
    "write": bodies.WriteBody,
    "edit": bodies.EditBody,
    "append": bodies.AppendBody,
    "set": bodies.SetBody,
    "rename": bodies.RelocateBody,
    "move": bodies.RelocateBody,
    "copy": bodies.CopyBody,
    "delete": bodies.DeleteBody,
    "finalize": bodies.FinalizeBody,
    "withdraw": bodies.PathBody,
}
"""What a transaction may hold."""


async def run_operations(call: Call) -> Response:
    """Carry out a list of operations as one commit, or nothing of it."""
    operations = _checked(call)
    for _, given in operations:
        check_versions(call.principal, given, staged=True)

    async def work(tx: Transaction) -> list[Any]:
        done.clear()
        call.forget_read()
        done.append(tx)
        results = []
        held, most = 0, call.service.limits.max_json_bytes
        for number, (verb, given) in enumerate(operations):
            try:
                result = await getattr(tx, verb)(**given)
                held += _size_of(result)
                if held > most:
                    raise _too_much(most)
                results.append(result)
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
    told = [shown(call.principal, each, call.namespace) for each in result]
    return json_answer({"results": told, "commit": plain(commit), "replayed": False})


def _size_of(result: Any) -> int:  # noqa: ANN401 - any result
    """Return about how much of an answer is content."""
    if isinstance(result, dict):
        return sum(_size_of(each) for each in result.values())
    content = getattr(result, "content", None)
    if isinstance(content, str):
        return len(content)
    matches = getattr(result, "matches", ())
    return sum(len(m.text) + sum(map(len, (*m.before, *m.after))) for m in matches)


def _too_much(most: int) -> LimitExceededError:
    return LimitExceededError(
        f"The results of the transaction hold more than {most} characters; read in requests of their own.",
        code=ErrorCode.COMMIT_TOO_LARGE,
        details={"limit": most},
    )


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


async def begin(call: Call) -> Response:
    """Begin a transaction that further requests work in."""
    name = await call.service.transactions.begin(call)
    lease = int(call.service.limits.transaction_seconds * 1_000)
    replayed = call.service.transactions.replayed(name)
    body = {"transaction": name, "lease_ms": lease, "replayed": plain(replayed)}
    return json_answer(body, 201)


async def commit(call: Call) -> Response:
    """Commit the open transaction that the request names."""
    done, replayed = await call.service.transactions.commit(call)
    return json_answer({"commit": plain(done), "replayed": replayed})


async def rollback(call: Call) -> Response:
    """Drop the open transaction that the request names."""
    await call.service.transactions.rollback(call)
    return Response(status_code=204)
