"""What rules and constraints say of a request, before anybody is asked."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from crux_workspace.agent.commands.judging import CommandVerdict, Verdict, judge_command
from crux_workspace.agent.commands.scripts import Redirection
from crux_workspace.agent.permissions.decisions import preview
from crux_workspace.agent.permissions.policy import (
    Approve,
    ConstraintContext,
    PermissionPolicy,
    Predicate,
)
from crux_workspace.agent.permissions.requests import (
    ClientToolRequest,
    CommandRequest,
    MemoryRequest,
    PathRequest,
    Request,
    SubagentRequest,
    ToolRequest,
    canonical,
)
from crux_workspace.agent.permissions.rules import EMPTY_RULES, RuleSet
from crux_workspace.errors import ErrorCode, InvalidInputError

__all__ = [
    "Judgement",
    "Lists",
    "command_refusal",
    "delegation_verdict",
    "judge",
    "suggested_folder",
]

_FREE_TARGETS = frozenset({"/dev/null"})


@dataclass(frozen=True, slots=True)
class Lists:
    """The rules that count for one thread."""

    allowed: RuleSet
    denied: RuleSet
    scope: str | None = None
    """The thread that a standing approval would be for; None: the application."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found, and what a person would be shown."""

    outcome: Literal["allow", "deny", "ask"]
    rule: str | None = None
    reason: str | None = None
    code: ErrorCode | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    grants: tuple[tuple[str, str], ...] = ()
    """What ``always`` adds: (key, pattern); empty when it is not offered."""
    allow_always: bool = False
    needs: str = ""
    """Gate key that an allow rule would need, for the refusal."""
    subject: str = ""
    """What it is about, in a few words."""
    runs_headless: bool = False
    """It runs when nobody can be asked."""


_RUN = Judgement("allow")


def denied(
    subject: str, *, rule: str | None = None, code: ErrorCode = ErrorCode.PERMISSION_DENIED
) -> Judgement:
    """Return the refusal by a deny rule."""
    return Judgement("deny", rule, f"Permission denied: {subject} is denied by a rule.", code)


async def judge(
    request: Request, lists: Lists, policy: PermissionPolicy, context: ConstraintContext
) -> Judgement:
    """Judge a request by rules and constraints."""
    if isinstance(request, PathRequest):
        return _path(request, lists)
    if isinstance(request, CommandRequest):
        return _command(request, lists)
    if isinstance(request, ToolRequest):
        return await _tool(request, lists, policy, context)
    if isinstance(request, SubagentRequest):
        return await _subagent(request, lists, policy, context)
    if isinstance(request, ClientToolRequest):
        rule = lists.denied.exact("clientTool", request.name)
        return denied(f"client tool {request.name}", rule=rule) if rule is not None else _RUN
    return _memory(request, lists, policy)


# -- paths


def suggested_folder(operation: str, path: str) -> str:
    """Return the rule to suggest: the folder, with a final slash; never the root."""
    if operation == "listDir":
        return path if path == "/" else f"{path}/"
    folder = path.rpartition("/")[0]
    return f"{folder}/" if folder else path


def _path(request: PathRequest, lists: Lists) -> Judgement:
    subject = f"{request.operation} of {request.path}"
    for path in dict.fromkeys((request.path, canonical(request.spelled))):
        for key in request.keys:
            rule = lists.denied.path(key, path, folded=True)
            if rule is not None:
                return denied(subject, rule=rule)
    if request.is_inside:
        return _RUN
    rules = {key: lists.allowed.path(key, request.path) for key in request.keys}
    missing = [key for key, rule in rules.items() if rule is None]
    if not missing:
        return Judgement("allow", next(iter(rules.values())))
    pattern = suggested_folder(request.operation, request.path)
    always = pattern != "/"
    return Judgement(
        "ask",
        detail={
            "operation": request.operation,
            "path": request.path,
            "suggestedPattern": pattern if always else None,
        },
        grants=tuple((key, pattern) for key in missing) if always else (),
        allow_always=always,
        needs=" and ".join(missing),
        subject=f"{request.path} is outside the workspace",
    )


# -- commands


def _command(request: CommandRequest, lists: Lists) -> Judgement:
    found = judge_command(request.command, lists.allowed.words, lists.denied.words)
    subject = f"the command {preview(request.command)!r}"
    if found.verdict is Verdict.DENY:
        return denied(subject, rule=found.rule)
    opened = [_redirection(item, request, found, lists) for item in found.redirections]
    refused = next((item for item in opened if item.outcome == "deny"), None)
    if refused is not None:
        return refused
    asks = [item for item in opened if item.outcome == "ask"]
    if found.verdict is Verdict.ALLOW and not asks:
        return Judgement("allow", found.rule)
    grants = [grant for item in asks for grant in item.grants]
    always = all(item.allow_always for item in asks)
    if found.verdict is not Verdict.ALLOW:
        always = always and found.suggestion is not None
        grants = [("bash", found.suggestion or ""), *grants]
    grants = list(dict.fromkeys(grants))
    detail: dict[str, Any] = {
        "command": request.command,
        "suggestedPattern": found.suggestion or (grants[0][1] if always else None),
    }
    if not always:
        detail["suggestedPattern"] = None
    if len(grants) > 1 and always:
        detail["suggestedRules"] = [{"key": key, "pattern": text} for key, text in grants]
    if found.why is not None and not always:
        detail["reason"] = found.why
    return Judgement(
        "ask",
        detail=detail,
        grants=tuple(grants) if always else (),
        allow_always=always,
        needs=" and ".join(dict.fromkeys(key for key, _ in grants)) or "bash",
        subject=f"{subject} has no matching rule",
    )


def command_refusal(request: CommandRequest, denied_rules: RuleSet) -> str | None:
    """Return why deny rules refuse a command, or may; None when they have nothing against it."""
    if not denied_rules:
        return None
    lists = Lists(EMPTY_RULES, denied_rules)
    found = judge_command(request.command, (), denied_rules.words)
    opened = (_redirection(item, request, found, lists) for item in found.redirections)
    refused = next((item for item in opened if item.outcome == "deny"), None)
    if refused is not None:
        return refused.reason
    subject = f"the command {preview(request.command)!r}"
    if found.verdict is Verdict.DENY:
        return denied(subject).reason
    if found.may_be_denied and denied_rules.words:
        return f"Permission denied: {subject} may be denied by a rule. {found.why}"
    return None


def _redirection(
    item: Redirection, request: CommandRequest, found: CommandVerdict, lists: Lists
) -> Judgement:
    target = item.target
    if target in _FREE_TARGETS:
        return _RUN
    is_relative = target is not None and not target.startswith("/")
    if target is None or (is_relative and (request.root is None or found.moves)):
        return Judgement("ask")
    operation: Literal["readFile", "writeFile"] = (
        "readFile" if item.operation == "readFile" else "writeFile"
    )
    try:
        opened = PathRequest(operation, target, request.root).resolved()
    except InvalidInputError:
        return Judgement("ask")
    return _path(opened, lists)


# -- tools


async def _tool(
    request: ToolRequest, lists: Lists, policy: PermissionPolicy, context: ConstraintContext
) -> Judgement:
    subject = f"tool {request.name}"
    rule = lists.denied.exact("tool", request.name)
    if rule is not None:
        return denied(subject, rule=rule)
    predicate = policy.constrain.get(request.name)
    entry = policy.approvals.get(request.name)
    if predicate is not None:
        verdict = await _constraint(predicate, dict(request.arguments), context)
        if not isinstance(verdict, Approve):
            return verdict or _RUN
        entry = replace(verdict, allow_always=True)
    if entry is None:
        return _RUN
    allowing = lists.allowed.exact("tool", request.name)
    if allowing is not None and entry.allow_always:
        return Judgement("allow", allowing)
    detail: dict[str, Any] = {
        "toolName": request.name,
        "argsPreview": preview(dict(request.arguments)),
        "suggestedPattern": request.name,
    }
    if entry.reason:
        detail["reason"] = entry.reason
    return Judgement(
        "ask",
        detail=detail,
        grants=(("tool", request.name),) if entry.allow_always else (),
        allow_always=entry.allow_always,
        needs="tool" if entry.allow_always else "",
        subject=f"{subject} needs approval",
    )


async def _constraint(
    predicate: Predicate, arguments: Mapping[str, Any], context: ConstraintContext
) -> Judgement | Approve | None:
    """Return a refusal, a wish to ask, or None for "run"."""
    try:
        found = predicate(arguments, context)
        if inspect.isawaitable(found):
            found = await found
    except Exception:
        return Judgement("deny", reason=_CONSTRAINT_FAILED, code=ErrorCode.PERMISSION_DENIED)
    if found is True:
        return None
    if isinstance(found, str):
        return Judgement("deny", reason=found, code=ErrorCode.PERMISSION_DENIED)
    if type(found) is Approve and (found.reason is None or isinstance(found.reason, str)):
        return found
    return Judgement("deny", reason=_CONSTRAINT_FAILED, code=ErrorCode.PERMISSION_DENIED)


_CONSTRAINT_FAILED = "Permission denied: the constraint check failed, so the call was not made."


# -- subagents


async def delegation_verdict(
    request: SubagentRequest, policy: PermissionPolicy, context: ConstraintContext
) -> Judgement | Approve | None:
    """Return what the delegation says without asking anybody: a refusal, a wish to ask, or None for "run".

    These refusals hold in every mode.
    """
    if not request.route:
        return Judgement(
            "deny",
            reason=f"No subagent named {request.name!r} is available.",
            code=ErrorCode.SUBAGENT_UNKNOWN,
        )
    if policy.delegation is None:
        return None
    rule = policy.delegation.rule(request.name)
    if rule.action == "deny":
        reason = rule.reason or f"Handing work to the subagent {request.name!r} is denied."
        return Judgement("deny", reason=reason, code=ErrorCode.DELEGATION_DENIED)
    if rule.action == "approve":
        return Approve(reason=rule.reason)
    if rule.predicate is None:
        return None
    found = await _constraint(rule.predicate, {"input": request.input}, context)
    return (
        replace(found, code=ErrorCode.DELEGATION_DENIED) if isinstance(found, Judgement) else found
    )


async def _subagent(
    request: SubagentRequest, lists: Lists, policy: PermissionPolicy, context: ConstraintContext
) -> Judgement:
    subject = f"subagent {request.name}"
    rule = lists.denied.exact("subagent", request.edge)
    if rule is not None:
        return denied(subject, rule=rule, code=ErrorCode.DELEGATION_DENIED)
    found = await delegation_verdict(request, policy, context)
    if found is None:
        return _RUN
    if isinstance(found, Judgement):
        return found
    allowing = lists.allowed.exact("subagent", request.edge)
    if allowing is not None:
        return Judgement("allow", allowing)
    detail: dict[str, Any] = {
        "parentRouteId": request.parent_route,
        "subagentName": request.name,
        "subagentRouteId": request.route,
        "inputPreview": preview(request.input),
    }
    if found.reason:
        detail["reason"] = found.reason
    detail["suggestedPattern"] = request.edge
    return Judgement(
        "ask",
        code=ErrorCode.DELEGATION_DENIED,
        detail=detail,
        grants=(("subagent", request.edge),),
        allow_always=True,
        needs="subagent",
        subject=f"{subject} needs approval",
    )


# -- memory


def _memory(request: MemoryRequest, lists: Lists, policy: PermissionPolicy) -> Judgement:
    rule = lists.denied.prefix("memory", request.candidate)
    if rule is not None:
        kept = "" if request.old_id is None else f" The memory {request.old_id} is kept."
        found = denied(f"a memory of {request.identity}", rule=rule)
        return replace(found, reason=f"{found.reason}{kept}")
    replaces = request.old_id is not None and request.old != request.new
    if policy.memory_writes == "auto" or not replaces:
        return _RUN
    allowing = lists.allowed.prefix("memory", request.candidate)
    if allowing is not None:
        return Judgement("allow", allowing)
    return Judgement(
        "ask",
        detail={
            "namespace": request.namespace,
            "identity": request.identity,
            "oldId": request.old_id,
            "oldContent": request.old,
            "newContent": request.new,
            "suggestedPattern": request.pattern,
        },
        grants=(("memory", request.pattern),),
        allow_always=True,
        needs="memory",
        subject=f"replacing a memory of {request.identity} needs approval",
        runs_headless=True,
    )
