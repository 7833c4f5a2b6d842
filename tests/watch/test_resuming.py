"""Cursors: resume is exact, and what cannot be resumed is told."""

from __future__ import annotations

import base64
import gc
from collections.abc import Callable
from pathlib import Path

import pytest

from crux_workspace import (
    LocalRuntime,
    Retention,
    WatchError,
    Workspace,
    open_workspace,
)
from crux_workspace.errors import InvalidInputError, WatchGapError
from crux_workspace.storage import memory_storage
from crux_workspace.testing import FixedClock
from tests.watch.conftest import nothing_from, take, until

A = "/workspace/a.md"


async def test_every_place_of_a_log_can_be_resumed(ws: Workspace) -> None:
    start = await ws.cursor()
    for number in range(6):
        await ws.write(f"/workspace/in/{number}.md", "x")
    await ws.move("/workspace/in", "/outputs/in")
    await ws.delete("/outputs/in", recursive=True)
    async with ws.watch(cursor=start) as handle:
        events = await take(handle, 18)
    for index, event in enumerate(events):
        async with ws.watch(cursor=event.cursor) as again:
            assert await take(again, 17 - index) == events[index + 1 :]
            await nothing_from(again, for_s=0.005)
    entries = {entry.sequence: entry.cursor for entry in await ws.log()}
    assert events[-1].cursor == entries[8]
    assert events[11].cursor == entries[7]
    assert await ws.cursor() == entries[8]


async def test_the_handles_cursor_resumes_in_the_middle_of_a_commit(ws: Workspace) -> None:
    for number in range(5):
        await ws.write(f"/workspace/in/{number}.md", "x")
    async with ws.watch() as handle:
        await ws.move("/workspace/in", "/outputs/in")
        events = await take(handle, 3)
        cursor = handle.cursor
    assert cursor == events[1].cursor
    async with ws.watch("/outputs/in", recursive=True, cursor=cursor) as again:
        assert [event.path for event in await take(again, 3)] == [
            f"/outputs/in/{n}.md" for n in (2, 3, 4)
        ]


async def test_take_the_cursor_read_the_state_watch_from_it(ws: Workspace) -> None:
    await ws.write(A, "1")
    place = await ws.cursor()
    await ws.write(A, "2")
    async with ws.watch(cursor=place) as handle:
        assert [event.version for event in await take(handle, 1)] == [2]


@pytest.mark.parametrize("cursor", ["", "nonsense", "!!!", "AAAA", 7, "é", "A" * 54])
async def test_a_malformed_cursor_fails_at_once(ws: Workspace, cursor: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        ws.watch(cursor=cursor)
    assert caught.value.code == "INVALID_CURSOR"


async def test_a_cut_cursor_fails_at_once(ws: Workspace) -> None:
    place = await ws.cursor()
    for length in range(len(place)):
        with pytest.raises(InvalidInputError, match="malformed"):
            ws.watch(cursor=place[:length])


async def test_a_foreign_cursor_fails_when_it_is_looked_at(ws: Workspace) -> None:
    await ws.write(A, "x", namespace="other")
    foreign = await ws.cursor(namespace="other")
    handle = ws.watch(cursor=foreign)
    for _ in range(2):
        with pytest.raises(InvalidInputError) as caught:
            await handle.ready()
        assert caught.value.code == "INVALID_CURSOR"
        with pytest.raises(InvalidInputError):
            await anext(handle)
    with pytest.raises(InvalidInputError):
        async with ws.watch(cursor=foreign) as never:
            raise AssertionError(never)
    told: list[WatchError] = []
    deaf = ws.watch(cursor=foreign, on_error=told.append)
    deaf.on(print)
    assert deaf._delivery is not None
    await deaf._delivery
    assert [type(problem.error) for problem in told] == [InvalidInputError]


async def _trimmed(
    make_ws: Callable[..., Workspace], runtime: LocalRuntime, clock: FixedClock
) -> tuple[Workspace, list[str]]:
    """A workspace whose log begins at commit 4, and the cursors after commits 1 to 4."""
    ws = make_ws(runtime=runtime, retention=Retention(log_ms=1_000))
    cursors = []
    for number in range(1, 5):
        if number == 4:
            clock.advance(2_000)
        await ws.write(A, str(number))
        cursors.append(await ws.cursor())
    await ws.gc(dry_run=False)
    assert [entry.sequence for entry in await ws.log()][-1] == 4
    return ws, cursors


async def test_a_log_trimmed_past_the_cursor_is_a_gap_and_delivery_goes_on(
    make_ws: Callable[..., Workspace], runtime: LocalRuntime, clock: FixedClock
) -> None:
    ws, cursors = await _trimmed(make_ws, runtime, clock)
    handle = ws.watch(cursor=cursors[0])
    with pytest.raises(WatchGapError) as caught:
        await take(handle, 1)
    assert caught.value.code == "WATCH_GAP"
    assert [event.sequence for event in await take(handle, 1)] == [4]
    await handle.stop()

    told: list[WatchError] = []
    async with ws.watch(cursor=cursors[1], on_error=told.append) as silent:
        assert [event.sequence for event in await take(silent, 1)] == [4]
        await nothing_from(silent)
    assert [type(problem.error) for problem in told] == [WatchGapError]


async def test_a_cursor_at_the_edge_of_the_trimmed_log_lost_nothing(
    make_ws: Callable[..., Workspace], runtime: LocalRuntime, clock: FixedClock
) -> None:
    ws, cursors = await _trimmed(make_ws, runtime, clock)
    async with ws.watch(cursor=cursors[2]) as handle:
        assert [event.sequence for event in await take(handle, 1)] == [4]
    async with ws.watch(start="oldest") as oldest:
        place = oldest.cursor
        assert [event.sequence for event in await take(oldest, 1)] == [4]
    async with ws.watch(cursor=place) as again:
        assert [event.sequence for event in await take(again, 1)] == [4]


async def test_a_place_before_the_first_commit_is_a_gap_once_that_is_trimmed(
    make_ws: Callable[..., Workspace], runtime: LocalRuntime, clock: FixedClock
) -> None:
    early = await make_ws(runtime=runtime).cursor()
    ws, _ = await _trimmed(make_ws, runtime, clock)
    handle = ws.watch(cursor=early)
    with pytest.raises(WatchGapError):
        await take(handle, 1)
    assert [event.sequence for event in await take(handle, 1)] == [4]


async def test_a_namespace_dropped_and_created_again(ws: Workspace) -> None:
    for text in "abc":
        await ws.write(A, text)
    place = await ws.cursor()
    await ws.drop_namespace("n")
    gone = ws.watch(cursor=place)
    with pytest.raises(WatchGapError):
        await take(gone, 1)
    await nothing_from(gone)
    for text in "abcde":
        await ws.write(A, text)
    assert [event.sequence for event in await take(gone, 5)] == [1, 2, 3, 4, 5]

    handle = ws.watch(cursor=place)
    with pytest.raises(WatchGapError):
        await take(handle, 1)
    assert [event.sequence for event in await take(handle, 5)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("commits", [1, 2, 5])
async def test_a_namespace_dropped_and_created_again_while_it_is_watched(
    ws: Workspace, commits: int
) -> None:
    async with ws.watch() as handle:
        await ws.write(A, "1")
        await ws.write(A, "2")
        await take(handle, 2)
        await ws.drop_namespace("n")
        for number in range(commits):
            await ws.write(A, str(number))
        with pytest.raises(WatchGapError):
            await take(handle, 1)
        events = await take(handle, commits)
        assert [event.sequence for event in events] == list(range(1, commits + 1))


async def test_a_namespace_dropped_elsewhere_is_noticed_by_polling(
    ws: Workspace, elsewhere: Workspace
) -> None:
    async with ws.watch(poll_interval_ms=10) as handle:
        await ws.write(A, "1")
        await take(handle, 1)
        await elsewhere.drop_namespace("n")
        with pytest.raises(WatchGapError):
            await take(handle, 1)
        await elsewhere.write(A, "new")
        assert [event.sequence for event in await take(handle, 1)] == [1]


async def test_a_cursor_from_the_future(
    make_ws: Callable[..., Workspace], runtime: LocalRuntime
) -> None:
    """As after a database was put back from a copy: the same partition, but fewer commits."""
    ws = make_ws(runtime=runtime)
    await ws.write(A, "1")
    data = bytearray(base64.urlsafe_b64decode(await ws.cursor() + "=="))
    data[16:24] = (9).to_bytes(8, "big")
    future = base64.urlsafe_b64encode(data).decode().rstrip("=")
    handle = ws.watch(cursor=future)
    with pytest.raises(WatchGapError):
        await take(handle, 1)
    assert [event.sequence for event in await take(handle, 1)] == [1]


async def test_a_cursor_of_another_history_of_the_same_log(ws: Workspace) -> None:
    """As after a failover that lost commits: the same sequence, but another commit."""
    await ws.write(A, "1")
    await ws.write(A, "2")
    data = bytearray(base64.urlsafe_b64decode(await ws.cursor() + "=="))
    data[-1] ^= 1
    handle = ws.watch(cursor=base64.urlsafe_b64encode(data).decode().rstrip("="))
    with pytest.raises(WatchGapError):
        await take(handle, 1)
    assert [event.sequence for event in await take(handle, 2)] == [1, 2]


async def test_a_cursor_of_a_replaced_database(tmp_path: Path) -> None:
    async with open_workspace(f"sqlite:///{tmp_path}/one.db?durability=normal") as one:
        await one.write(A, "1")
        place = await one.cursor()
    async with open_workspace(f"sqlite:///{tmp_path}/two.db?durability=normal") as two:
        handle = two.watch(cursor=place)
        with pytest.raises(WatchGapError):
            await take(handle, 1)
        await two.write(A, "1")
        assert [event.sequence for event in await take(handle, 1)] == [1]


async def test_another_storage_does_not_fit_either(
    make_ws: Callable[..., Workspace], runtime: LocalRuntime
) -> None:
    ws, other = make_ws(runtime=runtime), make_ws(runtime=runtime, storage=memory_storage())
    await ws.write(A, "1")
    await other.write(A, "1")
    handle = other.watch(cursor=await ws.cursor())
    with pytest.raises(WatchGapError):
        await take(handle, 1)
    assert await take(handle, 1)


async def test_a_place_inside_a_commit_that_is_trimmed_is_a_gap(
    make_ws: Callable[..., Workspace], runtime: LocalRuntime, clock: FixedClock
) -> None:
    ws = make_ws(runtime=runtime, retention=Retention(log_ms=1_000))
    for number in range(3):
        await ws.write(f"/workspace/in/{number}.md", "x")
    async with ws.watch() as handle:
        await ws.move("/workspace/in", "/outputs/in")
        inside = (await take(handle, 1))[0].cursor
    del handle  # and with it the ring, which still has the rest of the commit
    gc.collect()
    clock.advance(2_000)
    await ws.write(A, "x")
    await ws.gc(dry_run=False)
    handle = ws.watch(cursor=inside)
    with pytest.raises(WatchGapError):
        await take(handle, 1)
    assert [event.sequence for event in await take(handle, 1)] == [5]
    await handle.stop()


async def test_callbacks_go_on_after_a_gap(ws: Workspace) -> None:
    seen: list[int] = []
    await ws.write(A, "1")
    place = await ws.cursor()
    await ws.drop_namespace("n")
    await ws.write(A, "1")
    async with ws.watch(cursor=place) as handle:
        handle.on(lambda event: seen.append(event.sequence))
        await until(lambda: seen == [1])
