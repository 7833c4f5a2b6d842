"""Tools and contexts for blocking code."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from crux_workspace.api.blocking import Blocking
from crux_workspace.tools.context import WorkspaceContext
from crux_workspace.tools.prompting import Injection
from crux_workspace.tools.toolset import Tool, ToolAnnotations, ToolResult, ToolSet

__all__ = ["SyncContext", "SyncInjection", "SyncTool", "SyncToolSet"]


class SyncTool(Blocking):
    """A tool whose `call` waits."""

    def __init__(self, tool: Tool, loop: asyncio.AbstractEventLoop) -> None:
        self._target: Tool = tool
        self._loop = loop

    def __repr__(self) -> str:
        return f"SyncTool({self.name})"

    @property
    def name(self) -> str:
        """Name, as the model knows it."""
        return self._target.name

    @property
    def description(self) -> str:
        """What it does, for the model."""
        return self._target.description

    @property
    def parameters(self) -> Mapping[str, Any]:
        """JSON Schema of the arguments."""
        return self._target.parameters

    @property
    def annotations(self) -> ToolAnnotations:
        """What a client may assume of it."""
        return self._target.annotations

    def call(
        self, arguments: Mapping[str, Any] | str | None = None, *, call_id: str | None = None
    ) -> ToolResult:
        """Carry out a call, as `Tool.call` does."""
        return self._wait(self._target.call(arguments, call_id=call_id))


class SyncToolSet(Blocking):
    """Tools by name whose calls wait; the asynchronous ones are under `tools`."""

    def __init__(self, tools: ToolSet, loop: asyncio.AbstractEventLoop) -> None:
        self.tools = tools
        self._loop = loop

    def __repr__(self) -> str:
        return f"Sync{self.tools!r}"

    def __iter__(self) -> Iterator[SyncTool]:
        return (SyncTool(tool, self._loop) for tool in self.tools)

    def __len__(self) -> int:
        return len(self.tools)

    def __contains__(self, name: object) -> bool:
        return name in self.tools

    def __getitem__(self, name: str) -> SyncTool:
        return SyncTool(self.tools[name], self._loop)

    @property
    def names(self) -> list[str]:
        """The names, in order."""
        return self.tools.names

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        call_id: str | None = None,
    ) -> ToolResult:
        """Carry out a call of a tool by its name, as `ToolSet.call` does."""
        return self._wait(self.tools.call(name, arguments, call_id=call_id))


class SyncContext(Blocking):
    """A workspace's description whose `text` waits."""

    def __init__(self, context: WorkspaceContext, loop: asyncio.AbstractEventLoop) -> None:
        self._target: WorkspaceContext = context
        self._loop = loop

    def __repr__(self) -> str:
        return f"SyncContext({self._target.id})"

    def text(self, input: Any = None) -> str:  # noqa: ANN401 - whatever the application prompts with
        """Return the description as of now, as `WorkspaceContext.text` does."""
        return self._wait(self._target.text(input))


@dataclass(frozen=True, slots=True)
class SyncInjection:
    """What a workspace adds to one prompt, for blocking code."""

    contexts: tuple[SyncContext, ...]
    tools: SyncToolSet
    metadata: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, injection: Injection, loop: asyncio.AbstractEventLoop) -> SyncInjection:
        """Make the blocking form of an injection."""
        contexts = tuple(SyncContext(context, loop) for context in injection.contexts)
        return cls(contexts, SyncToolSet(injection.tools, loop), injection.metadata)
