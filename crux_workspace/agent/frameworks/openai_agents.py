"""OpenAI Agents SDK: a gated call is a tool approval, which the run's state collects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from crux_workspace.agent.frameworks.common import imported, text_of
from crux_workspace.agent.permissions.decisions import AnswerWord
from crux_workspace.agent.permissions.gate import PermissionGate
from crux_workspace.agent.permissions.threads import DEFAULT_THREAD
from crux_workspace.tools import Tool

__all__ = ["answer_openai_agents", "openai_agents_tools"]


def openai_agents_tools(tools: Iterable[Tool], gate: PermissionGate) -> list[Any]:
    """Return gated tools for an agent of the OpenAI Agents SDK.

    Before a call is made the gate judges it (``needs_approval``); one that needs a person ends the run with an interruption. Answer
    with `answer_openai_agents`, or approve by the state itself, which counts as ``once``; then run the state on.

    Args:
        tools: Tools of `agent_tools` or `PermissionGate.wrap` over this gate.
        gate: Their gate.

    Returns:
        A list of ``agents.FunctionTool``.

    Raises:
        UnsupportedError: The SDK is not installed (``CAPABILITY_MISSING``).
    """
    library = imported("agents", "openai-agents")

    def make(tool: Tool) -> Any:  # noqa: ANN401 - the framework's tool
        async def needs_approval(_: Any, arguments: dict[str, Any], call_id: str) -> bool:  # noqa: ANN401
            return (await gate.preview(tool, arguments, call_id=call_id)).outcome == "interrupt"

        async def invoke(ctx: Any, text: str) -> str:  # noqa: ANN401 - the framework's context
            arguments, call_id = _arguments(text), ctx.tool_call_id
            result = await tool.call(arguments, call_id=call_id)
            if result.interrupt is not None and ctx.is_tool_approved(tool.name, call_id):
                await gate.settle(result.interrupt, "once")
                result = await tool.call(arguments, call_id=call_id)
            return text_of(result)

        return library.FunctionTool(
            name=tool.name,
            description=tool.description,
            params_json_schema=dict(tool.parameters),
            on_invoke_tool=invoke,
            strict_json_schema=False,
            needs_approval=needs_approval,
        )

    return [make(tool) for tool in tools]


async def answer_openai_agents(
    gate: PermissionGate,
    state: Any,  # noqa: ANN401 - agents.RunState
    answers: Mapping[str, AnswerWord],
    *,
    thread_id: str = DEFAULT_THREAD,
) -> None:
    """Answer interruptions of a run: settle what waits for them, and approve or reject them in its state.

    Args:
        gate: The gate.
        state: ``result.to_state()``.
        answers: ``{tool call id: once, always, deny or cancel}``.
        thread_id: The thread that asked.

    Raises:
        InvalidInputError: No such answer (``INVALID_RESUME_PAYLOAD``).
    """
    waiting = {item.tool_call_id: item for item in await gate.pending(thread_id)}
    for item in state.get_interruptions():
        answer = answers.get(item.call_id)
        interrupt = waiting.get(item.call_id)
        if answer is None or interrupt is None:
            continue
        decision = await gate.settle(interrupt, answer)
        if decision.allowed:
            state.approve(item)
        else:
            state.reject(item, rejection_message=decision.reason)


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
