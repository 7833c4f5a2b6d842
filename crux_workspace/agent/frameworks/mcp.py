"""MCP: gated tools as a server; a call that needs a person elicits the answer from the client."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crux_workspace.agent.frameworks.common import call_asking, denied_text, imported, text_of
from crux_workspace.agent.permissions.decisions import Interrupt
from crux_workspace.agent.permissions.gate import PermissionGate
from crux_workspace.tools import Tool

__all__ = ["mcp_server"]


def mcp_server(
    tools: Iterable[Tool], gate: PermissionGate, *, name: str = "crux-workspace-agent"
) -> Any:  # noqa: ANN401
    """Return an MCP server with gated tools, to be run over any transport.

    A call that needs a person asks the client's user by elicitation: accepting gives ``once`` or ``always``, declining and cancelling
    deny. A client that cannot be asked gets the refusal, and the interrupt stays pending for another way to answer it.

    Args:
        tools: Tools of `agent_tools` or `PermissionGate.wrap` over this gate.
        gate: Their gate.
        name: What the server calls itself.

    Returns:
        ``mcp.server.lowlevel.Server``.

    Raises:
        UnsupportedError: The MCP SDK is not installed (``CAPABILITY_MISSING``).
    """
    lowlevel = imported("mcp.server.lowlevel", "mcp")
    types = imported("mcp.types", "mcp")
    by_name = {tool.name: tool for tool in tools}

    async def list_tools(_: Any, __: Any) -> Any:  # noqa: ANN401 - the SDK's values
        listed = [
            types.Tool(name=t.name, description=t.description, input_schema=dict(t.parameters))
            for t in by_name.values()
        ]
        return types.ListToolsResult(tools=listed)

    async def call_tool(ctx: Any, params: Any) -> Any:  # noqa: ANN401 - the SDK's values
        tool = by_name.get(params.name)
        if tool is None:
            return _result(types, denied_text(f"There is no tool {params.name!r}."), failed=True)
        arguments, call_id = params.arguments or {}, f"mcp-{ctx.request_id}"
        if not _can_be_asked(ctx):
            result = await tool.call(arguments, call_id=call_id)
            return _result(types, text_of(result), failed=not result.ok)

        async def ask(interrupt: Interrupt) -> str:
            asked = await ctx.session.elicit_form(
                _question(interrupt), _schema(interrupt), ctx.request_id
            )
            content = asked.content or {}
            return str(content.get("decision", "deny")) if asked.action == "accept" else "cancel"

        text, failed = await call_asking(tool, gate, arguments, call_id, ask)
        return _result(types, text, failed=failed)

    return lowlevel.Server(name, on_list_tools=list_tools, on_call_tool=call_tool)


def _can_be_asked(ctx: Any) -> bool:  # noqa: ANN401 - the SDK's context
    params = ctx.session.client_params
    return params is not None and params.capabilities.elicitation is not None


def _question(interrupt: Interrupt) -> str:
    detail = interrupt.detail
    subject = next(
        (detail[key] for key in ("command", "path", "toolName", "identity") if key in detail), ""
    )
    return f"Allow this {interrupt.kind}? {subject}"


def _schema(interrupt: Interrupt) -> dict[str, Any]:
    answers = ["once", "always", "deny"] if interrupt.allow_always else ["once", "deny"]
    decision = {"type": "string", "enum": answers, "title": "Decision"}
    return {"type": "object", "properties": {"decision": decision}, "required": ["decision"]}


def _result(types: Any, text: str, *, failed: bool) -> Any:  # noqa: ANN401 - the SDK's module and value
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], is_error=failed
    )
