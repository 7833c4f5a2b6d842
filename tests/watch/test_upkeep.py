"""What a runtime does unasked: due files are swept, and what nobody needs is collected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from crux_workspace import LocalRuntime, Retention, Versioning, Workspace, local_runtime
from crux_workspace import storage as storage_room
from crux_workspace.storage import Storage
from crux_workspace.testing import CountingRecordStore, FixedClock
from tests.watch.conftest import take, until

A = "/workspace/a.md"


@pytest.fixture
async def busy() -> AsyncIterator[LocalRuntime]:
    async with local_runtime(sweep_interval_ms=5, gc_interval_ms=10) as made:
        yield made


async def test_due_files_are_swept_and_watchers_are_told(
    make_ws: Callable[..., Workspace], busy: LocalRuntime, clock: FixedClock
) -> None:
    ws = make_ws(runtime=busy, retention=Retention(ttl_ms=1_000))
    await ws.write(A, "x")
    await ws.write(A, "y", namespace="other")
    async with ws.watch() as handle, ws.watch(namespace="other") as other:
        clock.advance(2_000)
        for watched in (handle, other):
            (event,) = await take(watched, 1)
            assert (event.type, event.path) == ("delete", A)
    assert (await ws.log(limit=1))[0].verb == "expire"


async def test_gc_runs_in_its_own_interval(
    make_ws: Callable[..., Workspace], busy: LocalRuntime
) -> None:
    wide = make_ws()
    for number in range(5):
        await wide.write(A, str(number))
    ws = make_ws(runtime=busy, versioning=Versioning(max_versions=2))
    assert await ws.exists(A)

    async def versions() -> int:
        return len(await ws.history(A))

    async with asyncio.timeout(5):
        while await versions() > 2:  # noqa: ASYNC110 - asks the store
            await asyncio.sleep(0.005)


async def test_intervals_of_none_do_nothing(
    make_ws: Callable[..., Workspace], storage: Storage
) -> None:
    records = CountingRecordStore(storage.records)
    async with local_runtime(sweep_interval_ms=None, gc_interval_ms=None) as idle:
        ws = make_ws(storage=storage_room.storage(records=records), runtime=idle)
        await ws.write(A, "x")
        records.reset()
        await asyncio.sleep(0.05)
        assert not records.counts


async def test_upkeep_ends_with_the_workspace(
    make_ws: Callable[..., Workspace], busy: LocalRuntime, storage: Storage
) -> None:
    records = CountingRecordStore(storage.records)
    ws = make_ws(storage=storage_room.storage(records=records), runtime=busy)
    await ws.write(A, "x")
    records.reset()
    await until(lambda: bool(records.counts))
    await ws.aclose()
    records.reset()
    await asyncio.sleep(0.05)
    assert not records.counts
    assert not busy._upkeep._jobs


async def test_upkeep_survives_a_store_that_fails(
    make_ws: Callable[..., Workspace], busy: LocalRuntime, storage: Storage, clock: FixedClock
) -> None:
    from tests.watch.test_failing import Switched

    records = Switched(storage.records)
    ws = make_ws(
        storage=storage_room.storage(records=records),
        runtime=busy,
        retention=Retention(ttl_ms=1_000),
    )
    await ws.write(A, "x")
    records.off = True
    await asyncio.sleep(0.03)
    records.off = False
    clock.advance(2_000)
    async with asyncio.timeout(5):
        while (await ws.log(limit=1))[0].verb != "expire":  # noqa: ASYNC110 - asks the store
            await asyncio.sleep(0.005)


async def test_upkeep_forgets_a_storage_that_was_closed(
    make_ws: Callable[..., Workspace], busy: LocalRuntime, tmp_path: object
) -> None:
    from storage_adapters import open_storage

    opened = await open_storage(f"sqlite:///{tmp_path}/closed.db?durability=normal")
    ws = make_ws(storage=opened, runtime=busy)
    await ws.write(A, "x")
    assert busy._upkeep._jobs
    await opened.aclose()
    await until(lambda: not busy._upkeep._jobs)
