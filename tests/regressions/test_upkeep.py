"""Collection comes to rest, and keeps the times that were promised."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crux_workspace import PURGED_PATH, Change, Retention, Versioning, Workspace
from crux_workspace.errors import InvalidPathError
from crux_workspace.model.paths import normalise
from crux_workspace.storage import MemoryAssetStore, Storage
from crux_workspace.testing import FixedClock
from tests.support.transactions import tip

HOUR = 3_600_000
MakeWorkspace = Callable[..., Workspace]


async def _busy(ws: Workspace, clock: FixedClock) -> None:
    """Leave something for each part of a collection."""
    for number in range(12):
        await ws.write(
            "/workspace/a.md", f"{number}\n" + "line\n" * 2_000, idempotency_key=f"k{number}"
        )
        clock.advance(1)
    await ws.write("/workspace/b.bin", b"x" * 100)
    await ws.delete("/workspace/b.bin", purge=True)
    await ws.write("/workspace/c.bin", b"y" * 100)
    await ws.delete("/workspace/c.bin")


async def test_a_collection_with_nothing_to_do_writes_nothing(
    make_ws: MakeWorkspace, storage: Storage, clock: FixedClock
) -> None:
    """The commit that trims the log is old one day too, and is no reason to write another one."""
    storage = Storage(storage.records, MemoryAssetStore(clock=clock))
    retention = Retention(log_ms=HOUR, asset_grace_ms=HOUR)
    ws = make_ws(storage=storage, retention=retention, versioning=Versioning(max_versions=4))
    await _busy(ws, clock)
    for _ in range(6):
        clock.advance(48 * HOUR)
        await ws.gc(dry_run=False)
    at_rest = await tip(ws)
    for _ in range(3):
        clock.advance(48 * HOUR)
        planned = await ws.gc()
        report = await ws.gc(dry_run=False)
        assert (planned.log_entries, report.log_entries) == (0, 0)
        assert await tip(ws) == at_rest
    await ws.write("/workspace/d.md", "d")
    clock.advance(48 * HOUR)
    await ws.write("/workspace/e.md", "e")
    assert (await ws.gc(dry_run=False)).log_entries > 0
    assert [entry.verb for entry in await ws.log()][-1] == "write"


async def test_old_commits_are_forgotten_with_the_upkeep_among_them(
    make_ws: MakeWorkspace, clock: FixedClock
) -> None:
    ws = make_ws(retention=Retention(log_ms=HOUR))
    for _ in range(3):
        await ws.write("/workspace/a", "a")
        await ws.write("/workspace/a", "b")
        clock.advance(2 * HOUR)
        await ws.gc(dry_run=False)
    clock.advance(2 * HOUR)
    newest = await ws.write("/workspace/a", "c")
    await ws.gc(dry_run=False)
    log = await ws.log()
    assert [entry.verb for entry in log] == ["gc", "write", "gc"]
    assert log[1].commit == newest.commit


@pytest.mark.parametrize(("then", "now"), [(HOUR, 10 * HOUR), (10 * HOUR, HOUR)])
async def test_a_released_asset_keeps_the_time_it_was_promised(
    make_ws: MakeWorkspace, storage: Storage, clock: FixedClock, then: int, now: int
) -> None:
    storage = Storage(storage.records, MemoryAssetStore(clock=clock))
    releasing = make_ws(storage=storage, retention=Retention(asset_grace_ms=then))
    collecting = make_ws(storage=storage, retention=Retention(asset_grace_ms=now))
    await releasing.write("/workspace/a.bin", b"x")
    await releasing.delete("/workspace/a.bin", purge=True)
    clock.advance(then - 1)
    assert (await collecting.gc(dry_run=False)).assets == 0
    clock.advance(1)
    assert (await collecting.gc(dry_run=False)).assets == 1


async def test_a_purged_path_is_told_by_a_mark_that_no_path_can_be(ws: Workspace) -> None:
    await ws.write("/workspace/a", "secret")
    await ws.rename("/workspace/a", "/workspace/b")
    await ws.delete("/workspace/b", purge=True)
    told = {entry.verb: entry.changes for entry in await ws.log() if entry.changes}
    assert [(change.path, change.from_path) for change in told["write"]] == [(PURGED_PATH, None)]
    assert [(c.path, c.from_path) for c in told["rename"]] == [(PURGED_PATH, PURGED_PATH)]
    assert [change.path for change in told["delete"]] == ["/workspace/b"]
    assert isinstance(told["write"][0], Change)
    with pytest.raises(InvalidPathError):
        normalise(PURGED_PATH)
    with pytest.raises(InvalidPathError):
        await ws.write(PURGED_PATH, "x")
