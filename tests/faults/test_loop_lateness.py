"""Heavy reading, searching and comparing leave the event loop free: no callback waits long."""

from __future__ import annotations

import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from crux_workspace import Workspace, open_workspace
from crux_workspace.model.values import JsonValue
from tests.support.lateness import measured

PROMISED_MS = 50
ATTEMPTS = 4
"""The machine may be busy: the promise is kept when one attempt keeps it, and allows for the crowd."""

MANY, BIG = "/workspace/many", "/workspace/big.txt"


@pytest.fixture
async def ws(store_url: str) -> AsyncIterator[Workspace]:
    """A workspace of each kind in turn."""
    async with open_workspace(store_url) as opened:
        yield opened


async def stays_free(call: Callable[[], Awaitable[Any]]) -> Any:
    """Make a call; hold the loop's worst lateness meanwhile to what is promised."""
    worst = []
    for _ in range(ATTEMPTS):
        async with measured() as lateness:
            result = await call()
        worst.append(lateness.worst_ms)
        if worst[-1] <= PROMISED_MS * crowding():
            return result
    raise AssertionError(f"the loop was late by {worst} ms; {crowding():.1f} share a core")


def crowding() -> float:
    """How many processes share a core, this one not counted: each makes the loop wait for its turn."""
    return 1 + os.getloadavg()[0] / (os.cpu_count() or 1)


async def write_many(ws: Workspace) -> None:
    for n in range(2_000):
        await ws.write(f"{MANY}/f{n:04}.md", f"line {n}\nneedle{n}\n" + "text " * 5)


async def test_grep_over_two_thousand_files_leaves_the_loop_free(ws: Workspace) -> None:
    await write_many(ws)
    literal = await stays_free(lambda: ws.grep("needle199"))
    assert len(literal.matches) == 11
    await stays_free(lambda: ws.grep("in no file at all"))
    await stays_free(lambda: ws.grep(r"needle\d+9$", regex=True, max_results=5_000))
    await stays_free(lambda: ws.grep("NEEDLE", ignore_case=True, max_results=5_000))
    await stays_free(lambda: ws.grep("needle", path=f"{MANY}/f*1.md"))
    listed = await stays_free(lambda: ws.list(MANY))
    assert len(listed.entries) == 2_000
    await stays_free(ws.usage)


async def test_ten_megabytes_leave_the_loop_free(ws: Workspace) -> None:
    line = " some words on a line of text " + "a" * 24 + "\n"
    text = "".join(f"{n}{line}" for n in range(170_000))
    assert len(text) > 10_000_000
    await stays_free(lambda: ws.write(BIG, text))
    found = await stays_free(lambda: ws.grep("169998 some", path=BIG))
    assert [match.line for match in found.matches] == [169_999]
    await stays_free(lambda: ws.grep("words", path=BIG, max_results=20_000))
    await stays_free(lambda: ws.read(BIG, start_line=100_000, end_line=100_010))
    await stays_free(lambda: ws.edit(BIG, "169998 some", "169998 some"))
    await stays_free(lambda: ws.append(BIG, "the end\n"))
    await stays_free(lambda: ws.write("/workspace/line.txt", "ab" * 5_000_000))
    await stays_free(lambda: ws.grep("ab" * 20 + "c", path="/workspace/line.txt"))
    await stays_free(lambda: ws.grep("ab", path="/workspace/line.txt"))


@pytest.mark.parametrize(
    "expression",
    [
        r"(a+a+)+b",
        r"(a|aa)+$",
        r"^(([a-z])+.)+[A-Z]([a-z])+$",
        r"(.*)(.*)(.*)(.*)x",
    ],
)
async def test_an_expression_that_others_choke_on_is_searched_in_linear_time(
    ws: Workspace, expression: str
) -> None:
    await ws.write(BIG, "\n".join("a" * 1_000 for _ in range(1_000)))
    started = time.process_time()
    await stays_free(lambda: ws.grep(expression, regex=True, path=BIG))
    assert time.process_time() - started < 10


@pytest.mark.parametrize("lines", ["different", "repeated"])
async def test_a_diff_of_twenty_thousand_lines_is_fast_and_leaves_the_loop_free(
    ws: Workspace, lines: str
) -> None:
    chance = random.Random(1)
    if lines == "different":
        text = [f"line {chance.random()} of the file\n" for _ in range(20_000)]
    else:
        text = ["{\n", "}\n", "\n", "    x = 1\n"] * 5_000
    await ws.write(BIG, "".join(text))
    for n in chance.sample(range(20_000), 1_000):
        text[n] = f"changed {chance.random()}\n"
    await ws.write(BIG, "".join(text))
    took = []
    for _ in range(3):
        started = time.process_time()
        diff = await stays_free(lambda: ws.diff(BIG))
        took.append(time.process_time() - started)
    assert diff.added == diff.removed
    assert min(took) < 5  # seconds, with branch coverage measured beside


async def test_a_large_json_value_is_written_out_beside_the_loop(ws: Workspace) -> None:
    value: JsonValue = [{"n": n, "t": "some words"} for n in range(50_000)]
    await stays_free(lambda: ws.write("/workspace/v.json", value))
    assert await ws.read_json("/workspace/v.json") == value
