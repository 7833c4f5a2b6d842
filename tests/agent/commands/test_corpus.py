"""Every command line of the corpus gets its verdict: no deny rule is dodged by spelling, no allow rule is stretched."""

from __future__ import annotations

import pytest

from crux_workspace.agent.commands.judging import (
    CommandVerdict,
    Verdict,
    WordRule,
    judge_command,
    word_rules,
)
from tests.agent.commands.corpus import ALLOW, ALLOWED, DENIED, DENY, UNKNOWN


def rules(texts: list[str]) -> list[WordRule]:
    return [rule for text in texts for rule in word_rules(text)]


def judged(command: str, allow: list[str] = ALLOW, deny: list[str] = DENY) -> CommandVerdict:
    return judge_command(command, rules(allow), rules(deny))


def test_the_corpus_is_large_and_says_each_thing_once() -> None:
    lines = [*ALLOWED, *DENIED, *UNKNOWN]
    assert len(lines) >= 300
    assert len(set(lines)) == len(lines)
    print(f"corpus: {len(ALLOWED)} allowed, {len(DENIED)} denied, {len(UNKNOWN)} unknown")


@pytest.mark.parametrize("command", ALLOWED)
def test_an_honest_command_is_allowed(command: str) -> None:
    assert judged(command).verdict is Verdict.ALLOW, judged(command)


@pytest.mark.parametrize("command", DENIED)
def test_no_deny_rule_is_dodged_by_spelling(command: str) -> None:
    assert judged(command).verdict is Verdict.DENY, judged(command)


@pytest.mark.parametrize("command", UNKNOWN, ids=lambda command: repr(command)[:60])
def test_no_allow_rule_is_stretched(command: str) -> None:
    assert judged(command).verdict is Verdict.UNKNOWN, judged(command)


@pytest.mark.parametrize("command", DENIED)
def test_deny_wins_over_an_allow_rule_for_the_same_words(command: str) -> None:
    generous = [*ALLOW, *DENY, "rm", "bash", "git", "eval", "sudo", "nice", "X=1 rm"]
    assert judged(command, generous).verdict is Verdict.DENY


@pytest.mark.parametrize("command", [*DENIED, *UNKNOWN], ids=lambda command: repr(command)[:60])
def test_without_rules_nothing_is_allowed(command: str) -> None:
    assert judged(command, [], []).verdict is Verdict.UNKNOWN
