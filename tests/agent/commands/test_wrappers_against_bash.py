"""The judge against real wrappers: whatever options env, xargs, timeout and find are given, what they start is what was judged."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

from crux_workspace.agent.commands.judging import Verdict, judge_command
from crux_workspace.agent.commands.wordrules import WordRule, word_rules

WRAPPERS = [
    "env",
    "nice",
    "timeout",
    "nohup",
    "setsid",
    "xargs",
    "find",
    "stdbuf",
    "command",
    "exec",
    "eval",
    "time",
    "flock",
    "sort",
    "split",
]
PIECES = [
    *WRAPPERS,
    "good",
    "good",
    "bad",
    "bad",
    "good x",
    "bad x",
    "-i",
    "-u",
    "-0",
    "-n",
    "-n1",
    "-n 1",
    "-k",
    "-k1",
    "-s",
    "-s KILL",
    "5",
    "1",
    "X",
    "A=1",
    "--",
    "-",
    "-S",
    "-S good",
    "-S 'bad x'",
    "--split-string=bad",
    "-C",
    "/",
    "-C /",
    "-I",
    "-I{}",
    "-I {}",
    "{}",
    "-r",
    "-t",
    "-P2",
    "-a",
    "/dev/null",
    "-o0",
    "-oL",
    "-e",
    "-f",
    "-p",
    "-v",
    "-w",
    "-c",
    "-c bad",
    "-c 'good'",
    "find . -maxdepth 0 -exec",
    "-exec",
    "-execdir",
    "-ok",
    "\\;",
    "+",
    "';'",
    ". -maxdepth 0",
    "-name x",
    "sh -c",
    "'good'",
    "'bad'",
    "'good; bad'",
    "bash -c",
    "$E bad",
    "$X",
    "'b'ad",
    "b\\ad",
    "./bad",
    "--foreground",
    "--preserve-status",
    "--signal=KILL",
    "--kill-after=1",
    "--ignore-environment",
    "--unset=A",
    "--chdir=/",
    "--adjustment=1",
    "--max-args=1",
    "--replace",
    "-i",
    "--null",
    "-L1",
    "-x",
    "-d",
    ",",
    "--delimiter=,",
    "lockfile",
    "--filter=bad",
    "--filter",
    "--compress-program=bad",
]
RUNNER = r"""
i=0
while IFS= read -r -d '' line <&3; do
  : > "$OUT/now"
  "$LIMIT" -k 0.2 0.7 bash --noprofile --norc -c "$line" < /dev/null > /dev/null 2>&1
  mv "$OUT/now" "$OUT/$i"
  i=$((i+1))
done 3< "$LINES_FILE"
"""


def rules(*names: str) -> list[WordRule]:
    return [rule for name in names for rule in word_rules(name)]


def line(rng: random.Random) -> str:
    pieces = [rng.choice(WRAPPERS), *(rng.choice(PIECES) for _ in range(rng.randint(1, 6)))]
    return " ".join(pieces)


def allowed(seed: int, count: int, allow: list[WordRule], deny: list[WordRule]) -> list[str]:
    rng = random.Random(seed)
    found: dict[str, None] = {}
    for _ in range(300_000):
        text = line(rng)
        if judge_command(text, allow, deny).verdict is Verdict.ALLOW:
            found[text] = None
            if len(found) == count:
                break
    return list(found)


def ran(lines: list[str], folder: Path) -> list[set[str]]:
    """Return which of `good` and `bad` each line started; the wrappers are the real ones."""
    out, programs, scratch = folder / "out", folder / "bin", folder / "scratch"
    for made in (out, programs, scratch):
        made.mkdir()
    for name in ("good", "bad"):
        for place in (programs / name, scratch / name):
            place.write_text(f"#!/bin/sh\necho {name} >> {out}/now\n")
            place.chmod(0o755)
    for name in (*WRAPPERS, "sh", "bash", "mv"):
        found = shutil.which(name)
        if found is not None:
            (programs / name).symlink_to(found)
    limit = shutil.which("timeout")
    assert limit is not None
    listed = folder / "lines"
    listed.write_bytes(b"".join(text.encode() + b"\0" for text in lines))
    env = {
        "OUT": str(out),
        "LINES_FILE": str(listed),
        "PATH": str(programs),
        "LC_ALL": "C.UTF-8",
        "LIMIT": limit,
    }
    bash = str(programs / "bash")
    subprocess.run([bash, "--noprofile", "--norc", "-c", RUNNER], env=env, cwd=scratch, check=True, timeout=600)  # fmt: skip
    return [set((out / str(n)).read_text().split()) for n in range(len(lines))]


def count() -> int:
    return int(os.environ.get("CRUX_FUZZ_LINES", "250"))


def seed() -> int:
    return int(os.environ.get("CRUX_FUZZ_SEED", "7"))


def test_no_option_of_a_wrapper_stretches_an_allow_rule(tmp_path: Path) -> None:
    lines = allowed(seed(), count(), rules(*WRAPPERS, "good"), [])
    assert len(lines) >= 100
    found = list(zip(lines, ran(lines, tmp_path), strict=True))
    assert any(names for _, names in found)
    assert [text for text, names in found if "bad" in names] == []


def test_no_option_of_a_wrapper_hides_from_a_deny_rule(tmp_path: Path) -> None:
    lines = allowed(
        seed(), count(), rules(*WRAPPERS, "good", "bad", "sh", "bash", "./bad", "x"), rules("bad")
    )
    assert len(lines) >= 100
    found = list(zip(lines, ran(lines, tmp_path), strict=True))
    assert any(names for _, names in found)
    assert [text for text, names in found if "bad" in names] == []
