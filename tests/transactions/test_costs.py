"""What a transaction costs: the paths it touches, never the size of the namespace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crux_workspace import Transaction, Workspace, workspace
from crux_workspace.storage import Storage
from crux_workspace.storage import storage as bundle
from crux_workspace.testing import CountingAssetStore, CountingRecordStore
from tests.support.crew import in_ci
from tests.support.transactions import BIG

MANY = {"memory": 20_000, "sqlite": 20_000 if in_ci() else 5_000, "postgres": 5_000}
BATCH = 1_000


@pytest.fixture
def records(storage: Storage) -> CountingRecordStore:
    return CountingRecordStore(storage.records)


@pytest.fixture
def assets(storage: Storage) -> CountingAssetStore:
    assert storage.assets is not None
    return CountingAssetStore(storage.assets)


@pytest.fixture
def counted(make_ws: Any, records: CountingRecordStore, assets: CountingAssetStore) -> Workspace:
    ws: Workspace = make_ws(storage=bundle(records=records, assets=assets))
    return ws


async def creates(tx: Transaction, count: int) -> None:
    for number in range(count):
        await tx.write(f"/workspace/new/{number}", "x")


async def overwrites(tx: Transaction, count: int) -> None:
    for number in range(count):
        await tx.write(f"/workspace/old/{number}", "x")


async def edits_of_what_was_read(tx: Transaction, count: int) -> None:
    for number in range(count):
        await tx.read_text(f"/workspace/old/{number}")
        await tx.edit(f"/workspace/old/{number}", "o", "e")


async def appends_over_and_over(tx: Transaction, count: int) -> None:
    for number in range(count):
        for _ in range(5):
            await tx.append(f"/workspace/old/{number}", "x")


async def deletes(tx: Transaction, count: int) -> None:
    for number in range(count):
        await tx.delete(f"/workspace/old/{number}")


@pytest.mark.parametrize("count", [1, 10])
@pytest.mark.parametrize(
    "steps", [creates, overwrites, edits_of_what_was_read, appends_over_and_over, deletes]
)
async def test_k_files_are_at_most_k_and_one_reads_and_one_commit(
    counted: Workspace,
    records: CountingRecordStore,
    steps: Callable[[Transaction, int], Awaitable[None]],
    count: int,
) -> None:
    async with counted.transaction() as tx:
        for number in range(count):
            await tx.write(f"/workspace/old/{number}", "old")
    records.reset()
    async with counted.transaction() as tx:
        await steps(tx, count)
    assert records.reads <= count + 1
    assert records.commits == 1
    assert records.counts["plan"] == 1


async def test_many_reads_in_one_call_are_one_read(
    counted: Workspace, records: CountingRecordStore
) -> None:
    await counted.write("/workspace/a", "x")
    records.reset()
    async with counted.transaction() as tx:
        await tx.read_many(["/workspace/a", "/workspace/b", "/workspace/c"])
        await tx.read_many(["/workspace/a", "/workspace/b", "/workspace/c"])
        await tx.stat("/workspace/a")
    assert records.reads == 2
    assert records.commits == 0


async def test_each_large_file_is_put_once_and_copies_are_not(
    counted: Workspace, assets: CountingAssetStore
) -> None:
    async with counted.transaction() as tx:
        await tx.write("/workspace/a", BIG)
        await tx.copy("/workspace/a", "/workspace/b")
        await tx.rename("/workspace/a", "/workspace/c")
        await tx.finalize("/workspace/c")
    assert dict(assets.counts) == {"put": 1}


async def two_files(tx: Transaction) -> None:
    await tx.edit("/workspace/d0/0", "x", "y")
    await tx.write("/workspace/new/file", "new")
    await tx.exists("/workspace/absent")
    await tx.list("/workspace/d1")


@pytest.mark.timeout(120)
async def test_the_reads_are_the_same_in_a_small_and_in_a_large_namespace(
    storage: Storage, records: CountingRecordStore, request: pytest.FixtureRequest
) -> None:
    """100 files, then 20,000, in directories of ten."""
    many = MANY.get(request.node.callspec.params["storage"], 2_000)
    counted = workspace(id="w", namespace="n", records=records, assets=storage.assets)
    costs, made = [], 0
    for size in (100, many):
        while made < size:
            async with counted.transaction() as tx:
                for number in range(made, min(size, made + BATCH)):
                    await tx.write(f"/workspace/d{number // 10}/{number % 10}", "x")
            made = min(size, made + BATCH)
        records.reset()
        async with counted.transaction() as tx:
            await two_files(tx)
        costs.append((records.reads, records.commits, records.counts["plan"]))
        await counted.write("/workspace/d0/0", "x")
        await counted.delete("/workspace/new/file")
    assert costs[0] == costs[1]
    await counted.aclose()
