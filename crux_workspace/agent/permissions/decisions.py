"""What the gate answers, and what a person is shown and answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from crux_workspace.errors import InvalidInputError
from crux_workspace.model.options import shown
from crux_workspace.model.values import Value

__all__ = ["Answer", "AnswerWord", "Decision", "Grant", "Interrupt", "Outcome", "preview"]

Outcome: TypeAlias = Literal["allow", "deny", "interrupt"]
AnswerWord: TypeAlias = Literal["once", "always", "deny", "cancel"]
_PREVIEW_CHARS = 500


@dataclass(frozen=True, slots=True)
class Interrupt(Value):
    """An operation that waits for a person."""

    interrupt_id: str
    kind: str
    """``command``, ``path``, ``tool``, ``subagent`` or ``memory``."""
    detail: Mapping[str, Any] = field(repr=False)
    """What the person is shown, in the names that clients see."""
    tool_call_id: str | None
    allow_always: bool
    """Whether a standing approval is offered."""
    thread_id: str
    """Thread that asks; it is answered through its root thread."""
    digest: str
    """SHA-256 of tool, arguments and base version: the approval is for these alone."""
    created_at: int

    def to_dict(self, form: Literal["page", "ag-ui"] = "page") -> dict[str, Any]:
        """Return the payload that clients get.

        Args:
            form: ``page`` for the plain payload of the interrupt event, ``ag-ui`` for an AG-UI interrupt.

        Returns:
            JSON data.

        Raises:
            InvalidInputError: An unknown form (``INVALID_ARGUMENT``).
        """
        payload: dict[str, Any] = {
            "interruptId": self.interrupt_id,
            "type": "permission-request",
            "kind": self.kind,
        }
        if self.tool_call_id is not None:
            payload["callId" if self.kind == "subagent" else "toolCallId"] = self.tool_call_id
        if self.kind == "subagent":
            payload["threadId"] = self.thread_id
        if not self.allow_always:
            payload["allowAlways"] = False
        payload["detail"] = json.loads(json.dumps(dict(self.detail)))
        if form == "page":
            return payload
        if form != "ag-ui":
            raise InvalidInputError(f"There is no form {shown(form)}; use 'page' or 'ag-ui'.")
        answers = ["once", "always", "deny"] if self.allow_always else ["once", "deny"]
        told: dict[str, Any] = {
            "id": self.interrupt_id,
            "reason": "permission-request",
            "responseSchema": {"type": "string", "enum": answers},
            "metadata": payload,
        }
        if self.tool_call_id is not None:
            told["toolCallId"] = self.tool_call_id
        return told


@dataclass(frozen=True, slots=True)
class Decision(Value):
    """What the gate says of one operation."""

    allowed: bool
    outcome: Outcome
    rule: str | None = None
    """The rule that decided, if one did."""
    reason: str | None = field(default=None, repr=False)
    """Why it does not run, fit for a model to read."""
    code: str | None = None
    """Error code when it does not run."""
    interrupt: Interrupt | None = None
    """What has to be answered first."""
    answer: str | None = None
    """What a person answered: ``once``, ``always`` or ``deny``; None when a rule decided."""

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as plain JSON data; the interrupt in the form that clients see."""
        plain = {
            name: getattr(self, name)
            for name in ("allowed", "outcome", "rule", "reason", "code", "answer")
        }
        return {**plain, "interrupt": self.interrupt.to_dict() if self.interrupt else None}


@dataclass(frozen=True, slots=True)
class Answer(Value):
    """What a person says to one interrupt; ``cancel`` denies."""

    interrupt_id: str
    answer: AnswerWord


@dataclass(frozen=True, slots=True)
class Grant(Value):
    """A standing approval that a person gave by ``always``."""

    grant_id: str
    key: str
    pattern: str
    thread_id: str | None
    """Thread it is for; None for the whole application."""
    created_at: int


def preview(value: object) -> str:
    """Return a bounded text of a call's input, for display only."""
    if isinstance(value, str):
        text = value
    else:
        try:
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        except (TypeError, ValueError):
            text = str(value)
    return text if len(text) <= _PREVIEW_CHARS else text[:_PREVIEW_CHARS] + "…"
