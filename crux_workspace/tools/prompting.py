"""Prompts that use workspaces: their contexts, their tools, one system text."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crux_workspace.errors import InvalidInputError
from crux_workspace.model.options import refused_option
from crux_workspace.tools.context import WorkspaceContext
from crux_workspace.tools.toolset import Tool, ToolSet

__all__ = ["Injection", "Prompt", "ResolvedPrompt", "prompt"]


@dataclass(frozen=True, slots=True)
class Injection:
    """What a workspace adds to one prompt; everything in it is bound to one namespace."""

    contexts: tuple[WorkspaceContext, ...]
    tools: ToolSet
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResolvedPrompt:
    """A prompt that is ready for a model."""

    id: str
    system: str = field(repr=False)
    tools: ToolSet
    metadata: dict[str, Any]


class Prompt:
    """What a prompt is made of; `resolve` makes it."""

    def __init__(
        self, id: str, use: Iterable[Any], tools: Iterable[Any], system: str | None
    ) -> None:
        given: object = id
        if not isinstance(given, str) or not given.strip():
            raise InvalidInputError("A prompt needs a non-blank id.", details={"option": "id"})
        self.id = id
        self._use = _listed("use", use)
        for item in self._use:
            if not isinstance(item, WorkspaceContext) and not callable(
                getattr(item, "inject", None)
            ):
                raise InvalidInputError(
                    f"use holds {type(item).__name__}, which is neither a workspace nor a context.",
                    details={"option": "use"},
                    hint="Give workspaces, or what ws.as_context() returns.",
                )
        self._tools = list(_tools_in(_listed("tools", tools)))
        text: object = system
        if text is not None and not isinstance(text, str):
            raise refused_option("system", "a str or None", text)
        self._system = system or ""

    def __repr__(self) -> str:
        return f"Prompt(id={self.id!r}, use={len(self._use)})"

    async def resolve(self, input: Any = None) -> ResolvedPrompt:  # noqa: ANN401 - the application's own
        """Make the system text and the tools, as of now.

        Args:
            input: What the prompt is made for; namespace callables are given it with the prompt's id.

        Returns:
            System text, tools and metadata.

        Raises:
            InvalidInputError: Two tools have one name, give a workspace a prefix; or what is used injects something else than an
                `Injection`, as a blocking workspace does (``INVALID_ARGUMENT``).
        """
        contexts: list[WorkspaceContext] = []
        tools = list(self._tools)
        metadata: dict[str, Any] = {}
        for item in self._use:
            if isinstance(item, WorkspaceContext):
                contexts.append(item)
                continue
            injection = await _injected(item, input, self.id)
            contexts += injection.contexts
            tools += injection.tools
            _merge(metadata, injection.metadata)
        ranked = sorted(contexts, key=lambda context: -context.priority)
        texts = [self._system, *[await context.text(input) for context in ranked]]
        return ResolvedPrompt(
            self.id, "\n\n".join(text for text in texts if text), ToolSet(tools), metadata
        )


async def _injected(item: Any, input: Any, prompt_id: str) -> Injection:  # noqa: ANN401 - whatever has `inject`
    given: object = item.inject(input=input, prompt_id=prompt_id)
    if inspect.isawaitable(given):
        given = await given
    if isinstance(given, Injection):
        return given
    raise InvalidInputError(
        f"use holds {type(item).__name__}, whose inject gave {type(given).__name__} instead of an Injection.",
        details={"option": "use"},
        hint="A prompt is resolved asynchronously: give it a Workspace; with a SyncWorkspace call inject() yourself.",
    )


def _listed(option: str, given: object) -> list[Any]:
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        return list(given)
    raise refused_option(option, "a list", given)


def _merge(metadata: dict[str, Any], more: dict[str, Any]) -> None:
    """Add metadata; of several workspaces the first stands under ``workspace``, all under ``workspaces``."""
    for name, value in more.items():
        metadata.setdefault(name, value)
        if name == "workspace":
            metadata.setdefault("workspaces", []).append(value)


def _tools_in(given: Iterable[Any]) -> Iterable[Tool]:
    for item in given:
        if isinstance(item, Tool):
            yield item
        elif isinstance(item, ToolSet):
            yield from item
        else:
            raise InvalidInputError(
                f"tools holds {type(item).__name__}, which is no tool.", details={"option": "tools"}
            )


def prompt(
    id: str,
    use: Iterable[Any] = (),
    tools: Iterable[Any] = (),
    system: str | None = None,
) -> Prompt:
    """Describe a prompt that uses workspaces; nothing is read until it is resolved.

    Args:
        id: Name of the prompt; namespace callables are given it.
        use: Workspaces, each with its tools, and contexts of ``ws.as_context()``, without tools.
        tools: Further tools, or sets of them.
        system: What the system text begins with.

    Returns:
        The prompt; ``await prompt(...).resolve(input=...)`` gives system text, tools and metadata.

    Raises:
        InvalidInputError: A blank id, or something that cannot be used (``INVALID_ARGUMENT``).

    Cost:
        none; resolving lists up to 100 files of each workspace

    Example:
        >>> agent = prompt(id="agent", use=[ws], system="Keep what lasts in files.")
        >>> (await agent.resolve()).tools.names[0]
        'listWorkspace'
    """
    return Prompt(id, use, tools, system)
