"""How a watch ends: by stopping, by cancelling, with its workspace or its runtime, and without a trace."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from crux_workspace import (
    LocalRuntime,
    WatchHandle,
    Workspace,
    WorkspaceChangeEvent,
    configure,
    local_runtime,
    open_workspace,
    workspace,
)
from crux_workspace import storage as storage_room
from crux_workspace.errors import InvalidInputError, RuntimeRequiredError, StateError
from crux_workspace.storage import Storage, memory_storage
from crux_workspace.testing import LatencyRecordStore
from tests.watch.conftest import take, until

A = "/workspace/a.md"


async def test_stop_ends_the_iteration(ws: Workspace) -> None:
    handle = ws.watch()
    loop = asyncio.create_task(take(handle, 1))
    await asyncio.sleep(0)
    await handle.stop()
    await handle.stop()
    assert handle.stopped
    with pytest.raises(StopAsyncIteration):
        await anext(handle)
    with pytest.raises((StopAsyncIteration, RuntimeError)):
        await loop
    assert [event async for event in handle] == []
    await handle.ready()
    handle.on(print)()


async def test_stop_keeps_the_cursor_and_counts_what_was_done_with(ws: Workspace) -> None:
    async with ws.watch() as handle:
        await ws.write(A, "1")
        seen = []
        async for event in handle:
            seen.append(event.cursor)
            await handle.stop()
        assert [handle.cursor] == seen


async def test_stop_inside_a_callback(ws: Workspace) -> None:
    seen: list[int] = []

    async def once(event: WorkspaceChangeEvent) -> None:
        seen.append(event.sequence)
        await handle.stop()
        await asyncio.sleep(0)
        seen.append(-event.sequence)

    handle = ws.watch()
    handle.on(once)
    await ws.write(A, "1")
    await ws.write(A, "2")
    await until(lambda: len(seen) == 2)
    await asyncio.sleep(0.01)
    assert seen == [1, -1]
    assert handle.cursor == (await ws.log())[1].cursor


async def test_closing_the_workspace_inside_a_callback(
    make_ws: Callable[..., Workspace], runtime: LocalRuntime
) -> None:
    ws = make_ws(runtime=runtime)
    closed = asyncio.Event()

    async def close(_: WorkspaceChangeEvent) -> None:
        await ws.aclose()
        closed.set()

    handle = ws.watch()
    handle.on(close)
    await ws.write(A, "1")
    async with asyncio.timeout(2):
        await closed.wait()
    assert handle.stopped


async def test_stop_cancels_a_callback_that_is_running(ws: Workspace) -> None:
    entered = asyncio.Event()

    async def hang(_: WorkspaceChangeEvent) -> None:
        entered.set()
        await asyncio.Event().wait()

    handle = ws.watch()
    handle.on(hang)
    await handle.ready()
    start = handle.cursor
    await ws.write(A, "1")
    await entered.wait()
    async with asyncio.timeout(1):
        await handle.stop()
    assert handle.cursor == start


async def test_a_callback_that_is_cancelled_from_within_goes_on(ws: Workspace) -> None:
    seen: list[int] = []

    async def cancelled(event: WorkspaceChangeEvent) -> None:
        seen.append(event.sequence)
        raise asyncio.CancelledError

    async with ws.watch() as handle:
        handle.on(cancelled)
        await ws.write(A, "1")
        await ws.write(A, "2")
        await until(lambda: seen == [1, 2])


async def test_closing_the_workspace_ends_its_watches(
    make_ws: Callable[..., Workspace], runtime: LocalRuntime
) -> None:
    ws, other = make_ws(runtime=runtime), make_ws(runtime=runtime)
    handle, kept = ws.watch(), other.watch()
    loop = asyncio.create_task(anext(handle, None))
    await asyncio.sleep(0.01)
    await ws.aclose()
    assert await loop is None
    assert handle.stopped
    assert not kept.stopped
    with pytest.raises(StateError) as caught:
        ws.watch()
    assert caught.value.code == "WORKSPACE_CLOSED"
    await other.write(A, "x")
    await take(kept, 1)


async def test_closing_the_runtime_ends_the_watches_it_drives(
    make_ws: Callable[..., Workspace],
) -> None:
    async with local_runtime() as runtime:
        ws = make_ws(runtime=runtime)
        handle = ws.watch()
        handle.on(print)
    assert handle.stopped
    await runtime.aclose()
    with pytest.raises(RuntimeRequiredError):
        ws.watch()
    await ws.write(A, "x")


@pytest.mark.parametrize("delay_ms", [0, 1])
async def test_cancelling_the_loop_at_each_await_loses_and_doubles_nothing(
    make_ws: Callable[..., Workspace], storage: Storage, runtime: LocalRuntime, delay_ms: int
) -> None:
    records = LatencyRecordStore(storage.records, delay_ms=delay_ms)
    ws = make_ws(storage=storage_room.storage(records=records), runtime=runtime)
    writer = make_ws()
    handle = ws.watch(poll_interval_ms=2, limit=3)
    await handle.ready()
    seen: list[int] = []
    for round_ in range(60):
        if round_ < 30:
            await writer.write(A, str(round_))
        step = asyncio.create_task(anext(handle))
        for _ in range(round_ % 12):
            await asyncio.sleep(0 if round_ % 2 else 0.0005)
        step.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            seen.append((await step).sequence)
    seen += [event.sequence for event in await take(handle, 30 - len(seen))]
    assert seen == list(range(1, 31))
    await handle.stop()


async def test_cancelling_the_opening_can_be_repeated(
    make_ws: Callable[..., Workspace], storage: Storage, runtime: LocalRuntime
) -> None:
    records = LatencyRecordStore(storage.records, delay_ms=2)
    ws = make_ws(storage=storage_room.storage(records=records), runtime=runtime)
    handle = ws.watch()
    for steps in range(6):
        opening = asyncio.create_task(handle.ready())
        await asyncio.sleep(steps * 0.0005)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
    await ws.write(A, "x")
    await take(handle, 1)
    await handle.stop()


async def test_two_loops_share_the_events_of_a_handle(ws: Workspace) -> None:
    async with ws.watch() as handle:
        both = asyncio.gather(take(handle, 2), take(handle, 2))
        for text in "abcd":
            await ws.write(A, text)
        one, two = await both
        assert sorted(event.sequence for event in one + two) == [1, 2, 3, 4]


async def test_a_second_loop_goes_on_where_the_first_was_left(ws: Workspace) -> None:
    async with ws.watch() as handle:
        for text in "abc":
            await ws.write(A, text)
        async for event in handle:
            if event.sequence == 2:
                break
        assert [event.sequence for event in await take(handle, 1)] == [3]


async def test_a_forgotten_handle_costs_nothing_more(ws: Workspace, runtime: LocalRuntime) -> None:
    handle: WatchHandle | None = ws.watch(poll_interval_ms=1)
    assert handle is not None
    await ws.write(A, "x")
    await take(handle, 1)
    tailer, poller = handle._tailer, handle._poller
    gone = weakref.ref(handle)
    handle = None
    gc.collect()
    assert gone() is None
    assert tailer is not None
    assert not list(tailer.followers)
    await asyncio.sleep(0.01)
    assert poller._timer is None


async def test_a_loop_that_nobody_holds_still_gets_its_event(ws: Workspace) -> None:
    seen: list[int] = []

    async def follow() -> None:
        async for event in ws.watch():
            seen.append(event.sequence)
            return

    asyncio.get_running_loop().create_task(follow())
    await asyncio.sleep(0.01)
    gc.collect()
    await ws.write(A, "x")
    await until(lambda: seen == [1])


async def test_without_a_runtime() -> None:
    ws = workspace(id="w", namespace="n", storage=memory_storage())
    with pytest.raises(RuntimeRequiredError, match=r"workspace\.watch\(\)") as caught:
        ws.watch()
    assert caught.value.code == "RUNTIME_REQUIRED"
    await ws.write(A, "x")
    assert (await ws.log())[0].sequence == 1
    await ws.aclose()


async def test_the_process_default_and_the_workspaces_own() -> None:
    async with local_runtime() as common, local_runtime() as own:
        configure(runtime=common)
        try:
            plain = workspace(id="w", namespace="n", storage=memory_storage())
            chosen = workspace(id="w", namespace="n", storage=memory_storage(), runtime=own)
            a, b = plain.watch(), chosen.watch()
            assert a._request.runtime is common
            assert b._request.runtime is own
            await plain.write(A, "x")
            await take(a, 1)
        finally:
            configure(runtime=None)
        with pytest.raises(RuntimeRequiredError):
            plain.watch()
        await chosen.aclose()
        await plain.aclose()


@pytest.mark.parametrize(
    "options",
    [
        {"poll_interval_ms": 0},
        {"poll_interval_ms": 1.5},
        {"limit": 0},
        {"limit": True},
        {"start": "middle"},
        {"recursive": "yes"},
        {"on_error": 7},
        {"path": "relative"},
        {"namespace": " "},
    ],
)
async def test_bad_options(ws: Workspace, options: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        ws.watch(**options)  # type: ignore[arg-type]


async def test_bad_runtimes_and_callbacks(ws: Workspace) -> None:
    for options in ({"sweep_interval_ms": 0}, {"gc_interval_ms": "1"}, {"gc_interval_ms": True}):
        with pytest.raises(InvalidInputError):
            local_runtime(**options)
    with pytest.raises(InvalidInputError):
        configure(runtime="local")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError):
        workspace(id="w", runtime=1)  # type: ignore[arg-type]
    handle = ws.watch()
    with pytest.raises(InvalidInputError):
        handle.on(None)  # type: ignore[arg-type]
    await handle.stop()


def test_a_runtime_belongs_to_a_loop() -> None:
    runtime = local_runtime()
    store = memory_storage()

    async def use() -> None:
        ws = workspace(id="w", namespace="n", storage=store, runtime=runtime)
        handle = ws.watch()
        await ws.write(A, "x")
        await take(handle, 1)
        await ws.aclose()

    first = asyncio.new_event_loop()
    first.run_until_complete(use())

    async def refused() -> None:
        ws = workspace(id="w", namespace="n", storage=store, runtime=runtime)
        with pytest.raises(StateError) as caught:
            ws.watch()
        assert caught.value.code == "WRONG_LOOP"
        await ws.write(A, "x")
        await ws.aclose()

    asyncio.run(refused())
    first.close()
    asyncio.run(use())  # the loop it belonged to is gone: it takes the next one


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_a_forked_child_is_refused(ws: Workspace, runtime: LocalRuntime) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            runtime.check()
        except StateError as error:
            code = 0 if error.code == "FORKED" else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0  # noqa: ASYNC222


def test_nothing_is_left_of_a_workspace_that_was_never_closed(tmp_path: Path) -> None:
    """Neither a task nor a warning, even when the loop ends under a watch."""

    async def forget() -> None:
        ws = workspace(id="w", namespace="n", storage=memory_storage(), runtime=local_runtime())
        handle = ws.watch(poll_interval_ms=1)
        handle.on(print)
        await ws.write("/outputs/a.md", "x")
        await asyncio.sleep(0.01)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(forget())
        gc.collect()


async def test_open_workspace_closes_its_private_runtime(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    async with open_workspace(f"sqlite:///{tmp_path}/a.db?durability=normal") as ws:
        handle = ws.watch()
        handle.on(lambda _: None)
        await ws.write(A, "x")
        runtime = ws._core.runtime
        assert runtime is not None
    assert handle.stopped
    assert runtime.closed
    assert asyncio.all_tasks() == before


async def test_a_given_runtime_is_not_closed(runtime: LocalRuntime) -> None:
    async with open_workspace("memory://", runtime=runtime) as ws:
        await ws.write(A, "x")
    assert not runtime.closed


def test_a_commit_on_another_loop_wakes_the_watcher() -> None:
    """One store object, two loops in two threads: word of the commit crosses over."""
    store = memory_storage()

    async def write() -> None:
        async with workspace(id="w", namespace="n", storage=store) as ws:
            await ws.write(A, "x")

    async def follow() -> None:
        async with (
            local_runtime() as runtime,
            workspace(id="w", namespace="n", storage=store, runtime=runtime) as ws,
            ws.watch(poll_interval_ms=60_000) as handle,
        ):
            waiting = asyncio.create_task(take(handle, 1))
            await asyncio.sleep(0.01)
            await asyncio.to_thread(lambda: asyncio.run(write()))
            await waiting

    asyncio.run(follow())
