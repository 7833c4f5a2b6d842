"""Anthropic's form: tools, and the message that answers a model's calls. Plain data; no package is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crux_workspace.tools.toolset import ToolResult, ToolSet

__all__ = ["AnthropicTools", "tools_of"]


class AnthropicTools(list[dict[str, Any]]):
    """The ``tools`` of a message request; `answer` carries out the calls of its answer."""

    def __init__(self, tools: ToolSet) -> None:
        super().__init__(
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": dict(tool.parameters),
            }
            for tool in tools
        )
        self._tools = tools

    async def answer(self, message: Any) -> dict[str, Any] | None:  # noqa: ANN401 - an SDK object or a dict
        """Carry out the ``tool_use`` blocks of an answer, one after another.

        Args:
            message: What ``client.messages.create`` returned, or the same as a dictionary.

        Returns:
            The ``user`` message with one ``tool_result`` block a call, in order; None when nothing is called.
        """
        blocks = [
            await self._result(block)
            for block in _field(message, "content") or ()
            if _field(block, "type") == "tool_use"
        ]
        return {"role": "user", "content": blocks} if blocks else None

    async def _result(self, block: Any) -> dict[str, Any]:  # noqa: ANN401
        call_id = _field(block, "id")
        result = await self._tools.call(
            _field(block, "name"), _field(block, "input"), call_id=call_id
        )
        return {
            "type": "tool_result",
            "tool_use_id": call_id,
            "content": _content(result),
            "is_error": not result.ok,
        }


def _content(result: ToolResult) -> str | list[dict[str, Any]]:
    if not result.media:
        return result.text
    images = [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": media.mime_type, "data": media.base64},
        }
        for media in result.media
    ]
    return [{"type": "text", "text": result.text}, *images]


def _field(of: Any, name: str) -> Any:  # noqa: ANN401 - an SDK object or a dict
    return of.get(name) if isinstance(of, Mapping) else getattr(of, name, None)


def tools_of(tools: ToolSet) -> AnthropicTools:
    """Return the tools in Anthropic's form."""
    return AnthropicTools(tools)
