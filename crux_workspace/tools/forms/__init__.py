"""The forms that frameworks take tools in; each is loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from crux_workspace.errors import InvalidInputError
from crux_workspace.model.options import shown

if TYPE_CHECKING:
    from crux_workspace.tools.toolset import ToolSet

__all__ = ["FORMS", "form_of"]

FORMS = {
    "openai": "openai_messages",
    "anthropic": "anthropic_messages",
    "mcp": "mcp",
    "langchain": "langchain",
    "pydantic-ai": "pydantic_ai",
    "openai-agents": "openai_agents",
}
"""Module of each form; it has ``tools_of(tools)``."""


def form_of(tools: ToolSet, form: str) -> Any:  # noqa: ANN401 - whatever the framework takes
    """Return tools in a framework's form; see `ToolSet.to`."""
    given: object = form
    if not isinstance(given, str) or given not in FORMS:
        raise InvalidInputError(
            f"There is no form {shown(form)} of tools.",
            details={"option": "form"},
            hint=f"Choose from: {', '.join(FORMS)}.",
        )
    return import_module(f"{__name__}.{FORMS[form]}").tools_of(tools)
