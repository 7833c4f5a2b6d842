"""A writer of one long text is killed again and again: every version that was acknowledged reads as it was written.

`CRUX_KILLS` says how often, as for transactions; a fifth of them here, fewer on servers.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from crux_workspace import open_workspace
from tests.conftest import SERVERS
from tests.processes.test_killing import ROUNDS
from tests.support.crew import Crew, Shared

WRITER = """
import asyncio, json, sys
from crux_workspace import Versioning, open_workspace
from tests.support.long_texts import long_text
async def main():
    async with open_workspace(sys.argv[1]) as ws, \\
            open_workspace(sys.argv[1], versioning=Versioning(max_versions=20)) as small:
        n = int(sys.argv[2])
        while True:
            n += 1
            await (small if n % 3 == 0 else ws).write("/workspace/h.md", long_text(n))
            print(json.dumps(n), flush=True)
            if n % 11 == 0:
                await ws.finalize("/workspace/h.md", version=n - 9)
            if n % 17 == 0:
                await small.gc(dry_run=False)
asyncio.run(main())
"""


@pytest.mark.parametrize("shared", ["normal", *SERVERS], indirect=True)
@pytest.mark.timeout(30 + 4 * ROUNDS)
async def test_a_killed_writer_of_a_long_history_leaves_every_version_whole(
    shared: Shared, crew: Crew
) -> None:
    from tests.support.long_texts import long_text

    url = shared.url
    chance = random.Random(1)
    done = 0
    for _ in range(max(3, 2 * ROUNDS // (5 * shared.share))):
        worker = crew.start(WRITER, url, done)
        told = [worker.first()]
        await asyncio.sleep(chance.uniform(0.02, 0.15))
        told += worker.kill()
        await shared.check()
        async with open_workspace(url) as ws:
            entries = await ws.history("/workspace/h.md")
            assert entries[0].version >= told[-1] > done, "what was acknowledged is there"
            for entry in entries:
                text = await ws.read_text("/workspace/h.md", version=entry.version)
                assert text == long_text(entry.version)
            done = entries[0].version
