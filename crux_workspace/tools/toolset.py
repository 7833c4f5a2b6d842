"""A tool, its result, and a set of tools by name."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from crux_workspace.errors import (
    ApprovalRequiredError,
    ErrorCode,
    InternalError,
    InvalidInputError,
    WorkspaceError,
)
from crux_workspace.model.values import Value

__all__ = ["Handler", "Tool", "ToolError", "ToolResult", "ToolSet"]

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
class ToolResult(Value):
    """What a tool answers."""

    ok: bool
    output: Any = field(repr=False)
    """JSON data for the model."""
    error: ToolError | None = None
    value: Any = field(default=None, repr=False)
    """The Python result."""
    interrupt: Any = None
    """The `crux_workspace.agent.Interrupt` that has to be answered before the same call is repeated."""

    @classmethod
    def success(cls, output: Any, value: Any = None) -> ToolResult:  # noqa: ANN401 - JSON
        """Return the result of a call that did what it should."""
        return cls(True, output, value=output if value is None else value)

    @classmethod
    def failure(cls, error: WorkspaceError) -> ToolResult:
        """Return the result of a call that did not: the error, and what has to be answered first, if anything."""
        told = ToolError(error.code.value, error.message, error.hint)
        waiting = error.interrupt if isinstance(error, ApprovalRequiredError) else None
        return cls(False, {"error": told.to_dict()}, told, interrupt=waiting)


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

    async def call(
        self, arguments: Mapping[str, Any] | None = None, *, call_id: str | None = None
    ) -> ToolResult:
        """Carry out a call; a wrong argument, a denial or a failure is a result, never an exception.

        Args:
            arguments: By name, as the model gave them.
            call_id: The model's id of the call.

        Returns:
            The result.
        """
        given = {} if arguments is None else arguments
        try:
            if not isinstance(given, Mapping):
                raise InvalidInputError("The arguments must be an object.")
            return await self.handler(given, call_id)
        except WorkspaceError as error:
            return ToolResult.failure(error)
        except Exception:
            _log.exception("tool %s failed", self.name)
            message = f"The tool {self.name} failed unexpectedly; its operator finds the cause in the log."
            return ToolResult.failure(InternalError(message, code=ErrorCode.INTERNAL))


class ToolSet:
    """Tools by name, in order. Immutable."""

    __slots__ = ("_tools",)

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise InvalidInputError(
                    f"Two tools have the name {tool.name!r}; rename one.",
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
