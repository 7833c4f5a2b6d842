"""Tools and contexts for blocking code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from crux_workspace.api.blocking import Blocking
from crux_workspace.tools.context import WorkspaceContext
from crux_workspace.tools.prompting import Injection
from crux_workspace.tools.toolset import Handler, Tool, ToolAnnotations, ToolResult, ToolSet

__all__ = ["SyncContext", "SyncInjection", "SyncMessages", "SyncTool", "SyncToolSet"]


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

    def to(self, form: str) -> Any:  # noqa: ANN401 - whatever the framework takes
        """Return the tools in a framework's form, as `ToolSet.to` does, for code that waits and for agents on loops of their own.

        The `answer` of OpenAI's and Anthropic's forms waits; LangChain's tools can be invoked either way.
        """
        made = ToolSet(
            replace(tool, handler=self._bridged(tool.handler)) for tool in self.tools
        ).to(form)
        if form in ("openai", "anthropic"):
            return SyncMessages(made, self._loop)
        if form == "langchain":
            for tool in made:
                tool.func = self._waiting(tool.coroutine)
        return made

    def _bridged(self, handler: Handler) -> Handler:
        """Let a handler run on the workspace's loop, whichever loop it is called on."""

        async def call(arguments: Mapping[str, Any], call_id: str | None) -> ToolResult:
            async def work() -> ToolResult:
                return await handler(arguments, call_id)

            if asyncio.get_running_loop() is self._loop:
                return await work()
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self._loop))

        return call

    def _waiting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:  # noqa: ANN401 - as the model sent them
            return self._wait(function(**arguments))

        return call


class SyncMessages(Blocking, list[dict[str, Any]]):
    """OpenAI's or Anthropic's form of tools whose answers wait."""

    def __init__(self, tools: Any, loop: asyncio.AbstractEventLoop) -> None:  # noqa: ANN401 - one of the two forms
        super().__init__(tools)
        self._target = tools
        self._loop = loop

    def answer(self, message: Any) -> Any:  # noqa: ANN401 - an SDK object or a dict
        """Carry out the calls of a message."""
        return self._wait(self._target.answer(message))

    def for_responses(self) -> list[dict[str, Any]]:
        """Return OpenAI's tools in the form of the Responses API."""
        found: list[dict[str, Any]] = self._target.for_responses()
        return found

    def answer_response(self, response: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - an SDK object or a dict
        """Carry out the function calls in the output of the Responses API."""
        found: list[dict[str, Any]] = self._wait(self._target.answer_response(response))
        return found


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
