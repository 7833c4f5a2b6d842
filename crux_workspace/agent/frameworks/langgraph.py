"""LangGraph: a gated call interrupts the graph, and ``Command(resume="once")`` answers it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crux_workspace.agent.frameworks.common import call_asking, imported
from crux_workspace.agent.permissions.decisions import Interrupt
from crux_workspace.agent.permissions.gate import PermissionGate
from crux_workspace.tools import Tool

__all__ = ["langgraph_tools"]


def langgraph_tools(tools: Iterable[Tool], gate: PermissionGate) -> list[Any]:
    """Return gated tools as LangChain tools for a LangGraph graph with a checkpointer.

    A call that needs a person calls ``langgraph.types.interrupt`` with the interrupt's payload; the value it is resumed with is
    ``once``, ``always``, ``deny`` or ``cancel``. Resuming runs the graph's node again, and the call runs once.

    Args:
        tools: Tools of `agent_tools` or `PermissionGate.wrap` over this gate.
        gate: Their gate.

    Returns:
        A list of ``langchain_core.tools.BaseTool``.

    Raises:
        UnsupportedError: LangGraph is not installed (``CAPABILITY_MISSING``).
    """
    types = imported("langgraph.types", "langgraph")
    structured = imported("langchain_core.tools", "langgraph").StructuredTool
    messages = imported("langchain_core.messages", "langgraph")

    class GatedTool(structured):  # type: ignore[misc, valid-type]  # the framework's class, known at run time
        """One gated tool, which knows the id of its call."""

        async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:  # noqa: ANN401
            is_call = isinstance(input, dict) and input.get("type") == "tool_call"
            call_id = input.get("id") if is_call else None
            arguments = input["args"] if is_call else input

            async def ask(interrupt: Interrupt) -> Any:  # noqa: ANN401 - whatever it is resumed with
                return types.interrupt(interrupt.to_dict())

            text, failed = await call_asking(
                self.metadata["crux_tool"], gate, arguments, call_id, ask
            )
            if not is_call:
                return text
            status = "error" if failed else "success"
            return messages.ToolMessage(text, tool_call_id=call_id, name=self.name, status=status)

    async def unused(**_: Any) -> str:  # noqa: ANN401 - never reached: ainvoke does it all
        raise NotImplementedError

    return [
        GatedTool(
            name=tool.name,
            description=tool.description,
            args_schema=dict(tool.parameters),
            coroutine=unused,
            metadata={"crux_tool": tool},
        )
        for tool in tools
    ]
