"""The OpenAI Agents SDK's form of tools; needs the extra ``openai-agents``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crux_workspace.model.extras import need_extra
from crux_workspace.tools.toolset import Tool, ToolSet

if TYPE_CHECKING:
    from agents import FunctionTool

__all__ = ["tools_of"]


def tools_of(tools: ToolSet) -> list[FunctionTool]:
    """Return the tools as the SDK's function tools. A call that failed is an answer like any other."""
    need_extra("agents", "openai-agents")
    return [_tool(tool) for tool in tools]


def _tool(tool: Tool) -> FunctionTool:
    from agents import FunctionTool, ToolOutputImage, ToolOutputText

    async def run(context: Any, arguments: str) -> Any:  # noqa: ANN401 - the SDK's context
        result = await tool.call(arguments, call_id=getattr(context, "tool_call_id", None))
        if not result.media:
            return result.text
        images = [
            ToolOutputImage(image_url=f"data:{media.mime_type};base64,{media.base64}")
            for media in result.media
        ]
        return [ToolOutputText(text=result.text), *images]

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=dict(tool.parameters),
        on_invoke_tool=run,
        strict_json_schema=False,
    )
