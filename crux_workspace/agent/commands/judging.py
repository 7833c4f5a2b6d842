"""Whether rules of words allow or deny a command line, and which rule would allow it from now on.

Allow rules compare the program as it is written, deny rules look behind assignments, paths and programs that run others. A word
that is known only at run time never completes an allow rule, and makes a deny rule that could still match "unknown".
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from crux_workspace.agent.commands.carriers import Carried
from crux_workspace.agent.commands.denying import MAX_NESTING, denied, leading_assignments
from crux_workspace.agent.commands.grammar import parse
from crux_workspace.agent.commands.scripts import Redirection, Script, SimpleCommand
from crux_workspace.agent.commands.wordrules import WordRule, word_rules
from crux_workspace.agent.commands.words import Word, base_name
from crux_workspace.agent.commands.wrappers import INTERPRETERS, carried

__all__ = [
    "SHIFTING",
    "CommandVerdict",
    "Verdict",
    "interpreters",
    "judge_command",
]

SHIFTING = frozenset(
    {
        "alias", "unalias", "hash", "enable", "set", "shopt", "export", "declare", "typeset", "readonly", "local", "source",
        ".", "trap", "unset", "read", "mapfile", "readarray", "getopts", "let", "wait", "fc", "bind", "complete",
    }
)  # fmt: skip
"""Builtins that can give later words of the same line another meaning."""
_INDEXING = frozenset(
    {
        "test", "[", "printf", "unset", "read", "declare", "typeset", "local", "export", "readonly", "let", "mapfile",
        "readarray", "wait", "getopts",
    }
)  # fmt: skip
"""Builtins that evaluate array subscripts in their arguments."""
_MOVING = frozenset({"cd", "pushd", "popd"})


class Verdict(StrEnum):
    """What rules say."""

    ALLOW = "allow"
    DENY = "deny"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CommandVerdict:
    """What word rules say of a command line, and what else is to be judged of it."""

    verdict: Verdict
    rule: str | None = None
    """The rule that decided: the deny rule, or the first of the allow rules."""
    why: str | None = None
    """Why it is unknown, for a person."""
    suggestion: str | None = None
    """A rule text that allows this very line, apart from its redirections; None when none can."""
    redirections: tuple[Redirection, ...] = ()
    may_be_denied: bool = False
    """It is not understood, or may run what a deny rule covers."""
    moves: bool = False
    """It changes its folder, so relative names of redirections are not known."""


def judge_command(
    command: str, allow: Sequence[WordRule], deny: Sequence[WordRule]
) -> CommandVerdict:
    """Judge a command line by word rules. Never raises; what is not understood is unknown."""
    script = parse(command)
    if script.trouble is not None:
        return CommandVerdict(
            Verdict.UNKNOWN,
            why=f"The command is not understood: {script.trouble}.",
            may_be_denied=True,
        )
    redirections = tuple(script.redirections)
    moves = any(_is_program(c, _MOVING) for c in script.commands)
    found, possible = denied(script, deny, 0)
    if found is not None:
        return CommandVerdict(Verdict.DENY, found.text, redirections=redirections, moves=moves)
    trouble = _trouble(script)
    if trouble is None and possible is not None:
        trouble = f"It may run what the rule {possible.text!r} denies"
    if trouble is not None:
        return CommandVerdict(
            Verdict.UNKNOWN,
            why=f"{trouble}.",
            redirections=redirections,
            may_be_denied=True,
            moves=moves,
        )
    return _allowed(script, allow, redirections, moves)


def _allowed(
    script: Script, allow: Sequence[WordRule], redirections: tuple[Redirection, ...], moves: bool
) -> CommandVerdict:
    first: str | None = None
    missing: list[SimpleCommand] = []
    for command in script.commands:
        rule = _allowing(command, allow, moves, 0)
        if rule is None:
            missing.append(command)
        first = first or (rule.text if rule else None)
    if not missing:
        return CommandVerdict(Verdict.ALLOW, first, redirections=redirections, moves=moves)
    return CommandVerdict(
        Verdict.UNKNOWN,
        why="No rule allows it.",
        suggestion=_suggested(script, missing, allow, moves),
        redirections=redirections,
        moves=moves,
    )


# -- what no rule can vouch for


_TOLD_WHAT_TO_DO = frozenset(
    """
    apt apt-get aws az brew bun cargo composer conda dnf docker dotnet flatpak flyctl gcloud gem gh
    git glab go gradle helm heroku hg journalctl kubectl minikube mvn nix npm oc pacman pip pip3
    pipx pnpm podman poetry pulumi rustup snap svn systemctl terraform uv vault yarn yum zypper
    """.split()  # noqa: SIM905 - a list of words
)
"""Programs whose first word behind the options says what they do."""


def _is_program(command: SimpleCommand, names: frozenset[str]) -> bool:
    program = command.program
    return program is not None and program.known and program.text in names


def _trouble(script: Script) -> str | None:
    """Return why no rule can vouch for the script, or None."""
    if len(script.commands) > 1:
        if any(_shifts(command) for command in script.commands):
            return "A builtin in it gives later words another meaning"
        if any(command.program is None for command in script.commands):
            return "It sets a variable before it runs something"
    for command in script.commands:
        if _is_program(command, _INDEXING) and any(
            "[" in w.text[1:] and ("$" in w.text or "`" in w.text) for w in command.words[1:]
        ):
            return "A subscript in it is evaluated"
    return None


def _shifts(command: SimpleCommand) -> bool:
    if _is_program(command, SHIFTING):
        return True
    return _is_program(command, frozenset({"printf"})) and any(
        not word.known or word.text.startswith("-") for word in command.words[1:2]
    )


# -- allow


def _allowing(
    command: SimpleCommand, allow: Sequence[WordRule], moves: bool, depth: int
) -> WordRule | None:
    program = command.program
    if program is not None and moves and "/" in program.text and not program.text.startswith("/"):
        return None
    return _allowing_words(command.words, command.assignments, allow, depth)


def _allowing_words(
    words: Sequence[Word], assignments: int, allow: Sequence[WordRule], depth: int
) -> WordRule | None:
    if depth > MAX_NESTING:
        return None
    others = carried(words[assignments:])
    for rule in allow:
        if not _covers(words, rule.words):
            continue
        if others is None:
            continue
        beyond = [
            other
            for other in others
            if not other.is_interpreted
            and len(rule.words) - assignments <= other.at
            and len(rule.words) < len(words)
        ]
        if all(_allowing_other(other, allow, depth + 1) for other in beyond):
            return rule
    return None


def _covers(words: Sequence[Word], rule: Sequence[str]) -> bool:
    """Tell whether a rule's words are the first words, as written."""
    if len(words) < len(rule):
        return False
    return all(
        word.known and word.text == wanted for word, wanted in zip(words, rule, strict=False)
    )


def _allowing_other(other: Carried, allow: Sequence[WordRule], depth: int) -> bool:
    if other.words is not None:
        count = leading_assignments(other.words)
        return _allowing_words(other.words, count, allow, depth) is not None
    if other.text is None or not other.text.known:
        return False
    inner = parse(other.text.text)
    if inner.trouble is not None or inner.redirections or _trouble(inner) is not None:
        return False
    return all(_allowing(command, allow, False, depth) for command in inner.commands)


# -- suggestions


def _suggested(
    script: Script, missing: Sequence[SimpleCommand], allow: Sequence[WordRule], moves: bool
) -> str | None:
    """Return a rule text that allows the commands; None when there is none to offer."""
    texts: list[str] = []
    for command in missing:
        text = _suggestion_of(command)
        if text is None:
            return None
        if text not in texts:
            texts.append(text)
    suggestion = " && ".join(texts)
    together = [*allow, *word_rules(suggestion)]
    if all(_allowing(command, together, moves, 0) for command in script.commands):
        return suggestion
    return None


def _suggestion_of(command: SimpleCommand) -> str | None:
    words = command.words
    count = _suggested_length(command)
    chosen = words[:count]
    if not chosen or not all(word.known for word in chosen):
        return None
    return " ".join(_rule_word(word.text) for word in chosen)


def _suggested_length(command: SimpleCommand) -> int:
    """Return how many words a rule needs: two, and more when they would allow any other program."""
    bare = command.words[command.assignments :]
    usual = min(command.assignments + 2, len(command.words))
    others = carried(bare)
    if others is None:
        return len(command.words)
    if any(other.text is not None for other in others):
        return len(command.words)
    if others:
        return min(
            max(usual, command.assignments + max(o.at for o in others) + 2), len(command.words)
        )
    if _runs_option_text(bare) or _names_its_work_later(bare):
        return len(command.words)
    return usual


def _names_its_work_later(bare: Sequence[Word]) -> bool:
    """Tell whether an option stands where such a program is told what to do: two words would allow all that it can."""
    if len(bare) < 2 or base_name(bare[0].text).casefold() not in _TOLD_WHAT_TO_DO:
        return False
    return bare[1].text.startswith("-")


def _runs_option_text(bare: Sequence[Word]) -> bool:
    """Tell whether an interpreter is given its program as an option: ``python -c``, ``node -e``."""
    if len(bare) < 2 or base_name(bare[0].text).casefold() not in INTERPRETERS:
        return False
    return bare[1].text.startswith("-")


def _rule_word(text: str) -> str:
    return shlex.quote(text) if re.search(r"[^\w@%+=:,./-]", text) or not text else text


def interpreters(rules: Sequence[WordRule]) -> Iterator[WordRule]:
    """Yield the rules that allow an interpreter with nothing behind it."""
    for rule in rules:
        if len(rule.words) == 1 and base_name(rule.words[0]).casefold() in INTERPRETERS:
            yield rule
