"""A tool, its result, and a set of tools by name."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from crux_workspace.errors import InternalError, InvalidInputError, WorkspaceError
from crux_workspace.model.failures import where_it_failed
from crux_workspace.model.options import shown
from crux_workspace.model.sendable import writable
from crux_workspace.model.values import Value

__all__ = ["Handler", "Media", "Tool", "ToolAnnotations", "ToolError", "ToolResult", "ToolSet"]

_log = logging.getLogger("crux_workspace.tools")

Handler = Callable[[Mapping[str, Any], "str | None"], "Awaitable[ToolResult]"]
"""Carries out a call: (arguments, call id)."""


@dataclass(frozen=True, slots=True)
class ToolError(Value):
    """What went wrong, for the model."""

    code: str
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Media(Value):
    """An image that comes with a result, for frameworks whose models can look at it."""

    mime_type: str
    data: bytes = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the image as plain JSON data, its bytes in base64."""
        return {"mime_type": self.mime_type, "data": self.base64}

    @property
    def base64(self) -> str:
        """The bytes in base64."""
        return base64.b64encode(self.data).decode()


@dataclass(frozen=True, slots=True)
class ToolResult(Value):
    """What a tool answers."""

    ok: bool
    output: Any = field(repr=False)
    """JSON data for the model."""
    error: ToolError | None = None
    value: Any = field(default=None, repr=False)
    """The Python result."""
    interrupt: Any = None
    """What has to be answered before the same call is repeated, where a permission gate asks."""
    media: tuple[Media, ...] = ()
    """Images that the call read."""

    @classmethod
    def success(
        cls,
        output: Any,  # noqa: ANN401 - JSON
        value: Any = None,  # noqa: ANN401 - the Python result
        media: tuple[Media, ...] = (),
    ) -> ToolResult:
        """Return the result of a call that did what it should."""
        return cls(True, output, value=output if value is None else value, media=media)

    @classmethod
    def failure(cls, error: WorkspaceError) -> ToolResult:
        """Return the result of a call that did not: the error, and what has to be answered first, if anything."""
        told = ToolError(error.code.value, error.message, error.hint)
        return cls(
            False, {"error": told.to_dict()}, told, interrupt=getattr(error, "interrupt", None)
        )

    @property
    def text(self) -> str:
        """The output as the one string that most frameworks hand to a model."""
        return (
            self.output
            if isinstance(self.output, str)
            else json.dumps(self.output, ensure_ascii=False)
        )


@dataclass(frozen=True, slots=True)
class ToolAnnotations:
    """What a client may assume of a tool before calling it."""

    read_only: bool = False
    destructive: bool = False
    """It can remove or replace what is there, for good or not."""
    idempotent: bool = False
    """Calling it again with the same arguments changes nothing more."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One function that a model may call."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of the arguments."""
    handler: Handler = field(repr=False)
    labels: Mapping[str, str] = field(default_factory=dict)
    """How a client may show a call: ``icon``, ``running``, ``done``."""
    annotations: ToolAnnotations = ToolAnnotations()
    base: Callable[[Mapping[str, Any]], Awaitable[str | None]] | None = field(
        default=None, repr=False
    )
    """Names the version of what a call would work on, so that an approval of the call is for that version alone."""

    def __post_init__(self) -> None:
        for what, told in (
            ("name", self.name),
            ("description", self.description),
            ("parameters", self.parameters),
        ):
            if writable(told) != told:
                raise InvalidInputError(
                    f"The {what} of a tool has a lone surrogate, which no transport can send.",
                    details={"option": what},
                )

    async def call(
        self, arguments: Mapping[str, Any] | str | None = None, *, call_id: str | None = None
    ) -> ToolResult:
        """Carry out a call; a wrong argument, a denial or a failure is a result, never an exception.

        Args:
            arguments: By name, as the model gave them: an object, or its JSON text.
            call_id: The model's id of the call.

        Returns:
            The result.
        """
        try:
            return _sendable(await self.handler(_object(arguments), call_id))
        except WorkspaceError as error:
            return _sendable(ToolResult.failure(error))
        except Exception as error:
            _log.error("tool %s failed: %s", self.name, where_it_failed(error))
            message = f"The tool {self.name} failed unexpectedly; its operator finds the cause in the log."
            hint = "Go on without it, or try other arguments."
            return ToolResult.failure(InternalError(message, hint=hint))


def _sendable(result: ToolResult) -> ToolResult:
    """Return a result as every transport can send it: lone surrogates, which UTF-8 cannot write, are replaced."""
    try:
        result.text.encode()
    except UnicodeEncodeError:
        told = result.error
        if told is not None:
            told = ToolError(told.code, writable(told.message), writable(told.hint))
        return replace(result, output=writable(result.output), error=told)
    return result


def _object(arguments: object) -> Mapping[str, Any]:
    """Return arguments as an object, also when they come as JSON text or not at all."""
    if arguments is None:
        return {}
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            raise InvalidInputError(
                "The arguments are no valid JSON.",
                hint="Send one JSON object with the arguments by name.",
            ) from None
    if not isinstance(arguments, Mapping):
        raise InvalidInputError(
            f"The arguments must be an object, not {type(arguments).__name__}.",
            hint="Send one JSON object with the arguments by name.",
        )
    return arguments


class ToolSet:
    """Tools by name, in order. Immutable."""

    __slots__ = ("_tools",)

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise InvalidInputError(
                    f"Tool name collision: two tools have the name {tool.name!r}; give one of them a prefix.",
                    details={"tool": tool.name},
                )
            self._tools[tool.name] = tool

    def __repr__(self) -> str:
        return f"ToolSet({', '.join(self._tools)})"

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    @property
    def names(self) -> list[str]:
        """The names, in order."""
        return list(self._tools)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        call_id: str | None = None,
    ) -> ToolResult:
        """Carry out a call of a tool by its name; a name that is none of them is a result too.

        Args:
            name: As the model gave it.
            arguments: By name: an object, or its JSON text.
            call_id: The model's id of the call.

        Returns:
            The result.
        """
        tool = self._tools.get(name)
        if tool is None:
            return ToolResult.failure(
                InvalidInputError(
                    f"There is no tool {shown(name)}.",
                    hint=f"Call one of: {', '.join(self._tools)}.",
                )
            )
        return await tool.call(arguments, call_id=call_id)

    def to(self, form: str) -> Any:  # noqa: ANN401 - whatever the framework takes
        """Return the tools in a framework's form.

        Args:
            form: ``openai`` (function tools, with ``await form.answer(message)`` for the calls of a message), ``anthropic`` (likewise),
                ``mcp`` (``mcp.types.Tool``), ``langchain`` (``StructuredTool``), ``pydantic-ai`` (``Tool``) or ``openai-agents``
                (``FunctionTool``).

        Returns:
            A list of that framework's tools.

        Raises:
            InvalidInputError: There is no such form (``INVALID_ARGUMENT``).
            UnsupportedError: The framework is not installed (``CAPABILITY_MISSING``); the message names the extra.
        """
        from crux_workspace.tools.forms import form_of

        return form_of(self, form)
