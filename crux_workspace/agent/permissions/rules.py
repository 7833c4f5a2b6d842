"""Allow and deny rules by gate key: checked when they are given, compared when something is asked."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from crux_workspace.agent.commands.wordrules import WordRule, word_rules
from crux_workspace.agent.permissions.requests import KEYS, canonical, covers, edge_of
from crux_workspace.errors import ErrorCode, InvalidInputError
from crux_workspace.model.options import shown

__all__ = ["EMPTY_RULES", "RuleSet", "RuleTable", "check_rule", "invalid_policy"]

RuleTable: TypeAlias = Mapping[str, Iterable[str]]
"""``{gate key: patterns}`` as users write it."""

_PATH_KEYS = frozenset({"readFile", "writeFile", "listDir"})


def invalid_policy(message: str, **details: Any) -> InvalidInputError:  # noqa: ANN401 - data
    """Return the error for a policy that cannot be followed."""
    return InvalidInputError(
        message,
        code=ErrorCode.POLICY_INVALID,
        details=details,
        hint="Correct the permissions; nothing was changed.",
    )


def check_rule(key: str, pattern: object) -> str:
    """Return a rule in the form that is kept, or refuse it.

    Args:
        key: A gate key.
        pattern: The rule.

    Returns:
        A path rule without ``..`` and final slash, a memory rule ended by ``|``, a subagent's edge as it is compared, others as given.

    Raises:
        InvalidInputError: An unknown key, or a rule that is blank or can match nothing (``POLICY_INVALID``).
    """
    if key not in KEYS:
        hint = "; editFile needs readFile and writeFile" if key == "editFile" else ""
        raise invalid_policy(
            f"{shown(key)} is no gate key; use one of {', '.join(KEYS)}{hint}.", key=shown(key)
        )
    if not isinstance(pattern, str) or not pattern.strip() or "\x00" in pattern:
        raise invalid_policy(f"A rule for {key} must be text that names something.", key=key)
    if key in _PATH_KEYS:
        return _path_rule(key, pattern)
    if key == "bash":
        _command_rule(pattern)
        return pattern
    if key == "subagent":
        return _edge_rule(pattern)
    if key == "memory" and not pattern.endswith("|"):
        return f"{pattern}|"
    return pattern


def _path_rule(key: str, pattern: str) -> str:
    if not pattern.startswith("/") or ".." in pattern.split("/"):
        raise invalid_policy(
            f"A rule for {key} must be an absolute path without '..', as it is after resolving links.",
            key=key,
            rule=pattern,
        )
    return canonical(pattern)


def _edge_rule(pattern: str) -> str:
    """Return an edge in the one spelling that is compared, however its JSON was written."""
    try:
        edge = json.loads(pattern)
    except (ValueError, RecursionError):
        edge = None
    if isinstance(edge, list) and len(edge) == 2 and all(isinstance(end, str) for end in edge):
        return edge_of(*edge)
    raise invalid_policy(
        'A rule for subagent must be the JSON list of the parent\'s route and the child\'s name, like ["/support","researcher"].',
        key="subagent",
        rule=pattern,
    )


def _command_rule(pattern: str) -> list[WordRule]:
    try:
        return word_rules(pattern)
    except ValueError:
        raise invalid_policy(
            "A rule for bash must be words, as in a command line.", key="bash", rule=pattern
        ) from None


class RuleSet:
    """The rules of one list, ready to be compared. Immutable."""

    __slots__ = ("_folded", "_paths", "_rules", "words")

    def __init__(self, table: RuleTable | None = None) -> None:
        if table is not None and not isinstance(table, Mapping):
            raise invalid_policy("Rules are a table {key: list of texts}.")
        rules: dict[str, tuple[str, ...]] = {}
        for key, patterns in (table or {}).items():
            if isinstance(patterns, str) or not isinstance(patterns, Iterable):
                raise invalid_policy(
                    f"The rules for {shown(key)} must be a list of texts.", key=shown(key)
                )
            rules[key] = tuple(dict.fromkeys(check_rule(key, pattern) for pattern in patterns))
        self._rules = rules
        self.words: tuple[WordRule, ...] = tuple(
            rule for pattern in rules.get("bash", ()) for rule in _command_rule(pattern)
        )
        self._paths = {key: frozenset(rules.get(key, ())) for key in _PATH_KEYS}
        self._folded = {
            key: {unicodedata.normalize("NFC", rule): rule for rule in rules.get(key, ())}
            for key in _PATH_KEYS
        }

    def __bool__(self) -> bool:
        return any(self._rules.values())

    def __repr__(self) -> str:
        return f"RuleSet({ {key: len(rules) for key, rules in self._rules.items()} })"

    def __getitem__(self, key: str) -> tuple[str, ...]:
        return self._rules.get(key, ())

    def to_dict(self) -> dict[str, list[str]]:
        """Return the rules as plain data."""
        return {key: list(rules) for key, rules in self._rules.items()}

    def path(self, key: str, path: str, *, folded: bool = False) -> str | None:
        """Return the rule that covers a path; `folded` compares Unicode forms as one."""
        rules = self._folded[key] if folded else self._paths[key]
        if not rules:
            return None
        candidate = unicodedata.normalize("NFC", path) if folded else path
        while True:
            if candidate in rules:
                return self._folded[key][candidate] if folded else candidate
            if candidate == "/":
                return None
            candidate = candidate.rpartition("/")[0] or "/"

    def path_below(self, key: str, path: str) -> str | None:
        """Return a rule about something below a path, or about the path."""
        return next((rule for rule in self[key] if covers(path, rule)), None)

    def exact(self, key: str, candidate: str) -> str | None:
        """Return the rule that is the candidate."""
        return candidate if candidate in self[key] else None

    def prefix(self, key: str, candidate: str) -> str | None:
        """Return the rule that the candidate begins with."""
        return next((rule for rule in self[key] if candidate.startswith(rule)), None)

    def joined(self, other: RuleSet) -> RuleSet:
        """Return the rules of both."""
        if not other:
            return self
        keys = dict.fromkeys([*self._rules, *other._rules])
        return RuleSet({key: (*self[key], *other[key]) for key in keys})


EMPTY_RULES = RuleSet()
