"""Requests that read: the verb's arguments come from the query, its result goes back as JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from starlette.responses import Response

from crux_workspace.server.calls import Call
from crux_workspace.server.masking import shown, shown_commits
from crux_workspace.server.naming import visible_namespaces
from crux_workspace.server.partial import (
    check_versions,
    refuse_whole,
    visible_history,
    visible_log,
)
from crux_workspace.server.wire import arguments_of, json_answer

__all__ = ["answer", "history", "log", "namespaces", "read_verb"]

_NAMED = {"exists": "exists", "is_dir": "is_dir", "cursor": "cursor", "read_many": "contents"}
"""Results that are no objects get a name."""


async def read_verb(call: Call) -> Response:
    """Carry out the verb of a route that reads."""
    verb = call.route.verbs[0]
    given = arguments_of(call.query if call.body is None else call.body)
    refuse_whole(call.principal, verb)
    staged = call.transaction is not None
    check_versions(call.principal, given, staged=staged)
    if staged:
        result = await call.service.transactions.run(call, verb, given)
    else:
        result = await getattr(call.tree, verb)(**given)
    return answer(call, verb, result)


async def history(call: Call) -> Response:
    """Answer a file's versions."""
    given = arguments_of(call.query)
    if not call.principal.partial:
        return answer(call, "history", await call.workspace.history(**given))
    return answer(call, "history", await visible_history(call.principal, call.workspace, **given))


async def log(call: Call) -> Response:
    """Answer the commits of the namespace; of a large one no more changes than are asked for."""
    given = arguments_of(call.query)
    most = given.pop("max_changes")
    if not call.principal.partial:
        found = await call.workspace.log(**given)
    else:
        found = await visible_log(call.principal, call.workspace, **given)
    if most is None:
        return answer(call, "log", found)
    told = shown_commits(call.principal, found)
    return json_answer(
        [
            replace(entry, changes=entry.changes[:most]).to_dict()
            | {"changes_total": len(entry.changes)}
            for entry in told
        ]
    )


async def namespaces(call: Call) -> Response:
    """Answer the namespaces that the caller may use."""
    return answer(call, "namespaces", await visible_namespaces(call.principal, call.query))


def answer(call: Call, verb: str, result: Any) -> Response:  # noqa: ANN401 - any result
    """Make the answer of a verb's result."""
    told = shown(call.principal, result, call.namespace_or_none)
    return json_answer({_NAMED[verb]: told} if verb in _NAMED else told)
