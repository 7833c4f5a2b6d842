"""Every command line of the corpus gets its verdict: no deny rule is dodged by spelling, no allow rule is stretched."""

from __future__ import annotations

import pytest

from crux_workspace.agent.commands.judging import (
    CommandVerdict,
    Verdict,
    judge_command,
)
from crux_workspace.agent.commands.wordrules import WordRule, word_rules
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


_BEHIND_OPTIONS = {
    "git push": [
        "git --no-pager push",
        "git -C x push",
        "git -Cx push",
        "git -P push origin main",
        "git --git-dir=x push",
        "git -c a=b -C x push",
    ],
    "npm publish": ["npm --prefix x publish", "npm -s publish"],
    "docker rm": ["docker --context x rm y", "docker -H x rm y"],
    "kubectl delete": ["kubectl -n x delete pod y", "kubectl --namespace=x delete pod y"],
    "pip install": ["pip -q install x"],
    "apt-get install": ["apt-get -y install x"],
    "systemctl stop": ["systemctl --user stop x"],
}


@pytest.mark.parametrize(
    ("rule", "command"), [(rule, line) for rule, lines in _BEHIND_OPTIONS.items() for line in lines]
)
def test_an_option_before_its_words_does_not_dodge_a_deny_rule(rule: str, command: str) -> None:
    program = rule.split()[0]
    assert judged(command, [program], [rule]).verdict is Verdict.DENY


@pytest.mark.parametrize(
    "command", ["git commit -m push", "git log push", "git status", "git --no-pager log"]
)
def test_a_deny_rule_s_words_elsewhere_deny_nothing(command: str) -> None:
    assert judged(command, ["git"], ["git push"]).verdict is Verdict.ALLOW


def test_a_word_known_only_when_it_runs_before_a_denied_one_is_unknown() -> None:
    assert judged("git -C $where push", ["git"], ["git push"]).verdict is not Verdict.ALLOW


@pytest.mark.parametrize(
    "command", ["git -C x status", "git --no-pager log", "kubectl -n x get pods"]
)
def test_what_is_suggested_allows_no_other_work_of_the_program(command: str) -> None:
    assert judged(command, [], ["git push"]).suggestion == command
