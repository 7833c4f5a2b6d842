"""pydantic-ai: a gated call is deferred for approval, and ``DeferredToolResults`` answer it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from crux_workspace.agent.frameworks.common import imported, text_of
from crux_workspace.agent.permissions.decisions import AnswerWord
from crux_workspace.agent.permissions.gate import PermissionGate
from crux_workspace.agent.permissions.threads import DEFAULT_THREAD
from crux_workspace.tools import Tool

__all__ = ["pydantic_ai_results", "pydantic_ai_tools"]


def pydantic_ai_tools(tools: Iterable[Tool], gate: PermissionGate) -> list[Any]:
    """Return gated tools for a pydantic-ai agent whose output may be ``DeferredToolRequests``.

    A call that needs a person raises ``ApprovalRequired`` with the interrupt's payload as metadata. Answer with
    `pydantic_ai_results`, or with plain approvals, which count as ``once``.

    Args:
        tools: Tools of `agent_tools` or `PermissionGate.wrap` over this gate.
        gate: Their gate.

    Returns:
        A list of ``pydantic_ai.Tool``.

    Raises:
        UnsupportedError: pydantic-ai is not installed (``CAPABILITY_MISSING``).
    """
    library = imported("pydantic_ai", "pydantic-ai")

    def make(tool: Tool) -> Any:  # noqa: ANN401 - the framework's tool
        async def call(ctx: Any, **arguments: Any) -> str:  # noqa: ANN401 - the model's
            result = await tool.call(arguments, call_id=ctx.tool_call_id)
            if result.interrupt is not None and ctx.tool_call_approved:
                await gate.settle(result.interrupt, "once")
                result = await tool.call(arguments, call_id=ctx.tool_call_id)
            if result.interrupt is not None:
                raise library.ApprovalRequired(metadata=result.interrupt.to_dict())
            return text_of(result)

        return library.Tool.from_schema(
            call, tool.name, tool.description, dict(tool.parameters), takes_ctx=True
        )

    return [make(tool) for tool in tools]


async def pydantic_ai_results(
    gate: PermissionGate, answers: Mapping[str, AnswerWord], *, thread_id: str = DEFAULT_THREAD
) -> Any:  # noqa: ANN401 - the framework's value
    """Answer deferred calls: settle what waits for them, and return the results to run the agent with.

    Args:
        gate: The gate.
        answers: ``{tool call id: once, always, deny or cancel}``.
        thread_id: The thread that asked.

    Returns:
        ``pydantic_ai.DeferredToolResults``.

    Raises:
        UnsupportedError: pydantic-ai is not installed (``CAPABILITY_MISSING``).
        InvalidInputError: No such answer (``INVALID_RESUME_PAYLOAD``).
    """
    library = imported("pydantic_ai", "pydantic-ai")
    approvals: dict[str, Any] = {}
    for interrupt in await gate.pending(thread_id):
        answer = answers.get(interrupt.tool_call_id or "")
        if answer is None or interrupt.tool_call_id is None:
            continue
        decision = await gate.settle(interrupt, answer)
        approvals[interrupt.tool_call_id] = decision.allowed or library.ToolDenied(
            decision.reason or "Denied."
        )
    return library.DeferredToolResults(approvals=approvals)
