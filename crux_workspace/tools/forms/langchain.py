"""LangChain's form of tools; needs the extra ``langchain``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crux_workspace.model.extras import need_extra
from crux_workspace.tools.toolset import Tool, ToolResult, ToolSet

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool

__all__ = ["tools_of"]


def tools_of(tools: ToolSet) -> list[StructuredTool]:
    """Return the tools as LangChain's, for agents that run asynchronously.

    The content is what the model reads, the artifact is the `ToolResult`. A call that failed is content too, so the agent goes on.
    """
    need_extra("langchain_core", "langchain")
    return [_tool(tool) for tool in tools]


def _tool(tool: Tool) -> StructuredTool:
    from langchain_core.tools import StructuredTool

    async def run(**arguments: Any) -> tuple[Any, ToolResult]:  # noqa: ANN401 - as the model sent them
        result = await tool.call(arguments)
        return _content(result), result

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=dict(tool.parameters),
        coroutine=run,
        response_format="content_and_artifact",
    )


def _content(result: ToolResult) -> str | list[dict[str, Any]]:
    if not result.media:
        return result.text
    images = [
        {"type": "image", "base64": media.base64, "mime_type": media.mime_type}
        for media in result.media
    ]
    return [{"type": "text", "text": result.text}, *images]
