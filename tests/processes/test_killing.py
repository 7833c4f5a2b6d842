"""A writer of transactions is killed again and again: acknowledged is there, torn is nothing, the books are true.

`CRUX_KILLS` says how often; 25 rounds by default, 100 in CI.
"""

from __future__ import annotations

import asyncio
import os
import random

import pytest

from crux_workspace import open_workspace
from tests.support.crew import Crew, Shared, in_ci, look_at

ROUNDS = int(os.environ.get("CRUX_KILLS") or (100 if in_ci() else 25))

WRITER = """
import asyncio, json, sys
from crux_workspace import open_workspace
url, start = sys.argv[1], int(sys.argv[2])
async def main():
    async with open_workspace(url) as ws:
        n = start
        while True:
            n += 1
            mark = f"{n:08d}"
            async with ws.transaction() as tx:
                await tx.write("/workspace/inline.md", mark)
                await tx.write("/workspace/large.bin", mark.encode() * 10_000)
                await tx.append("/workspace/log", mark + "\\n")
                await tx.write(f"/workspace/ring/{n % 5}", mark)
                if await tx.exists("/workspace/left"):
                    await tx.rename("/workspace/left", "/workspace/right")
                else:
                    if await tx.exists("/workspace/right"):
                        await tx.delete("/workspace/right")
                    await tx.write("/workspace/left", mark)
                if n % 3 == 0:
                    await tx.finalize("/workspace/inline.md")
            print(json.dumps([n, tx.committed.sequence]), flush=True)
asyncio.run(main())
"""


@pytest.mark.timeout(30 + 8 * ROUNDS)
async def test_a_killed_writer_of_transactions_loses_and_tears_nothing(
    shared: Shared, crew: Crew
) -> None:
    url = shared.url
    chance = random.Random(shared.share)
    done, rounds = 0, max(3, (ROUNDS + 1) // shared.share)
    waiting = crew.start(WRITER, url, done)
    for _ in range(rounds):
        worker = waiting
        told = [worker.first()]
        await asyncio.sleep(chance.uniform(0, 0.05))
        told += worker.kill()
        done = await _check(shared, [told[-1][0], told[-1][1]], done)
        waiting = crew.start(WRITER, url, done)
    waiting.first()
    waiting.kill()
    await shared.check()


async def _check(shared: Shared, acknowledged: list[int], before: int) -> int:
    """Judge what a killed writer left; returns the number of its last transaction that is there."""
    records = await shared.check()
    async with open_workspace(shared.url) as ws:
        files = await look_at(ws)
        lines = files["/workspace/log"].decode().split()
        last = int(lines[-1])
        mark = f"{last:08d}"
        [newest] = await ws.log(limit=1)
        final = await ws.artifacts(status="final")
    assert last >= acknowledged[0] > before, "what was acknowledged is there"
    assert newest.sequence == last >= acknowledged[1], "each transaction was one commit"
    assert lines == [f"{n:08d}" for n in range(1, last + 1)], "each landed once, in order"
    assert files["/workspace/inline.md"].decode() == mark, "no transaction is torn"
    assert files["/workspace/large.bin"] == mark.encode() * 10_000
    assert files[f"/workspace/ring/{last % 5}"].decode() == mark
    side, made = ("left", last) if last % 2 else ("right", last - 1)
    assert files[f"/workspace/{side}"].decode() == f"{made:08d}"
    assert ("/workspace/left" in files) is not ("/workspace/right" in files)
    assert [artifact.version for artifact in final] == [last - last % 3] * (last > 2)
    assert len(records.of("log")) == last
    return last
