"""Rules that are legal and yet hardly what was meant."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from crux_workspace.agent.commands.judging import SHIFTING, Verdict, interpreters, judge_command
from crux_workspace.agent.commands.words import base_name
from crux_workspace.agent.permissions.policy import PermissionPolicy
from crux_workspace.agent.permissions.requests import KEYS, covers
from crux_workspace.agent.permissions.rules import RuleSet
from crux_workspace.model.values import Value

__all__ = ["GATED_TOOLS", "RuleWarning", "lint_policy"]

GATED_TOOLS = frozenset({"runBash", "readFile", "writeFile", "editFile", "listDir"})
_PATH_KEYS = ("readFile", "writeFile", "listDir")


@dataclass(frozen=True, slots=True)
class RuleWarning(Value):
    """One rule that is hardly what was meant."""

    code: str
    """``approve-gated``, ``approve-denied``, ``approve-constrained``, ``unknown-tool``, ``approve-remember``, ``root-wide``,
    ``interpreter``, ``shifting``, ``dead`` or ``not-canonical``."""
    message: str
    key: str
    rule: str


def lint_policy(policy: PermissionPolicy, tools: Collection[str]) -> list[RuleWarning]:
    """Return what is hardly meant in a policy.

    Args:
        policy: The policy.
        tools: Names of the tools that there are, of a subagent those it was granted; empty when that is not known.

    Returns:
        The warnings.
    """
    return [
        *_tools(policy, tools),
        *_paths(policy),
        *_commands(policy),
        *_doubled(policy.allowed, "allow"),
        *_doubled(policy.denied, "deny"),
    ]


def _tools(policy: PermissionPolicy, tools: Collection[str]) -> Iterator[RuleWarning]:
    for name in policy.approvals:
        if name in GATED_TOOLS:
            yield RuleWarning(
                "approve-gated",
                f"{name} has a gate of its own; approving it asks twice.",
                "tool",
                name,
            )
        if policy.denied.exact("tool", name):
            yield RuleWarning(
                "approve-denied", f"{name} is denied, so its approval is dead.", "tool", name
            )
        if name in policy.constrain:
            yield RuleWarning(
                "approve-constrained",
                f"The constraint on {name} wins over its approval.",
                "tool",
                name,
            )
        if name == "remember" and policy.memory_writes == "ask":
            yield RuleWarning(
                "approve-remember",
                "Memory writes ask already; approving remember asks twice.",
                "tool",
                name,
            )
    if not tools:
        return
    named = [*policy.approvals, *policy.constrain, *policy.allowed["tool"], *policy.denied["tool"]]
    for name in dict.fromkeys(named):
        if name not in tools and name != "task":
            yield RuleWarning(
                "unknown-tool",
                f"There is no tool {name} here, or it was not granted; the entry is dead.",
                "tool",
                name,
            )


def _paths(policy: PermissionPolicy) -> Iterator[RuleWarning]:
    for key in _PATH_KEYS:
        for rule in policy.allowed[key]:
            if rule == "/":
                yield RuleWarning("root-wide", f"{key} is allowed everywhere.", key, rule)
            elif os.path.realpath(rule) != rule:
                real = os.path.realpath(rule)
                yield RuleWarning(
                    "not-canonical",
                    f"{rule} leads to {real} here, and rules match real paths.",
                    key,
                    rule,
                )
            denying = policy.denied.path(key, rule)
            if denying is not None:
                yield RuleWarning("dead", f"{rule} is denied by {denying}.", key, rule)


def _commands(policy: PermissionPolicy) -> Iterator[RuleWarning]:
    for rule in policy.allowed.words:
        text = " ".join(rule.words)
        if any(re.search(r"[\s;|&<>()$`*?]", word) for word in rule.words[:1]):
            yield RuleWarning(
                "dead", f"No program has the name {rule.words[0]!r}.", "bash", rule.text
            )
        if rule.words[0] in SHIFTING:
            yield RuleWarning(
                "shifting",
                f"{rule.words[0]} can give later words another meaning.",
                "bash",
                rule.text,
            )
        found = judge_command(text, (), policy.denied.words)
        if found.verdict is Verdict.DENY:
            yield RuleWarning("dead", f"{text} is denied by {found.rule!r}.", "bash", rule.text)
    for rule in interpreters(policy.allowed.words):
        yield RuleWarning(
            "interpreter",
            f"Whoever may run {base_name(rule.words[0])} may run everything it is told to.",
            "bash",
            rule.text,
        )


def _doubled(rules: RuleSet, name: str) -> Iterator[RuleWarning]:
    for at, rule in enumerate(rules.words):
        for other in rules.words[:at] + rules.words[at + 1 :]:
            if len(other.words) < len(rule.words) and rule.words[: len(other.words)] == other.words:
                yield RuleWarning(
                    "dead",
                    f"{name}: {rule.text!r} is covered by {other.text!r}.",
                    "bash",
                    rule.text,
                )
    for key in KEYS:
        if key not in _PATH_KEYS:
            continue
        for rule_text in rules[key]:
            if any(other != rule_text and covers(other, rule_text) for other in rules[key]):
                yield RuleWarning(
                    "dead", f"{name}: {rule_text} is covered by a shorter rule.", key, rule_text
                )
