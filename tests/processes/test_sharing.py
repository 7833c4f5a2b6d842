"""Several processes on one store: nothing is lost, nobody waits for long, and only who meets is refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from crux_workspace import open_workspace
from tests.conftest import SERVERS
from tests.support.crew import Crew, Shared

pytestmark = pytest.mark.parametrize("shared", ["normal", *SERVERS], indirect=True)

APPENDS = """
import asyncio, json, sys, time
from crux_workspace import open_workspace
url, tag, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
async def main():
    longest = 0.0
    async with open_workspace(url) as ws:
        print(json.dumps("ready"), flush=True)
        sys.stdin.readline()
        for n in range(count):
            start = time.perf_counter()
            await ws.append("/workspace/log", f"{tag}:{n}\\n")
            longest = max(longest, time.perf_counter() - start)
    print(json.dumps(longest))
asyncio.run(main())
"""

DISJOINT = """
import asyncio, json, sys
from crux_workspace import open_workspace
url, tag = sys.argv[1], sys.argv[2]
async def main():
    async with open_workspace(url) as ws:
        for n in range(4):
            async with ws.transaction() as tx:
                await tx.list(f"/workspace/{tag}")
                await tx.write(f"/workspace/{tag}/{n}", f"{tag}{n}")
                await tx.append(f"/workspace/{tag}/all", f"{n}\\n")
                await tx.write(f"/workspace/{tag}/data", bytes(200_000))
                await asyncio.sleep(0.02)
            print(json.dumps(tx.committed.sequence), flush=True)
asyncio.run(main())
"""

MEETING = """
import asyncio, json, sys, time
from pathlib import Path
from crux_workspace import open_workspace
from crux_workspace.errors import ConflictError
url, me, other, attempts = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
async def main():
    async with open_workspace(url) as ws:
        async def add(tx):
            value = await tx.read_json("/workspace/count")
            me.touch()
            while not other.exists():
                await asyncio.sleep(0.01)
            await tx.write("/workspace/count", value + 1)
            return value + 1
        try:
            print(json.dumps(await ws.transaction(add, max_attempts=attempts)))
        except ConflictError as error:
            print(json.dumps([str(error.code), error.details["conflicts"][0]]))
asyncio.run(main())
"""


async def test_eight_processes_append_to_one_file_and_no_line_is_lost(
    shared: Shared, crew: Crew
) -> None:
    url = shared.url
    workers = [crew.start(APPENDS, url, tag, 50) for tag in "abcdefgh"]
    for worker in workers:
        assert worker.first() == "ready"
    for worker in workers:
        worker.go()
    longest = [worker.finish()[0] for worker in workers]
    async with open_workspace(url) as ws:
        lines = (await ws.read_text("/workspace/log")).splitlines()
        assert (await ws.stat("/workspace/log")).version == 400  # type: ignore[union-attr]
    assert len(lines) == 400
    assert Counter(line[0] for line in lines) == dict.fromkeys("abcdefgh", 50)
    for tag in "abcdefgh":
        assert [line for line in lines if line[0] == tag] == [f"{tag}:{n}" for n in range(50)]
    assert max(longest) < 2.0
    await shared.check()


async def test_three_processes_on_disjoint_paths_never_conflict(shared: Shared, crew: Crew) -> None:
    url = shared.url
    workers = [crew.start(DISJOINT, url, tag) for tag in "abc"]
    sequences = [number for worker in workers for number in worker.finish()]
    assert sorted(sequences) == list(range(1, 13))
    async with open_workspace(url) as ws:
        for tag in "abc":
            assert await ws.read_text(f"/workspace/{tag}/all") == "0\n1\n2\n3\n"
    await shared.check()


@pytest.mark.parametrize("attempts", [1, 20])
async def test_of_two_processes_on_one_path_one_conflicts_or_both_land_by_trying_again(
    shared: Shared, crew: Crew, tmp_path: Path, attempts: int
) -> None:
    url = shared.url
    async with open_workspace(url) as ws:
        await ws.write("/workspace/count", 0)
    one, two = tmp_path / "one", tmp_path / "two"
    workers = [crew.start(MEETING, url, *marks, attempts) for marks in ((one, two), (two, one))]
    told = [worker.finish()[0] for worker in workers]
    async with open_workspace(url) as ws:
        count = await ws.read_json("/workspace/count")
    if attempts > 1:
        assert (sorted(told), count) == ([1, 2], 2)
        return
    [(code, details)] = [one for one in told if isinstance(one, list)]
    assert code == "TRANSACTION_CONFLICT"
    assert (details["path"], details["base_version"], details["current_version"]) == (
        "/workspace/count",
        1,
        2,
    )
    assert count == 1
