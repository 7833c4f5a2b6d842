"""What an application allows: lists of rules, tools to ask about, constraints, delegation."""

from __future__ import annotations

import tomllib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from crux_workspace.agent.permissions.rules import RuleSet, RuleTable, check_rule, invalid_policy
from crux_workspace.model.options import shown

__all__ = [
    "Approve",
    "ConstraintContext",
    "Delegation",
    "DelegationRule",
    "Mode",
    "PermissionPolicy",
    "Predicate",
    "ThreadPolicy",
    "check_mode",
]

Mode: TypeAlias = Literal["interactive", "non-interactive", "bypass"]
MODES: tuple[Mode, ...] = ("interactive", "non-interactive", "bypass")
_ACTIONS = ("allow", "deny", "approve", "constrain")


@dataclass(frozen=True, slots=True)
class ConstraintContext:
    """What a constraint may look at beside the arguments."""

    name: str
    """The tool, or the child's name."""
    thread_id: str
    call_id: str | None
    parent_route: str | None = None
    """For a child: the route that hands work to it."""
    route: str | None = None
    """For a child: its own route."""


Predicate: TypeAlias = Callable[
    [Mapping[str, Any], ConstraintContext], "object | Awaitable[object]"
]
"""``True`` runs, a text denies with that text, `Approve` asks; anything else, and an exception, denies."""


@dataclass(frozen=True, slots=True)
class Approve:
    """A person has to agree: named in `PermissionPolicy.approve`, or returned by a constraint (then without a tool)."""

    tool: str = ""
    allow_always: bool = True
    """Whether a standing approval may be given; without it every call asks."""
    reason: str | None = None
    """Shown to the person."""

    def __post_init__(self) -> None:
        given: object = self.allow_always
        if not isinstance(given, bool):
            raise invalid_policy(f"allow_always must be True or False, got {shown(given)}.")
        _check_reason(self.reason)


@dataclass(frozen=True, slots=True)
class DelegationRule:
    """What happens when a parent hands work to one of its children."""

    action: Literal["allow", "deny", "approve", "constrain"]
    reason: str | None = None
    predicate: Predicate | None = None
    """For ``constrain``: called with ``{"input": …}``."""

    def __post_init__(self) -> None:
        _check_reason(self.reason)
        if self.action not in _ACTIONS:
            raise invalid_policy(
                f"{shown(self.action)} is no action; use one of {', '.join(_ACTIONS)}."
            )
        if (self.action == "constrain") != callable(self.predicate):
            raise invalid_policy("A predicate goes with the action 'constrain', and only with it.")


@dataclass(frozen=True, slots=True)
class Delegation:
    """Which children a parent may hand work to."""

    default: Literal["allow", "deny", "approve"] = "allow"
    rules: Mapping[str, DelegationRule] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.default not in _ACTIONS[:3]:
            raise invalid_policy("The default of a delegation is 'allow', 'deny' or 'approve'.")
        given: object = self.rules
        if not isinstance(given, Mapping):
            raise invalid_policy("The rules of a delegation are a table {child: DelegationRule}.")
        for name, rule in given.items():
            if not isinstance(name, str) or not isinstance(rule, DelegationRule):
                raise invalid_policy(f"The delegation rule {shown(name)} must be a DelegationRule.")

    def rule(self, name: str) -> DelegationRule:
        """Return the rule for a child."""
        return self.rules.get(name) or DelegationRule(self.default)


@dataclass(frozen=True, slots=True)
class ThreadPolicy:
    """Lists of one thread: `allow` replaces the application's, `deny` adds to it."""

    allow: RuleTable = field(default_factory=dict)
    deny: RuleTable = field(default_factory=dict)


def checked_thread_policy(given: object) -> ThreadPolicy | None:
    """Return what a resolver of thread policies gave.

    Raises:
        InvalidInputError: It is neither a `ThreadPolicy` nor None (``POLICY_INVALID``).
    """
    if given is None or isinstance(given, ThreadPolicy):
        return given
    raise invalid_policy(
        f"thread_policy gave a {type(given).__name__}, not a ThreadPolicy or None."
    )


@dataclass(frozen=True, slots=True)
class PermissionPolicy:
    """What an application allows, denies and asks about. Checked when it is made.

    Raises:
        InvalidInputError: A rule, name or mode that cannot be followed (``POLICY_INVALID``).
    """

    allow: RuleTable = field(default_factory=dict)
    """``{gate key: rules}``; see `crux_workspace.agent` for the keys."""
    deny: RuleTable = field(default_factory=dict)
    approve: Iterable[str | Approve] = ()
    """Tools that a person has to agree to."""
    constrain: Mapping[str, Predicate] = field(default_factory=dict)
    """``{tool: predicate}``; wins over `approve`."""
    delegation: Delegation | None = None
    memory_writes: Literal["auto", "ask"] = "auto"
    mode: Mode | None = None
    allowed: RuleSet = field(init=False, repr=False, compare=False)
    denied: RuleSet = field(init=False, repr=False, compare=False)
    approvals: Mapping[str, Approve] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.mode is not None:
            check_mode(self.mode)
        _check_shape(self.allow, self.deny, self.approve, self.constrain)
        _check_choices(self.memory_writes, self.delegation)
        approvals = {entry.tool: entry for entry in map(_approve, self.approve)}
        for name in (*approvals, *self.constrain):
            check_tool_name(name)
        set_field = object.__setattr__
        set_field(self, "allowed", RuleSet(self.allow))
        set_field(self, "denied", RuleSet(self.deny))
        for name in (*self.allowed["tool"], *self.denied["tool"]):
            check_tool_name(name)
        set_field(self, "approvals", approvals)

    def may_ask(self, tool: str) -> bool:
        """Tell whether a person may be asked about calls of a tool because of its name."""
        return tool in self.approvals or tool in self.constrain

    @classmethod
    def from_toml(cls, path: str | Path) -> PermissionPolicy:
        """Read the table ``[permissions]`` of a TOML file.

        Args:
            path: The file.

        Returns:
            The policy; a file without the table gives the empty one. Constraints are code and are given in Python.

        Raises:
            InvalidInputError: No file that can be read, no TOML, an unknown entry, or a rule that cannot be followed (``POLICY_INVALID``).
        """
        return policy_from_table(toml_document(path).get("permissions", {}))


def toml_document(path: str | Path) -> dict[str, Any]:
    """Return what a TOML file says.

    Raises:
        InvalidInputError: It cannot be read, or is no TOML (``POLICY_INVALID``).
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, TypeError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise invalid_policy(f"The permissions cannot be read from {path!s}: {why}.") from error


def policy_from_table(table: object) -> PermissionPolicy:
    """Return the policy that a ``[permissions]`` table describes."""
    if not isinstance(table, Mapping):
        raise invalid_policy("[permissions] must be a table.")
    known = {"allow", "deny", "approve", "delegation", "memory_writes", "mode"}
    unknown = sorted(set(table) - known)
    if unknown:
        raise invalid_policy(
            f"[permissions] has no entry {shown(unknown[0])}; it has {', '.join(sorted(known))}.",
            entry=shown(unknown[0]),
        )
    given: dict[str, Any] = {key: value for key, value in table.items() if key != "delegation"}
    for name in ("allow", "deny"):
        if not isinstance(given.get(name, {}), Mapping):
            raise invalid_policy(f"[permissions.{name}] must be a table of lists.")
    if "approve" in given:
        given["approve"] = tuple(_approve_entry(entry) for entry in _list(given["approve"]))
    if "delegation" in table:
        given["delegation"] = _delegation(table["delegation"])
    return PermissionPolicy(**given)


def check_mode(mode: object) -> Mode:
    """Return a mode, or refuse it."""
    for known in MODES:
        if mode == known:
            return known
    raise invalid_policy(f"{shown(mode)} is no permission mode; use one of {', '.join(MODES)}.")


def check_tool_name(name: object) -> str:
    """Return a tool's name; ``task`` is internal and refused.

    Raises:
        InvalidInputError: ``task``, or no name (``POLICY_INVALID``).
    """
    if name == "task":
        raise invalid_policy(
            "'task' is internal and cannot be in a tool list; use delegation for subagents.",
            tool="task",
        )
    return check_rule("tool", name)


def _check_shape(allow: object, deny: object, approve: object, constrain: object) -> None:
    if not isinstance(allow, Mapping) or not isinstance(deny, Mapping):
        raise invalid_policy("allow and deny are tables of lists.")
    if isinstance(approve, str | Mapping) or not isinstance(approve, Iterable):
        raise invalid_policy("approve is a list of tools' names and Approve.")
    if not isinstance(constrain, Mapping) or not all(map(callable, constrain.values())):
        raise invalid_policy("constrain is a table {tool: predicate}.")


def _check_choices(memory_writes: object, delegation: object) -> None:
    if memory_writes not in ("auto", "ask"):
        raise invalid_policy("memory_writes is 'auto' or 'ask'.")
    if not isinstance(delegation, Delegation | None):
        raise invalid_policy("delegation must be a Delegation.")


def _check_reason(reason: object) -> None:
    if not isinstance(reason, str | None):
        raise invalid_policy("A reason must be text.")


def _approve(entry: object) -> Approve:
    if isinstance(entry, str):
        return Approve(entry)
    if isinstance(entry, Approve):
        return entry
    raise invalid_policy("An entry of approve is a tool's name or an Approve.")


def _list(value: object) -> list[Any]:
    if isinstance(value, list):
        return value
    raise invalid_policy("approve must be a list.")


def _approve_entry(entry: object) -> str | Approve:
    if isinstance(entry, Mapping) and set(entry) <= {"tool", "allow_always", "reason"}:
        return Approve(**entry)
    if isinstance(entry, str):
        return entry
    raise invalid_policy(
        "An entry of approve is a name, or a table of tool, allow_always and reason."
    )


def _delegation(table: object) -> Delegation:
    if not isinstance(table, Mapping) or set(table) - {"default", "rules"}:
        raise invalid_policy("[permissions.delegation] has the entries default and rules.")
    rules = table.get("rules", {})
    if not isinstance(rules, Mapping):
        raise invalid_policy("[permissions.delegation.rules] must be a table.")
    made = {}
    for name, rule in rules.items():
        if not isinstance(rule, Mapping) or not {"action"} <= set(rule) <= {"action", "reason"}:
            raise invalid_policy(
                f"The delegation rule {shown(name)} has the entries action and reason."
            )
        made[name] = DelegationRule(**rule)
    return Delegation(table.get("default", "allow"), made)
