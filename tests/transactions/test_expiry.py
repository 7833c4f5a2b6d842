"""Files whose time passes before, during and after a transaction."""

from __future__ import annotations

from typing import Any

import pytest

from crux_workspace import Limits, Retention, Workspace
from crux_workspace.testing import FixedClock
from tests.support.transactions import BIG, conflict, net

A, B, C, D = "/workspace/a", "/workspace/b", "/workspace/c", "/workspace/d"
TTL = 1_000


@pytest.fixture
def ws(make_ws: Any) -> Workspace:
    made: Workspace = make_ws(retention=Retention(ttl_ms=TTL, asset_grace_ms=0))
    return made


async def test_an_expired_file_is_not_there_and_a_write_goes_on_with_it(
    ws: Workspace, clock: FixedClock
) -> None:
    first = await ws.write(A, "one")
    clock.advance(TTL)
    await ws.write(B, "after")
    async with ws.transaction() as tx:
        assert not await tx.exists(A)
        assert [entry.path for entry in await tx.list("/workspace")] == [B]
        again = await tx.write(A, "two")
    assert (again.id, again.version) == (first.id, 3)
    assert await net(ws) == [f"delete {A}", f"create {A}"]
    assert [entry.operation for entry in await ws.history(A)] == ["write", "delete", "write"]


async def test_an_expired_file_that_goes_on_can_be_moved(ws: Workspace, clock: FixedClock) -> None:
    first = await ws.write(A, BIG)
    clock.advance(TTL)
    await ws.write(B, "after")
    async with ws.transaction() as tx:
        await tx.write(A, "two")
        await tx.rename(A, C)
    found = await ws.stat(C)
    assert found is not None
    assert found.id == first.id
    fresh = await ws.write(A, "another")
    assert (fresh.version, fresh.id != first.id) == (1, True)


async def test_a_file_may_come_where_an_expired_directory_was(
    ws: Workspace, clock: FixedClock
) -> None:
    await ws.write(D + "/x", "x")
    await ws.write(D + "/deep/y", BIG)
    clock.advance(TTL)
    await ws.write(B, "after")
    async with ws.transaction() as tx:
        assert not await tx.exists(D)
        await tx.write(D, "a file")
    assert await ws.read_text(D) == "a file"
    await ws.gc(dry_run=False)
    assert [entry.path async for entry in ws.walk()] == [B, D]


async def test_a_file_may_come_below_an_expired_one(ws: Workspace, clock: FixedClock) -> None:
    await ws.write(D, "x")
    clock.advance(TTL)
    await ws.write(B, "after")
    async with ws.transaction() as tx:
        await tx.write(D + "/below", "a file")
    assert await ws.read_text(D + "/below") == "a file"


async def test_a_file_that_expires_during_the_transaction_is_seen_to_its_end(
    ws: Workspace, clock: FixedClock
) -> None:
    await ws.write(A, "one")
    async with ws.transaction() as tx:
        clock.advance(TTL)
        assert not await ws.exists(A)
        assert await tx.read_text(A) == "one"
        await tx.write(B, "found one")
    with conflict(A):
        async with ws.transaction() as tx:
            await ws.write(A, "two")
            await tx.write(A, "mine")


async def test_a_sweep_of_what_was_read_is_a_conflict(ws: Workspace, clock: FixedClock) -> None:
    await ws.write(A, "one")
    with conflict(A):
        async with ws.transaction() as tx:
            await tx.read(A)
            clock.advance(TTL)
            await ws.gc(dry_run=False)
            await tx.write(B, "found one")
    assert not await ws.exists(B)


async def test_what_is_due_makes_room_for_a_transaction(make_ws: Any, clock: FixedClock) -> None:
    ws = make_ws(retention=Retention(ttl_ms=TTL, asset_grace_ms=0), limits=Limits(max_files=2))
    await ws.write(A, "a")
    await ws.write(B, "b")
    clock.advance(TTL)
    async with ws.transaction() as tx:
        await tx.write(C, "c")
        await tx.write(D, "d")
    assert [entry.path async for entry in ws.walk()] == [C, D]


async def test_the_time_to_live_begins_at_the_commit(ws: Workspace, clock: FixedClock) -> None:
    async with ws.transaction() as tx:
        await tx.write(A, "one")
        clock.advance(TTL // 2)
        await tx.append(A, "two")
        clock.advance(TTL)
        assert await tx.read_text(A) == "onetwo"
    clock.advance(TTL - 1)
    assert await ws.exists(A)
    clock.advance(1)
    assert not await ws.exists(A)
