"""One tool call as the gate holds it together: its id, the approvals it has used, and whether it is only tried."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from crux_workspace.agent.permissions.decisions import Decision, Outcome
from crux_workspace.agent.permissions.front import WouldRun, previewed
from crux_workspace.agent.permissions.requests import checked_call_id
from crux_workspace.agent.permissions.threads import ThreadMethods
from crux_workspace.errors import ApprovalRequiredError
from crux_workspace.tools import ToolResult

__all__ = ["CallMethods", "CurrentCall", "current_call"]


@dataclass(slots=True)
class CurrentCall:
    """One tool call: the approvals it used, to be given back if it pauses again."""

    call_id: str | None
    used: dict[str, dict[str, str]] = field(default_factory=dict)
    """{root thread: {slot: digest}}"""


_current: ContextVar[CurrentCall | None] = ContextVar("crux_workspace_agent_call", default=None)


def current_call() -> CurrentCall | None:
    """Return the tool call that runs here."""
    return _current.get()


class CallMethods(ThreadMethods):
    """The methods of a gate that are about one call of a tool."""

    @asynccontextmanager
    async def calling(self, call_id: str | None = None) -> AsyncIterator[None]:
        """Hold one tool call together: when it pauses again, the approvals it has used already are given back.

        Args:
            call_id: The model's id of the call, shown with its prompts.

        Raises:
            InvalidInputError: The id is no text that can be kept (``INVALID_ARGUMENT``).
        """
        call = CurrentCall(checked_call_id(call_id))
        token = _current.set(call)
        try:
            yield
        except (ApprovalRequiredError, WouldRun):
            await self.give_back()
            raise
        finally:
            _current.reset(token)

    async def give_back(self) -> None:
        """Give back the approvals that the current call (see `calling`) has used: it pauses again and did nothing."""
        call = _current.get()
        if call is None:
            return
        for root, slots in call.used.items():
            await self._ledger.restore(root, slots)
        call.used.clear()

    async def preview(
        self,
        tool: Any,  # noqa: ANN401 - anything like a tool
        arguments: Mapping[str, Any],
        *,
        call_id: str | None = None,
    ) -> Decision:
        """Judge a call of a gated tool without making it; what would be asked is pending afterwards.

        Args:
            tool: A tool of `agent_tools` or `wrap` over this gate.
            arguments: The call's arguments.
            call_id: The model's id of the call.

        Returns:
            The decision on the whole call.
        """
        try:
            with previewed():
                result: ToolResult = await tool.call(arguments, call_id=call_id)
        except WouldRun:
            return Decision(True, "allow")
        error = result.error
        outcome: Outcome = "interrupt" if result.interrupt is not None else "deny"
        return Decision(
            False,
            outcome,
            reason=error.message if error else None,
            code=error.code if error else None,
            interrupt=result.interrupt,
        )
