"""What the frameworks' forms share: importing them, texts for models, and a call that asks."""

from __future__ import annotations

import importlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from crux_workspace.agent.permissions.decisions import Interrupt
from crux_workspace.agent.permissions.gate import PermissionGate
from crux_workspace.errors import ErrorCode, UnsupportedError
from crux_workspace.tools import Tool, ToolResult

__all__ = ["call_asking", "denied_text", "imported", "text_of"]


def imported(module: str, extra: str) -> Any:  # noqa: ANN401 - a module
    """Import a framework's module.

    Raises:
        UnsupportedError: It is not installed (``CAPABILITY_MISSING``); the hint names the extra.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UnsupportedError(
            f"This needs {module.partition('.')[0]}, which is not installed.",
            code=ErrorCode.CAPABILITY_MISSING,
            hint=f"Install crux-workspace[{extra}].",
        ) from error


def text_of(result: ToolResult) -> str:
    """Return a result as the text that a model gets."""
    if isinstance(result.output, str):
        return result.output
    return json.dumps(result.output, ensure_ascii=False)


def denied_text(reason: str | None) -> str:
    """Return what a model is told of a refused call."""
    return json.dumps({"error": {"code": "PERMISSION_DENIED", "message": reason or "Denied."}})


async def call_asking(
    tool: Tool,
    gate: PermissionGate,
    arguments: Mapping[str, Any],
    call_id: str | None,
    ask: Callable[[Interrupt], Awaitable[Any]],
) -> tuple[str, bool]:
    """Make a call; while it waits for a person, ask and repeat it. Return the text for the model and whether it is an error.

    Raises:
        InvalidInputError: An answer that is none (``INVALID_RESUME_PAYLOAD``); the interrupt still waits.
    """
    while True:
        result = await tool.call(arguments, call_id=call_id)
        if result.interrupt is None:
            return text_of(result), not result.ok
        decision = await gate.settle(result.interrupt, await ask(result.interrupt))
        if not decision.allowed:
            return denied_text(decision.reason), True
