"""OpenAI's form: function tools, and the messages that answer a model's calls. Plain data; no package is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crux_workspace.tools.toolset import Media, ToolResult, ToolSet

__all__ = ["OpenAITools", "tools_of"]


class OpenAITools(list[dict[str, Any]]):
    """The ``tools`` of a chat completion; `answer` carries out the calls of its message."""

    def __init__(self, tools: ToolSet) -> None:
        super().__init__(
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
            for tool in tools
        )
        self._tools = tools

    def for_responses(self) -> list[dict[str, Any]]:
        """Return the tools in the form of the Responses API."""
        return [{"type": "function", **item["function"], "strict": False} for item in self]

    async def answer(self, message: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - an SDK object or a dict
        """Carry out the tool calls of an assistant's message, one after another.

        Args:
            message: ``completion.choices[0].message``, or the same as a dictionary.

        Returns:
            One ``tool`` message a call, in order; and, where files were images, a ``user`` message that shows them. Empty when the
            message calls nothing.
        """
        answers: list[dict[str, Any]] = []
        shown: list[dict[str, Any]] = []
        for call in _field(message, "tool_calls") or ():
            function = _field(call, "function")
            call_id = _field(call, "id")
            result = await self._tools.call(
                _field(function, "name"), _field(function, "arguments"), call_id=call_id
            )
            answers.append({"role": "tool", "tool_call_id": call_id, "content": result.text})
            shown += _images(result)
        if shown:
            answers.append({"role": "user", "content": shown})
        return answers

    async def answer_response(self, response: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - an SDK object or a dict
        """Carry out the function calls in the output of the Responses API.

        Args:
            response: What ``client.responses.create`` returned.

        Returns:
            One ``function_call_output`` item a call, in order; where a file was an image, the item shows it.
        """
        answers = []
        for item in _field(response, "output") or ():
            if _field(item, "type") != "function_call":
                continue
            call_id = _field(item, "call_id")
            result = await self._tools.call(
                _field(item, "name"), _field(item, "arguments"), call_id=call_id
            )
            shown = [
                {"type": "input_image", "image_url": _data_url(media)} for media in result.media
            ]
            output: Any = result.text
            if shown:
                output = [{"type": "input_text", "text": result.text}, *shown]
            answers.append({"type": "function_call_output", "call_id": call_id, "output": output})
        return answers


def _field(of: Any, name: str) -> Any:  # noqa: ANN401 - an SDK object or a dict
    return of.get(name) if isinstance(of, Mapping) else getattr(of, name, None)


def _images(result: ToolResult) -> list[dict[str, Any]]:
    return [{"type": "image_url", "image_url": {"url": _data_url(media)}} for media in result.media]


def _data_url(media: Media) -> str:
    return f"data:{media.mime_type};base64,{media.base64}"


def tools_of(tools: ToolSet) -> OpenAITools:
    """Return the tools in OpenAI's form."""
    return OpenAITools(tools)
