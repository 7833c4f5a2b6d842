"""What is delivered: everything after the watch began, once, in order, and only what matches."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Callable

import pytest

from crux_workspace import (
    PURGED_PATH,
    LocalRuntime,
    WatchError,
    Workspace,
    WorkspaceChangeEvent,
)
from crux_workspace import storage as storage_room
from crux_workspace.events import tailer
from crux_workspace.storage import Storage
from crux_workspace.testing import LatencyRecordStore
from tests.watch.conftest import nothing_from, take, until

A = "/workspace/a.md"
B = "/workspace/b.md"


async def test_a_write_straight_after_watch_is_delivered(ws: Workspace) -> None:
    await ws.write(A, "before")
    handle = ws.watch()
    file = await ws.write(A, "after")
    (event,) = await take(handle, 1)
    entry = (await ws.log(limit=1))[0]
    assert event == WorkspaceChangeEvent(
        type="update",
        workspace_id="w",
        namespace="n",
        path=A,
        from_path=None,
        replaced=None,
        at=file.updated_at,
        cursor=entry.cursor,
        version=2,
        sequence=2,
        commit=entry.commit,
    )
    await nothing_from(handle)
    await handle.stop()


async def test_a_write_straight_after_watch_is_delivered_by_a_store_far_away(
    make_ws: Callable[..., Workspace], storage: Storage, runtime: LocalRuntime
) -> None:
    far = storage_room.storage(records=LatencyRecordStore(storage.records, delay_ms=3))
    ws = make_ws(storage=far, runtime=runtime)
    await ws.write(A, "before")
    for round_ in range(5):
        handle = ws.watch()
        writes = [asyncio.create_task(ws.write(f"/workspace/{round_}-{n}.md", "x")) for n in (0, 1)]
        await asyncio.sleep(0.002 * round_)
        await handle.ready()
        await asyncio.gather(*writes)
        events = await take(handle, 2)
        assert {event.path for event in events} >= {f"/workspace/{round_}-{n}.md" for n in (0, 1)}
        await handle.stop()


async def test_what_others_write_after_ready_is_delivered(
    ws: Workspace, elsewhere: Workspace
) -> None:
    await elsewhere.write(A, "before")
    async with ws.watch(poll_interval_ms=10) as handle:
        await elsewhere.write(A, "after")
        (event,) = await take(handle, 1)
        assert (event.type, event.sequence) == ("update", 2)


async def test_an_empty_namespace_can_be_watched_before_it_exists(
    ws: Workspace, elsewhere: Workspace
) -> None:
    place = await ws.cursor()
    async with ws.watch(poll_interval_ms=10) as handle:
        assert handle.cursor == place
        await elsewhere.write(A, "first")
        (event,) = await take(handle, 1)
        assert (event.type, event.sequence) == ("create", 1)
    async with ws.watch(cursor=place) as again:
        assert await take(again, 1) == [event]


async def test_oldest_begins_with_the_first_commit(ws: Workspace) -> None:
    for text in "abc":
        await ws.write(A, text)
    async with ws.watch(start="oldest") as handle:
        assert [event.version for event in await take(handle, 3)] == [1, 2, 3]
        await nothing_from(handle)


async def test_five_hundred_events_of_other_paths_between_two_of_ours(ws: Workspace) -> None:
    async with ws.watch(A) as handle:
        await ws.write(A, "first")
        for number in range(500):
            await ws.write(f"/workspace/other-{number % 7}.md", "x")
        await ws.write(A, "second")
        assert [event.version for event in await take(handle, 2)] == [1, 2]
        await nothing_from(handle)
        assert handle.cursor == await ws.cursor()


async def test_thousands_of_events_while_a_handler_blocks(ws: Workspace) -> None:
    blocked, entered = asyncio.Event(), asyncio.Event()
    seen: list[tuple[int, str]] = []

    async def slow(event: WorkspaceChangeEvent) -> None:
        entered.set()
        await blocked.wait()
        seen.append((event.sequence, event.path))

    async with ws.watch() as handle:
        handle.on(slow)
        await ws.write(A, "0")
        await entered.wait()
        for number in range(2_000):
            await ws.write(f"/workspace/{number % 50}.md", "x")
        stream = handle._callback_stream
        assert stream is not None
        assert len(stream._page) <= 100
        assert stream._tailer.held <= tailer.RING_CHANGES
        assert len(stream._tailer._ring) <= tailer.RING_COMMITS
        blocked.set()
        await until(lambda: len(seen) == 2_001)
        assert seen == [(1, A)] + [(n + 2, f"/workspace/{n % 50}.md") for n in range(2_000)]


async def test_memory_stays_bounded_while_nobody_asks(ws: Workspace) -> None:
    async with ws.watch() as handle:
        await ws.write(A, "0")
        await take(handle, 1)
        stream = handle._loop_stream
        assert stream is not None
        for number in range(600):
            await ws.write(f"/workspace/{number % 5}.md", "x")
        gc.collect()
        tracemalloc.start()
        base = tracemalloc.get_traced_memory()[0]
        seen = 0
        async for _ in handle:
            seen += 1
            if seen == 600:
                break
        grown = tracemalloc.get_traced_memory()[0] - base
        tracemalloc.stop()
        assert grown < 1_500_000
        assert len(stream._tailer._ring) <= tailer.RING_COMMITS


async def test_one_commit_with_more_changes_than_a_log_record_holds(ws: Workspace) -> None:
    for number in range(1_050):
        await ws.write(f"/workspace/many/{number:04d}.md", "x")
    async with ws.watch() as handle:
        await ws.move("/workspace/many", "/outputs/many")
        events = await take(handle, 1_050)
    assert [event.path for event in events] == [f"/outputs/many/{n:04d}.md" for n in range(1_050)]
    assert {event.sequence for event in events} == {1_051}
    async with ws.watch(cursor=events[1_020].cursor) as again:
        assert await take(again, 29) == events[1_021:]
        await nothing_from(again)


async def test_two_watchers_share_the_reading_but_not_the_place(ws: Workspace) -> None:
    for number in range(20):
        await ws.write(f"/workspace/{number}.md", "x")
    cursors = [entry.cursor for entry in await ws.log()]
    async with ws.watch(cursor=cursors[-5]) as early, ws.watch(cursor=cursors[4]) as late:
        assert [event.sequence for event in await take(late, 4)] == [17, 18, 19, 20]
        assert [event.sequence for event in await take(early, 15)] == list(range(6, 21))
        await ws.write(A, "x")
        assert (await take(late, 1)) == (await take(early, 1))
        assert early._tailer is late._tailer


async def test_who_reads_ahead_of_the_word_of_a_commit_leaves_nobody_asleep(
    ws: Workspace, elsewhere: Workspace
) -> None:
    """What one watcher learns by reading is no news any more when a hint or a poll says it: all who sleep must hear of it."""
    await ws.write(A, "1")
    sleepers = [ws.watch(poll_interval_ms=3_600_000) for _ in range(3)]
    waiting = [asyncio.create_task(take(handle, 1)) for handle in sleepers]
    await until(lambda: len(sleepers[0]._poller.sleeping) == 3)
    await elsewhere.write(A, "2")
    newcomer = ws.watch(start="oldest", poll_interval_ms=3_600_000)
    assert [event.version for event in await take(newcomer, 2)] == [1, 2]
    assert [(await events)[0].version for events in waiting] == [2, 2, 2]
    for handle in (*sleepers, newcomer):
        await handle.stop()


async def test_the_border_of_the_watched_tree(ws: Workspace) -> None:
    await ws.write("/workspace/in/a.md", "a")
    await ws.write("/workspace/out/b.md", "b")
    await ws.write("/workspace/inside.md", "not below")
    async with ws.watch("/workspace/in", recursive=True) as handle:
        await ws.rename("/workspace/in/a.md", "/workspace/out/a.md")
        await ws.rename("/workspace/out/b.md", "/workspace/in/b.md")
        await ws.rename("/workspace/in/b.md", "/workspace/in/c.md")
        await ws.write("/workspace/inside.md", "still not below")
        await ws.rename("/workspace/out/a.md", "/workspace/out/z.md")
        await ws.write("/workspace/in/d/e.md", "below")
        events = await take(handle, 4)
        assert [(event.type, event.from_path, event.path) for event in events] == [
            ("rename", "/workspace/in/a.md", "/workspace/out/a.md"),
            ("rename", "/workspace/out/b.md", "/workspace/in/b.md"),
            ("rename", "/workspace/in/b.md", "/workspace/in/c.md"),
            ("create", None, "/workspace/in/d/e.md"),
        ]
        await nothing_from(handle)


async def test_a_path_matches_exactly_unless_recursive(ws: Workspace) -> None:
    async with ws.watch("/workspace/in") as handle, ws.watch(A) as file:
        await ws.write("/workspace/in/a.md", "a")
        await ws.write(A, "a")
        await ws.rename(A, B)
        assert [event.type for event in await take(file, 2)] == ["create", "rename"]
        await nothing_from(handle)


@pytest.mark.parametrize("recursive", [False, True])
async def test_a_directorys_spelling_means_what_is_in_it_and_no_file_of_its_name(
    ws: Workspace, recursive: bool
) -> None:
    async with ws.watch("/workspace/in/", recursive=recursive) as handle:
        await ws.write("/workspace/in", "a file")
        await ws.rename("/workspace/in", "/workspace/out")
        await ws.write("/workspace/in/a.md", "a")
        await ws.write("/workspace/in/deep/b.md", "b")
        await ws.rename("/workspace/in/a.md", "/workspace/a.md")
        seen = [event.from_path or event.path for event in await take(handle, 2 + recursive)]
        deep = ["/workspace/in/deep/b.md"] if recursive else []
        assert seen == ["/workspace/in/a.md", *deep, "/workspace/in/a.md"]
        await nothing_from(handle)


async def test_what_is_overwritten_is_named(ws: Workspace) -> None:
    await ws.write(A, "a")
    lost = await ws.write(B, "b")
    async with ws.watch() as handle:
        await ws.rename(A, B, overwrite=True)
        events = await take(handle, 1)
        assert events[0].replaced == lost.id


async def test_a_purged_name_matches_the_whole_tree_only(ws: Workspace) -> None:
    place = await ws.cursor()
    await ws.write(A, "secret")
    await ws.delete(A, purge=True)
    async with ws.watch(cursor=place) as whole, ws.watch(A, cursor=place) as one:
        events = await take(whole, 2)
        assert [(event.type, event.path) for event in events] == [
            ("create", PURGED_PATH),
            ("delete", A),
        ]
        assert await take(one, 1) == events[1:]
        await nothing_from(one)


async def test_namespaces_do_not_mix(ws: Workspace) -> None:
    async with ws.watch(namespace="other") as handle:
        await ws.write(A, "here")
        await ws.write(A, "there", namespace="other")
        (event,) = await take(handle, 1)
        assert (event.namespace, event.sequence) == ("other", 1)
        await nothing_from(handle)


@pytest.mark.parametrize("suspends", [False, True])
async def test_a_callable_namespace(
    make_ws: Callable[..., Workspace], runtime: LocalRuntime, suspends: bool
) -> None:
    async def tell(_: object) -> str:
        if suspends:
            await asyncio.sleep(0.01)
        return "told"

    ws = make_ws(runtime=runtime, namespace=tell)
    handle = ws.watch()
    await ws.write(A, "after")
    (event,) = await take(handle, 1)
    assert event.namespace == "told"
    await handle.stop()


async def test_callbacks_are_awaited_in_order(ws: Workspace) -> None:
    order: list[str] = []

    async def first(event: WorkspaceChangeEvent) -> None:
        await asyncio.sleep(0.005)
        order.append(f"first {event.sequence}")

    def second(event: WorkspaceChangeEvent) -> None:
        order.append(f"second {event.sequence}")

    async with ws.watch() as handle:
        handle.on(first)
        unsubscribe = handle.on(second)
        await ws.write(A, "1")
        await ws.write(A, "2")
        await until(lambda: len(order) == 4)
        assert order == ["first 1", "second 1", "first 2", "second 2"]
        unsubscribe()
        unsubscribe()
        await ws.write(A, "3")
        end = await ws.cursor()
        await until(lambda: handle.cursor == end)
        assert order[4:] == ["first 3"]


async def test_a_handle_without_callbacks_pauses_and_loses_nothing(ws: Workspace) -> None:
    seen: list[int] = []
    async with ws.watch() as handle:
        unsubscribe = handle.on(lambda event: seen.append(event.sequence))
        await ws.write(A, "1")
        await until(lambda: bool(seen))
        unsubscribe()
        await ws.write(A, "2")
        await ws.write(A, "3")
        await asyncio.sleep(0.01)
        handle.on(lambda event: seen.append(event.sequence))
        await until(lambda: len(seen) == 3)
        assert seen == [1, 2, 3]


async def test_a_callback_that_raises_gets_the_next_event(ws: Workspace) -> None:
    told: list[WatchError] = []
    seen: list[int] = []

    def picky(event: WorkspaceChangeEvent) -> None:
        seen.append(event.sequence)
        if event.sequence < 3:
            raise ValueError("no")

    async with ws.watch(on_error=told.append) as handle:
        handle.on(picky)
        for text in "abcd":
            await ws.write(A, text)
        await until(lambda: len(seen) == 4)
        assert seen == [1, 2, 3, 4]
        assert [(type(t.error), t.failures, t.retry_delay_ms) for t in told] == [
            (ValueError, 1, 0),
            (ValueError, 2, 0),
        ]
        assert handle.cursor == await ws.cursor()


async def test_the_cursor_covers_an_event_once_the_next_one_is_asked_for(ws: Workspace) -> None:
    async with ws.watch() as handle:
        start = handle.cursor
        await ws.write(A, "1")
        await ws.write(A, "2")
        first, *_ = await take(handle, 1)
        assert handle.cursor == start
        second, *_ = await take(handle, 1)
        assert handle.cursor == first.cursor
        await nothing_from(handle)
        assert handle.cursor == second.cursor


async def test_the_cursor_covers_an_event_once_its_callbacks_returned(ws: Workspace) -> None:
    during: list[str | None] = []
    async with ws.watch() as handle:
        start = handle.cursor
        handle.on(lambda _: during.append(handle.cursor))
        await ws.write(A, "1")
        await until(lambda: handle.cursor != start)
        assert during == [start]
        assert handle.cursor == await ws.cursor()


async def test_the_lag_is_measured(
    make_ws: Callable[..., Workspace],
    runtime: LocalRuntime,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from crux_workspace.telemetry.metrics import WorkspaceMetrics

    lags: list[float] = []
    monkeypatch.setattr(WorkspaceMetrics, "record_watch_lag", lambda _, lag: lags.append(lag))
    ws = make_ws(runtime=runtime)
    async with ws.watch() as handle:
        await ws.write(A, "x")
        await take(handle, 1)
    assert lags == [0]
