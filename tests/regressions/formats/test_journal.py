"""What a journaled store keeps below: written as it was when it was released, and read from there."""

from __future__ import annotations

import itertools
import json
import secrets
from pathlib import Path

import pytest

from crux_workspace.storage import Batch, Put, Take
from crux_workspace.testing import MemoryMinimalStore
from storage_adapters.journaled import journaled
from tests.support.journals import audit, small_nodes

PART = "w\x01n\x01"
GOLDEN = "journal.json"


async def history(below: MemoryMinimalStore) -> None:
    """Commit what meets every name: bodies that move and end, deletes, odd bytes, checkpoints, an end and a new beginning."""
    store = journaled(below)
    for life, commits in enumerate((5, 8)):
        if life:
            await store.drop(PART)
        first = f"{life}{1:031x}"
        for n in range(1, commits + 1):
            puts = [Put(f"head\x01{n % 4}\x01", b'{"n":%d}' % n, b"text %d" % n)]
            if n == 3:
                puts.append(Put("state\x01\x04\x01", b"{}", b"\xff\x00"))
            if n == 5:
                puts.append(Put("moved\x01", b"\xff", Take("head\x012\x01")))
            batch = Batch(
                commit_id=f"{life}{n:031x}",
                verb="write",
                actor="golden",
                now=1_000 + n,
                incarnation=None if n == 1 else first,
                puts=puts,
                deletes=["head\x012\x01"] if n == 5 else [],
                counters={"live_files": (1, None)},
            )
            await store.commit(PART, batch)
    await store.aclose()


async def test_a_journal_is_written_byte_for_byte(
    golden_folder: Path, regenerate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_nodes(monkeypatch)
    numbers = itertools.count(1)
    monkeypatch.setattr(secrets, "token_hex", lambda size: f"{next(numbers):0{2 * size}x}")
    below = MemoryMinimalStore()
    await history(below)
    held = {key: json.loads(text) for key, text in sorted(below.held.items())}
    path = golden_folder / GOLDEN
    if regenerate:
        path.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
    assert held == json.loads(path.read_text(encoding="utf-8"))


async def test_a_journal_of_an_older_version_is_read_and_goes_on(golden_folder: Path) -> None:
    fresh, old = MemoryMinimalStore(), MemoryMinimalStore()
    golden = json.loads((golden_folder / GOLDEN).read_text(encoding="utf-8"))
    old.held = {key: json.dumps(value) for key, value in golden.items()}
    await history(fresh)
    read, written = journaled(old), journaled(fresh)
    expected = await written.scan(PART, "", limit=1_000, bodies=True)
    assert await read.scan(PART, "", limit=1_000, bodies=True) == expected
    assert (await read.partitions("", limit=9)).names == [PART]
    for n in range(9, 50):
        batch = Batch(
            commit_id=f"2{n:031x}",
            verb="write",
            now=2_000,
            incarnation=f"1{1:031x}",
            puts=[Put(f"more\x01{n}\x01", b"{}", b"body")],
        )
        assert (await read.commit(PART, batch)).sequence == n
    await audit(old, PART)
