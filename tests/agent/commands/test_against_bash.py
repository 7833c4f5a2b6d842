"""The judge against the real shell: of every line that rules allow, bash runs nothing but what the rules name."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from crux_workspace.agent.commands.judging import Verdict, judge_command
from crux_workspace.agent.commands.wordrules import WordRule, word_rules

GOOD = ("good", "fine")
ALLOW = [rule for name in GOOD for rule in word_rules(name)]
GENEROUS = [
    rule
    for name in (*GOOD, "bad", "eval", "alias", "[", "X=1", "export", "command", "env")
    for rule in word_rules(name)
]
DENY = word_rules("bad")
PIECES = [
    "`good \\`bad\\``", "`good \\$(bad)`", "\\\\`", "`", "\\$(bad)", "`good `", "good", "fine",
    "good x", "fine y", "good", "bad", "bad x", " ", " ", "\n", "\t", ";", "&&", "||", "|", "|&", "&", "(", ")",
    "{ ", "; }", "$(", ")", "`", "'", '"', "\\", "\\\n", "#", " #", "$X", "${X}", "${X:-", "}", "$(bad)", "`bad`", "$(good)",
    "<(bad)", "<(good)", "<<E\n", "\nE\n", "E", "<<'E'\n", "<<-E\n\t", "<<<", "$'\\n'", "$'bad'", "''", '""', "if ", "; then ", "; fi",
    "while false; do ", "; done", "for i in a b; do ", "case x in x) ", ";; esac", "! ", "X=1 ", "X=$(bad) ", "2>&1", ">/dev/null",
    "</dev/null", "&>/dev/null", "*", "?", "{a,b}", "~", "-x", "--", "=", "$", "\\;", "\\'", '\\"', "\\`", "good;bad", "[ a ]", "[[ a ]]",
    "((1))", "$((1))", "function good { bad; }", "good() { bad; }", "alias good=bad", "eval bad", "\r", "\x0b", "\u00a0", "é", "{bad,}",
]  # fmt: skip
RUNNER = r"""
PATH=/nonexistent
command_not_found_handle() { builtin printf '%s\0' "$1" >> "$LOG"; return 0; }
i=0
while IFS= read -r -d '' line <&3; do
  LOG="$OUT/$i"
  : > "$LOG"
  ( eval "$line" ) < /dev/null > /dev/null 2>&1
  i=$((i+1))
done 3< "$LINES_FILE"
wait
"""


def line(rng: random.Random) -> str:
    """Make up a command line; half of them are honest ones with something put in between."""
    pieces = [rng.choice(PIECES) for _ in range(rng.randint(1, 9))]
    if rng.random() < 0.5:
        pieces = ["good ", *pieces]
    if rng.random() < 0.3:
        quote = rng.choice(["'", '"'])
        pieces = ["good ", quote, *pieces, quote]
    if rng.random() < 0.2:
        pieces = ["good <<E\n", *pieces, "\nE\n"]
    return "".join(pieces)


def allowed_lines(
    seed: int, count: int, allow: list[WordRule] = ALLOW, deny: Sequence[WordRule] = ()
) -> list[str]:
    rng = random.Random(seed)
    found: dict[str, None] = {}
    for _ in range(400_000):
        text = line(rng)
        if "\x00" not in text and judge_command(text, allow, deny).verdict is Verdict.ALLOW:
            found[text] = None
            if len(found) == count:
                break
    return list(found)


def ran(lines: list[str], folder: Path) -> list[set[str]]:
    """Return what bash tried to run for each line; nothing that it finds really runs."""
    bash = shutil.which("bash")
    assert bash is not None
    listed = folder / "lines"
    listed.write_bytes(b"".join(text.encode() + b"\0" for text in lines))
    out = folder / "out"
    out.mkdir()
    scratch = folder / "scratch"
    scratch.mkdir()
    env = {"OUT": str(out), "LINES_FILE": str(listed), "LC_ALL": "C.UTF-8"}
    subprocess.run([bash, "--noprofile", "--norc", "-c", RUNNER], env=env, cwd=scratch, check=True, timeout=50)  # fmt: skip
    names = []
    for number in range(len(lines)):
        log = (out / str(number)).read_bytes()
        names.append({name.decode("utf-8", "replace") for name in log.split(b"\0") if name})
    return names


def test_what_rules_allow_runs_nothing_else_in_bash(tmp_path: Path) -> None:
    seed = int(os.environ.get("CRUX_FUZZ_SEED", "20261130"))
    lines = allowed_lines(seed, int(os.environ.get("CRUX_FUZZ_LINES", "1500")))
    assert len(lines) >= 1000
    escaped = [
        (text, names - set(GOOD))
        for text, names in zip(lines, ran(lines, tmp_path), strict=True)
        if names - set(GOOD)
    ]
    print(f"{len(lines)} allowed lines of made-up pieces, {len(escaped)} ran something else")
    assert escaped == []


def test_what_a_rule_denies_does_not_run_in_bash_whatever_is_allowed(tmp_path: Path) -> None:
    seed = int(os.environ.get("CRUX_FUZZ_SEED", "20261201"))
    wanted = int(os.environ.get("CRUX_FUZZ_LINES", "1500"))
    lines = allowed_lines(seed, wanted, GENEROUS, DENY)
    assert len(lines) >= 1000
    found = zip(lines, ran(lines, tmp_path), strict=True)
    assert [text for text, names in found if "bad" in names] == []


def test_the_comparison_notices_an_escape(tmp_path: Path) -> None:
    found = ran(["good; bad", "good `bad`", "good 'bad'"], tmp_path)
    assert found == [{"good", "bad"}, {"good", "bad"}, {"good"}]
