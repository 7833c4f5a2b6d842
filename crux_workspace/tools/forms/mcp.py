"""The Model Context Protocol's form of tools; needs the extra ``mcp``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crux_workspace.model.extras import need_extra
from crux_workspace.tools.toolset import Tool, ToolResult, ToolSet

if TYPE_CHECKING:
    from mcp import types

__all__ = ["mcp_result", "mcp_tool", "tools_of"]


def mcp_tool(tool: Tool) -> types.Tool:
    """Return a tool as ``tools/list`` tells it."""
    from mcp import types

    notes = tool.annotations
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=dict(tool.parameters),
        annotations=types.ToolAnnotations(
            read_only_hint=notes.read_only,
            destructive_hint=notes.destructive,
            idempotent_hint=notes.idempotent,
            open_world_hint=False,
        ),
    )


def mcp_result(result: ToolResult) -> types.CallToolResult:
    """Return a result as ``tools/call`` answers it: one text, and images as image content."""
    from mcp import types

    images = [types.ImageContent(data=m.base64, mime_type=m.mime_type) for m in result.media]
    return types.CallToolResult(
        content=[types.TextContent(text=result.text), *images], is_error=not result.ok
    )


def tools_of(tools: ToolSet) -> list[types.Tool]:
    """Return the tools as ``mcp.types.Tool``."""
    need_extra("mcp", "mcp")
    return [mcp_tool(tool) for tool in tools]
