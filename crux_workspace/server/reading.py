"""Requests that read: the verb's arguments come from the query, its result goes back as JSON."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from crux_workspace.model.verbs import VERBS
from crux_workspace.server.calls import Call
from crux_workspace.server.masking import shown
from crux_workspace.server.wire import arguments_of, json_answer

__all__ = ["answer", "read_verb"]

_NAMED = {"exists": "exists", "is_dir": "is_dir", "cursor": "cursor", "read_many": "contents"}
"""Results that are no objects get a name."""


async def read_verb(call: Call) -> Response:
    """Carry out the verb of a route that reads."""
    verb = call.route.verbs[0]
    given = arguments_of(call.query if call.body is None else call.body)
    if call.transaction is not None:
        result = await call.service.transactions.run(call, verb, given)
    else:
        result = await getattr(call.tree, verb)(**given)
    return answer(call, verb, result)


def answer(call: Call, verb: str, result: Any) -> Response:  # noqa: ANN401 - any result
    """Make the answer of a verb's result."""
    assert verb in VERBS
    told = shown(call.principal, result)
    return json_answer({_NAMED[verb]: told} if verb in _NAMED else told)
