"""Several processes on one file, and processes that die."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crux_workspace.storage.layout import META_KEY
from storage_adapters.sql import SqliteRecordStore, migrate

PART = "ws\x01n\x01"

_WRITE = """
import asyncio, json, os, sys, uuid
from crux_workspace.storage import Batch, Put
from storage_adapters.sql import SqliteRecordStore
path, tag, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
async def main():
    async with await SqliteRecordStore.open(path) as store:
        async def write(n):
            async def plan(reader):
                meta, hot = await reader.get_many(["meta\\x01", "head\\x01hot\\x01"])
                return Batch(commit_id=uuid.uuid4().hex, verb="write", now=1,
                    incarnation=None if meta is None else json.loads(meta.value)["inc"],
                    expect={"head\\x01hot\\x01": 0 if hot is None else hot.revision},
                    puts=[Put("head\\x01hot\\x01", b'{}', b"%d" % (1 + int(hot.body if hot else 0))),
                          Put(f"head\\x01{tag}-{n:06d}\\x01", b"{}", os.urandom(500))])
            done = await store.commit_planned("ws\\x01n\\x01", plan)
            print(done.sequence, flush=True)
        for n in range(0, count, 4):
            await asyncio.gather(*(write(n + k) for k in range(4)))
asyncio.run(main())
"""


async def test_two_processes_count_without_losing_one(
    path: Path, spawn: Callable[..., Any], audit: Callable[[], tuple[int, int, int]]
) -> None:
    migrate(path)
    processes = [spawn(_WRITE, str(path), tag, "200") for tag in "ab"]
    given = [list(map(int, process.communicate(timeout=50)[0].split())) for process in processes]
    assert sorted(given[0] + given[1]) == list(range(1, 401))
    async with await SqliteRecordStore.open(path) as store:
        meta, hot = await store.get_many(PART, [META_KEY, "head\x01hot\x01"])
    assert meta is not None
    assert hot is not None
    assert (meta.revision, hot.body) == (400, b"400")
    assert audit() == (401, 400, 400)


def test_a_killed_writer_loses_nothing_acknowledged(
    path: Path, spawn: Callable[..., Any], audit: Callable[[], tuple[int, int, int]]
) -> None:
    migrate(path)
    before = 0
    for round_number in range(10):
        process = spawn(_WRITE, str(path), f"r{round_number}", "100000")
        last = int(process.stdout.readline())
        time.sleep(0.01 * round_number)
        process.kill()
        rest = process.communicate()[0].split()
        last = max([last, *(int(word) for word in rest[:-1])])  # the last line may be cut
        heads, logs, sequence = audit()
        assert heads - 1 == logs == sequence
        assert sequence >= last > before
        before = sequence
