"""What the gate says: decisions from judgements and answers, and the errors that they are in code."""

from __future__ import annotations

from crux_workspace.agent.permissions.decisions import Decision, Interrupt
from crux_workspace.agent.permissions.ledger import Answered
from crux_workspace.agent.permissions.verdicts import Judgement
from crux_workspace.errors import (
    ApprovalRequiredError,
    ErrorCode,
    NotFoundError,
    PermissionDeniedError,
)

__all__ = ["answered_decision", "closed", "error_of", "refusal"]


def refusal(found: Judgement) -> Decision:
    """Return the refusal by a rule, a constraint or a missing child."""
    code = found.code or ErrorCode.PERMISSION_DENIED
    return Decision(False, "deny", found.rule, found.reason, code.value)


def closed(found: Judgement) -> Decision:
    """Return the refusal when nobody can be asked; it names the key to allow."""
    code = found.code or ErrorCode.PERMISSION_DENIED
    advice = (
        f"Add an allow rule for {found.needs} to the permissions."
        if found.needs
        else "It needs a person each time; run it interactively."
    )
    reason = f"Permission denied: {found.subject}, and nobody can be asked here. {advice}"
    return Decision(False, "deny", None, reason, code.value)


def answered_decision(answered: Answered) -> Decision:
    """Return what a person's answer means for the call."""
    rule = answered.grants[0][1] if answered.answer == "always" and answered.grants else None
    if answered.answer == "deny":
        return Decision(
            False,
            "deny",
            reason=_refused_by_person(answered.interrupt),
            code=ErrorCode.PERMISSION_DENIED.value,
            interrupt=answered.interrupt,
            answer="deny",
        )
    return Decision(True, "allow", rule, interrupt=answered.interrupt, answer=answered.answer)


def _refused_by_person(interrupt: Interrupt) -> str:
    reason = "Permission denied: a person refused this call."
    if interrupt.kind != "memory":
        return reason
    kept = interrupt.detail
    return f"{reason} The memory {kept.get('oldId')} of {kept.get('identity')} is kept."


def error_of(decision: Decision) -> Exception:
    """Return the error that a decision raises in code."""
    message = decision.reason or "Permission denied."
    if decision.outcome == "interrupt":
        return ApprovalRequiredError(
            message,
            details={"interrupt_id": decision.interrupt.interrupt_id} if decision.interrupt else {},
            hint="Answer the interrupt, then repeat the same call.",
        ).waiting_for(decision.interrupt)
    details = {"rule": decision.rule} if decision.rule is not None else {}
    if decision.code == ErrorCode.SUBAGENT_UNKNOWN:
        return NotFoundError(message, code=decision.code, details=details)
    return PermissionDeniedError(
        message, code=decision.code, details=details, hint="Do without it, or ask for permission."
    )
