"""The cost of each verb: what the verb table says, what the store counts, and the budgets of the design."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crux_workspace import Retention, Workspace, WorkspaceFile, workspace
from crux_workspace.model.verbs import VERBS
from crux_workspace.storage import memory_storage
from crux_workspace.testing import CountingAssetStore, CountingRecordStore, FixedClock
from storage_adapters import open_storage

FILE = "/workspace/notes.md"
BIG = "/workspace/big.bin"

Act = Callable[[Workspace], Awaitable[Any]]


@dataclass
class Bench:
    """A workspace whose stores count."""

    ws: Workspace
    records: CountingRecordStore
    assets: CountingAssetStore

    def reset(self) -> None:
        self.records.reset()
        self.assets.reset()


@pytest.fixture(params=["memory", "sqlite"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    if request.param == "memory":
        opened = memory_storage()
    else:
        opened = await open_storage(f"sqlite:///{tmp_path}/work.db?durability=normal")
    assert opened.assets is not None
    records = CountingRecordStore(opened.records)
    assets = CountingAssetStore(opened.assets)
    ws = workspace(id="w", namespace="n", records=records, assets=assets)
    await ws.write(FILE, "one\n")
    await ws.write(FILE, "two\n")
    await ws.write(BIG, b"\0" * 100)
    await ws.write("/outputs/report.json", {"rows": 3}, status="final", kind="report")
    yield Bench(ws, records, assets)
    await ws.aclose()
    await opened.aclose()


async def _all(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


async def _redo(ws: Workspace) -> WorkspaceFile:
    return await ws.redo(FILE)


PLAIN: dict[str, Act] = {
    "read": lambda ws: ws.read(FILE),
    "read_text": lambda ws: ws.read_text(FILE),
    "read_bytes": lambda ws: ws.read_bytes(FILE),
    "read_json": lambda ws: ws.read_json("/outputs/report.json"),
    "read_many": lambda ws: ws.read_many([FILE, "/outputs/report.json", "/workspace/none.md"]),
    "stream": lambda ws: _all(ws.stream(FILE)),
    "exists": lambda ws: ws.exists(FILE),
    "is_dir": lambda ws: ws.is_dir("/workspace/none"),
    "stat": lambda ws: ws.stat(FILE),
    "usage": lambda ws: ws.usage(),
    "cursor": lambda ws: ws.cursor(),
    "write": lambda ws: ws.write(FILE, "three\n"),
    "edit": lambda ws: ws.edit(FILE, "two", "three"),
    "append": lambda ws: ws.append(FILE, "three\n"),
    "update": lambda ws: ws.update(FILE, str.upper),
    "set": lambda ws: ws.set(FILE, metadata={"topic": "x"}),
    "rename": lambda ws: ws.rename(FILE, "/outputs/notes.md"),
    "move": lambda ws: ws.move(FILE, "/outputs/notes.md"),
    "copy": lambda ws: ws.copy(FILE, "/outputs/notes.md"),
    "delete": lambda ws: ws.delete(FILE),
    "undo": lambda ws: ws.undo(FILE),
    "finalize": lambda ws: ws.finalize(FILE),
    "withdraw": lambda ws: ws.withdraw("/outputs/report.json"),
}
"""The plain case of every verb with a fixed cost: a small text file with an earlier version."""

PAGED: dict[str, Act] = {
    "list": lambda ws: ws.list("/workspace"),
    "walk": lambda ws: _all(ws.walk()),
    "grep": lambda ws: ws.grep("two"),
    "history": lambda ws: ws.history(FILE),
    "diff": lambda ws: ws.diff(FILE),
    "artifacts": lambda ws: ws.artifacts(),
    "log": lambda ws: ws.log(),
}
"""Verbs that read pages: a few for a small namespace, never a commit."""

ELSEWHERE = {
    "resolve": "needs an artifact's URI: a test of its own below",
    "watch": "a read a page and a call a poll: tests/watch/test_costs.py",
    "redo": "needs an undo before it: a test of its own below",
    "undo_commit": "needs a commit: a test of its own below",
    "transaction": "a read a path: a test of its own below",
    "gc": "bounded steps; a test of its own below",
    "namespaces": "pages of partitions, not of records: a test of its own below",
    "drop_namespace": "one call of its own: a test of its own below",
}


def test_every_verb_is_measured() -> None:
    assert set(PLAIN) | set(PAGED) | set(ELSEWHERE) == set(VERBS)


@pytest.mark.parametrize("verb", PLAIN)
async def test_the_plain_case_costs_what_the_table_says(bench: Bench, verb: str) -> None:
    bench.reset()
    await PLAIN[verb](bench.ws)
    assert (bench.records.reads, bench.records.commits) == (
        int(VERBS[verb].reads),
        VERBS[verb].commits,
    )
    assert bench.records.counts["plan"] == VERBS[verb].commits
    assert not bench.assets.counts


@pytest.mark.parametrize("verb", PAGED)
async def test_a_paged_verb_reads_few_pages_and_commits_nothing(bench: Bench, verb: str) -> None:
    bench.reset()
    await PAGED[verb](bench.ws)
    assert VERBS[verb].reads == "pages"
    assert 1 <= bench.records.reads <= 4
    assert bench.records.commits == 0


BUDGETS = {
    **dict.fromkeys(("read", "stat", "exists"), (1, 0)),
    **dict.fromkeys(("write", "append", "edit"), (1, 1)),
    **dict.fromkeys(("rename", "move", "copy"), (1, 1)),
    **dict.fromkeys(("delete", "undo", "redo", "finalize"), (2, 1)),
}
"""Most reads, and commits, of the design's cost table."""


@pytest.mark.parametrize("verb", BUDGETS)
async def test_the_budget_of_the_design_is_kept(bench: Bench, verb: str) -> None:
    act: Act = PLAIN.get(verb, _redo)
    if verb == "redo":
        await bench.ws.undo(FILE)
    bench.reset()
    await act(bench.ws)
    reads, commits = BUDGETS[verb]
    assert bench.records.reads <= reads
    assert bench.records.commits == commits


async def test_redo_undo_commit_and_resolve_stay_small(bench: Bench) -> None:
    uri = (await bench.ws.artifacts())[0].uri
    bench.reset()
    await bench.ws.resolve(uri)
    assert (bench.records.reads, bench.records.commits) == (1, 0)

    await bench.ws.write("/workspace/a.md", "x")
    (commit,) = await bench.ws.log(limit=1)
    bench.reset()
    await bench.ws.undo_commit(commit)
    assert bench.records.commits == 1
    assert bench.records.reads <= 6


async def test_upkeep_is_bounded(bench: Bench) -> None:
    bench.reset()
    await bench.ws.namespaces()
    assert dict(bench.records.counts) == {"partitions": 1}

    bench.reset()
    await bench.ws.gc(dry_run=True)
    assert bench.records.commits == 0

    bench.reset()
    await bench.ws.drop_namespace("n")
    assert dict(bench.records.counts) == {"drop": 1}


async def test_large_content_costs_one_asset_call(bench: Bench) -> None:
    bench.reset()
    await bench.ws.write(BIG, b"\1" * 1000)
    assert dict(bench.assets.counts) == {"put": 1}
    assert bench.records.commits == 1

    bench.assets.reset()
    await bench.ws.read_bytes(BIG)
    assert sum(bench.assets.counts.values()) == 1

    bench.assets.reset()
    await bench.ws.stat(BIG)
    await bench.ws.rename(BIG, "/outputs/big.bin")
    await bench.ws.copy("/outputs/big.bin", BIG)
    assert not bench.assets.counts


async def test_the_cost_does_not_grow_with_the_namespace(bench: Bench) -> None:
    for number in range(300):
        await bench.ws.write(f"/workspace/many/{number:04}.md", "x")
        await bench.ws.write(FILE, f"{number}")
    for verb in ("read", "stat", "write", "rename"):
        bench.reset()
        await PLAIN[verb](bench.ws)
        assert (bench.records.reads, bench.records.commits) == (1, VERBS[verb].commits)


@pytest.mark.parametrize("files", [0, 1, 5])
async def test_a_transaction_costs_a_read_for_its_start_and_one_for_each_path(
    bench: Bench, files: int
) -> None:
    bench.reset()
    async with bench.ws.transaction() as tx:
        for number in range(files):
            await tx.write(f"/workspace/d/{number}.md", "x")
    assert bench.records.reads == 1 + files
    assert bench.records.commits == (1 if files else 0)


async def test_a_sweep_reads_its_files_together() -> None:
    opened, clock = memory_storage(), FixedClock()
    records = CountingRecordStore(opened.records)
    ws = workspace(
        id="w", namespace="n", records=records, clock=clock, retention=Retention(ttl_ms=1_000)
    )
    for number in range(80):
        await ws.write(f"/workspace/{number}", "x")
    clock.advance(5_000)
    records.reset()
    assert (await ws.usage()).live_files == 0
    assert records.reads <= 5
    records.reset()
    assert (await ws.gc(dry_run=False)).expired == 80
    assert records.reads <= 15
