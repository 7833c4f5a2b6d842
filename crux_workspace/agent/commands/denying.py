"""Whether word rules deny a script: they look behind assignments, folders and programs that run others.

A word that is known only at run time, and a text that is not understood, make a rule that could still match "possible".
"""

from __future__ import annotations

from collections.abc import Sequence

from crux_workspace.agent.commands.carriers import Carried, set_by
from crux_workspace.agent.commands.grammar import parse
from crux_workspace.agent.commands.options import stands_in
from crux_workspace.agent.commands.scripts import Script
from crux_workspace.agent.commands.wordrules import WordRule
from crux_workspace.agent.commands.words import Word
from crux_workspace.agent.commands.wrappers import (
    ASSIGNMENT,
    carried,
    own_words,
    reads_script_from_input,
)

__all__ = ["MAX_NESTING", "denied", "leading_assignments"]

MAX_NESTING = 8
"""Programs that run programs that run programs: deeper than this, nothing is sure."""


def denied(
    script: Script, deny: Sequence[WordRule], depth: int
) -> tuple[WordRule | None, WordRule | None]:
    """Return the rule that denies the script, and one that may."""
    possible: WordRule | None = None
    if not deny:
        return None, None
    if depth > MAX_NESTING:
        return None, deny[0]
    for command in script.commands:
        found, maybe = _denied_words(command.words, deny, depth, command.assignments)
        if found is not None:
            return found, None
        possible = possible or maybe
    if any(reads_script_from_input(c.words[c.assignments :]) for c in script.commands):
        found, maybe = _denied_input(script, deny, depth)
        if found is not None:
            return found, None
        possible = possible or maybe
    return None, possible


def _denied_input(
    script: Script, deny: Sequence[WordRule], depth: int
) -> tuple[WordRule | None, WordRule | None]:
    """Judge what is fed to a shell; what comes through a pipe or from a file is not known."""
    for text in script.fed:
        inner = parse(text) if text is not None else None
        if inner is None or inner.trouble is not None:
            continue
        found, _ = denied(inner, deny, depth + 1)
        if found is not None:
            return found, None
    return None, deny[0]


def _denied_words(
    words: Sequence[Word], deny: Sequence[WordRule], depth: int, assignments: int = 0
) -> tuple[WordRule | None, WordRule | None]:
    if depth > MAX_NESTING:
        return None, deny[0]
    possible: WordRule | None = None
    bare = words[assignments:]
    others = carried(bare)
    end = own_words(bare, others)
    for rule in deny:
        hits = [stands_in(bare, rule.words, end)]
        if assignments:
            hits.append(stands_in(words, rule.words))
        if True in hits:
            return rule, None
        if None in hits:
            possible = possible or rule
    if others is None:
        hit_rule = _anywhere(bare, deny)
        return (hit_rule, None) if hit_rule else (None, deny[0])
    for other in (*others, *set_by(words, 0, assignments)):
        found, maybe = _denied_other(other, deny, depth)
        if found is not None:
            return found, None
        possible = possible or maybe
    return None, possible


def _denied_other(
    other: Carried, deny: Sequence[WordRule], depth: int
) -> tuple[WordRule | None, WordRule | None]:
    found, maybe = _denied_content(other, deny, depth)
    return (found, maybe) if other.is_sure else (None, found)


def _denied_content(
    other: Carried, deny: Sequence[WordRule], depth: int
) -> tuple[WordRule | None, WordRule | None]:
    if other.words is not None:
        assignments = leading_assignments(other.words)
        return _denied_words(other.words, deny, depth + 1, assignments)
    text = other.text
    if text is None or not text.known:
        return None, deny[0]
    inner = parse(text.text)
    if inner.trouble is not None:
        return None, deny[0] if text.text.strip() else None
    return denied(inner, deny, depth + 1)


def leading_assignments(words: Sequence[Word]) -> int:
    """Return how many words in front are assignments."""
    count = 0
    while count < len(words) and ASSIGNMENT.match(words[count].text):
        count += 1
    return count


def _anywhere(words: Sequence[Word], deny: Sequence[WordRule]) -> WordRule | None:
    """Return a rule that matches at any word: where the other program begins is not clear."""
    for start in range(1, len(words)):
        for rule in deny:
            if stands_in(words[start:], rule.words) is True:
                return rule
    return None
