"""LangChain's form of tools; needs the extra ``langchain``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from crux_workspace.errors import ErrorCode, StateError
from crux_workspace.model.extras import need_extra
from crux_workspace.tools.toolset import Tool, ToolResult, ToolSet

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool

__all__ = ["tools_of"]


def tools_of(tools: ToolSet) -> list[StructuredTool]:
    """Return the tools as LangChain's, for agents that run asynchronously, and for those that run in another thread than the loop.

    The content is what the model reads, the artifact is the `ToolResult`. A call that failed is content too, so the agent goes on.
    """
    need_extra("langchain_core", "langchain")
    home = _Home()
    return [_tool(tool, home) for tool in tools]


class _Home:
    """The loop that the tools belong to: the one they were called on last, or made on."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = _running()

    def waited(self, work: Any) -> Any:  # noqa: ANN401 - a coroutine function without arguments
        """Wait for work from a thread that does not run the loop.

        Raises:
            StateError: On the loop's own thread it would wait for itself (``WRONG_THREAD``), or no loop is known (``WRONG_LOOP``).
        """
        if self.loop is None or not self.loop.is_running():
            raise StateError(
                "The tools belong to no running event loop, so a call cannot be waited for.",
                code=ErrorCode.WRONG_LOOP,
                hint="Use ainvoke, or the tools of a workspace of open_workspace_sync.",
            )
        if _running() is self.loop:
            raise StateError(
                "A tool was invoked synchronously on the thread of its own event loop, which would wait for itself.",
                code=ErrorCode.WRONG_THREAD,
                hint="Use ainvoke, invoke the agent in another thread, or take the tools of a workspace of open_workspace_sync.",
            )
        return asyncio.run_coroutine_threadsafe(work(), self.loop).result()


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _tool(tool: Tool, home: _Home) -> StructuredTool:
    from langchain_core.tools import StructuredTool

    async def run(**arguments: Any) -> tuple[Any, ToolResult]:  # noqa: ANN401 - as the model sent them
        home.loop = _running()
        result = await tool.call(arguments)
        return _content(result), result

    def wait(**arguments: Any) -> tuple[Any, ToolResult]:  # noqa: ANN401 - as the model sent them
        answer: tuple[Any, ToolResult] = home.waited(lambda: run(**arguments))
        return answer

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=dict(tool.parameters),
        func=wait,
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
