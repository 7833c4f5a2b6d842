"""Requests that change something: the verb's arguments come from the JSON body."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from crux_workspace.server.calls import Call
from crux_workspace.server.partial import check_versions, refuse_whole
from crux_workspace.server.reading import answer
from crux_workspace.server.wire import arguments_of, content_of

__all__ = ["carry_out", "change_verb", "delete_file", "update_file"]

_KEYLESS = ("gc", "drop_namespace")


async def change_verb(call: Call) -> Response:
    """Carry out the verb of a route that changes something."""
    verb = call.route.verbs[0]
    given = arguments_of(call.body)
    if verb == "write":
        content_of(given)
    refuse_whole(call.principal, verb)
    if "to_namespace" in given and given["to_namespace"] is not None:
        given["to_namespace"] = call.principal.namespace(given["to_namespace"])
    if verb == "drop_namespace":
        given["name"] = call.principal.namespace(given["name"])
        await call.principal.workspace.drop_namespace(**given)
        return Response(status_code=204)
    return answer(call, verb, await carry_out(call, verb, given))


async def carry_out(call: Call, verb: str, given: dict[str, Any]) -> Any:  # noqa: ANN401
    """Call the verb on the workspace or in the open transaction; what headers expect is a precondition."""
    workspace = call.workspace
    staged = call.transaction is not None
    check_versions(call.principal, given, staged=staged)
    conditional = call.demands_version(given)
    if call.transaction is not None:
        return await call.service.transactions.run(call, verb, given)
    if conditional:
        given["if_version"] = await call.expected(workspace, given["path"])
    if verb not in _KEYLESS and call.idempotency_key is not None:
        given["idempotency_key"] = call.idempotency_key
    return await getattr(workspace, verb)(**given)


class _NoValue(Exception):
    """The request has no value to put in place."""


async def update_file(call: Call) -> Response:
    """Put a new value in place: the caller has run its function on the version that it names."""
    given = arguments_of(call.body)
    has_value = "content" in given or "content_base64" in given
    if has_value:
        content_of(given)
    if call.demands_version(given):
        given["if_version"] = await call.expected(call.workspace, given["path"])

    def new_value(_: Any) -> Any:  # noqa: ANN401 - the file's value
        if not has_value:
            raise _NoValue
        return given["content"]

    try:
        file = await call.workspace.update(
            given["path"],
            new_value,
            max_attempts=1,
            if_version=given["if_version"],
            idempotency_key=call.idempotency_key,
        )
    except _NoValue:
        return answer(call, "update", None)
    return answer(call, "update", file)


async def delete_file(call: Call) -> Response:
    """Delete what the query names."""
    given = arguments_of(call.query)
    given["if_version"] = None
    await carry_out(call, "delete", given)
    return Response(status_code=204)
