"""pydantic-ai's form of tools; needs the extra ``pydantic-ai``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crux_workspace.model.extras import need_extra
from crux_workspace.tools.toolset import Tool, ToolResult, ToolSet

if TYPE_CHECKING:
    from pydantic_ai import Tool as PydanticTool

__all__ = ["tools_of"]


def tools_of(tools: ToolSet) -> list[PydanticTool[Any]]:
    """Return the tools as pydantic-ai's. A call that failed is an answer like any other, so no retry is used up."""
    need_extra("pydantic_ai", "pydantic-ai")
    return [_tool(tool) for tool in tools]


def _tool(tool: Tool) -> PydanticTool[Any]:
    from pydantic_ai import BinaryContent, ToolReturn
    from pydantic_ai import Tool as PydanticTool

    async def run(**arguments: Any) -> Any:  # noqa: ANN401 - as the model sent them
        result: ToolResult = await tool.call(arguments)
        if not result.media:
            return result.output
        images = [BinaryContent(data=m.data, media_type=m.mime_type) for m in result.media]
        return ToolReturn(return_value=result.output, content=images)

    return PydanticTool.from_schema(
        run,
        name=tool.name,
        description=tool.description,
        json_schema=dict(tool.parameters),
    )
