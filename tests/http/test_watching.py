"""A watch over HTTP: whatever breaks or restarts, each event comes once and in order."""

from __future__ import annotations

import asyncio
import gc
import random
import socket
import weakref
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crux_workspace import WatchError, Workspace, WorkspaceChangeEvent, open_workspace
from crux_workspace.errors import AccessDeniedError, ErrorCode, StorageError, WatchGapError
from crux_workspace.http import HttpWatchHandle, HttpWorkspace
from crux_workspace.http.frames import MAX_FRAME_BYTES, frames
from crux_workspace.server.limits import ServiceLimits
from crux_workspace.testing.workspace import refused
from tests.http.test_faults import A, through
from tests.support.http_workspaces import Switchboard, switchboard
from tests.support.services import service_process, serving, token_of
from tests.watch.conftest import until

WITHIN_S = 20.0
SECRET = "a-secret-for-one"  # noqa: S105 - of the tests


@pytest.fixture
async def board() -> AsyncIterator[Switchboard]:
    async with switchboard() as opened:
        yield opened


@pytest.fixture
async def ws(tmp_path: Path) -> AsyncIterator[Workspace]:
    async with open_workspace(f"sqlite:///{tmp_path}/w.db?durability=normal") as opened:
        yield opened


async def take(handle: HttpWatchHandle, count: int) -> list[WorkspaceChangeEvent]:
    async with asyncio.timeout(WITHIN_S):
        return [await anext(handle) for _ in range(count)]


async def test_a_connection_that_keeps_breaking_loses_and_doubles_nothing(
    board: Switchboard, ws: Workspace
) -> None:
    pick = random.Random(7)
    told: list[WatchError] = []

    async def write() -> None:
        for number in range(60):
            async with ws.transaction() as tx:
                await tx.write(f"/workspace/{number}/a", "x")
                await tx.write(f"/workspace/{number}/b", "x")
            await asyncio.sleep(0.005)

    async with through(board, ws) as (proxy, over):
        async with over.watch(poll_interval_ms=10, on_error=told.append) as handle:
            writing = asyncio.create_task(write())
            events: list[WorkspaceChangeEvent] = []
            while len(events) < 120:
                events += await take(handle, 1)
                if pick.random() < 0.1:
                    proxy.faults.cut_after_answer = pick.randrange(700)
            await writing
        proxy.faults.cut_after_answer = None
    expected = [f"/workspace/{number}/{name}" for number in range(60) for name in "ab"]
    assert [event.path for event in events] == expected
    assert told
    assert {type(one.error) for one in told} == {StorageError}


async def test_it_survives_a_service_that_is_killed(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/killed.db"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    told: list[WatchError] = []
    async with service_process(store, "--write", port=port) as first:
        over = HttpWorkspace(first.url)
        handle = over.watch(poll_interval_ms=50, on_error=told.append)
        await handle.ready()
        await over.write(A, "1")
        await over.write(A, "2")
        seen = await take(handle, 1)
        await first.kill()
    async with service_process(store, "--write", port=port):
        await over.write(A, "3")
        seen += await take(handle, 2)
    assert [event.version for event in seen] == [1, 2, 3]
    assert {one.error.code for one in told if isinstance(one.error, StorageError)} == {
        ErrorCode.STORE_UNAVAILABLE
    }
    await over.aclose()
    assert handle.stopped


async def test_what_this_client_changes_after_watch_is_delivered(
    board: Switchboard, ws: Workspace
) -> None:
    over = board.client(ws)
    handle = over.watch("/workspace", recursive=True)
    file = await over.write(A, "x")
    (event,) = await take(handle, 1)
    assert (event.path, event.commit, event.type) == (A, file.commit, "create")


async def test_callbacks_and_a_loop_each_get_all(board: Switchboard, ws: Workspace) -> None:
    over = board.client(ws)
    called: list[str] = []
    done = asyncio.Event()

    async def callback(event: WorkspaceChangeEvent) -> None:
        called.append(event.path)
        if len(called) == 1:
            raise ZeroDivisionError
        if len(called) == 3:
            done.set()

    errors: list[WatchError] = []
    async with over.watch(on_error=errors.append) as handle:
        looping = asyncio.create_task(take(handle, 3))
        await asyncio.sleep(0)
        unsubscribe = handle.on(callback)
        for name in "abc":
            await over.write(f"/workspace/{name}", "x")
        events = await looping
        await asyncio.wait_for(done.wait(), WITHIN_S)
        unsubscribe()
    assert called == [event.path for event in events]
    assert [type(one.error) for one in errors] == [ZeroDivisionError]
    assert handle.on(print)() is None
    with pytest.raises(StopAsyncIteration):
        await anext(handle)


async def test_a_cursor_covers_what_was_asked_on_from(board: Switchboard, ws: Workspace) -> None:
    over = board.client(ws)
    async with over.watch() as handle:
        begun = handle.cursor
        assert begun == await over.cursor()
        for name in "abc":
            await over.write(f"/workspace/{name}", "x")
        events = await take(handle, 2)
        assert handle.cursor == events[0].cursor
    async with over.watch(cursor=handle.cursor) as again:
        assert [event.path for event in await take(again, 2)] == ["/workspace/b", "/workspace/c"]
    with refused(ErrorCode.INVALID_CURSOR):
        over.watch(cursor="nonsense")
    with refused(ErrorCode.INVALID_CURSOR):
        await over.watch(cursor=begun, namespace="another").ready()


async def test_a_cancelled_wait_loses_nothing(board: Switchboard, ws: Workspace) -> None:
    over = board.client(ws)
    async with over.watch() as handle:
        for number in range(5):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await anext(handle)
            await over.write(A, str(number))
            assert [event.version for event in await take(handle, 1)] == [number + 1]


async def test_a_gap_is_told_and_delivery_goes_on(board: Switchboard, ws: Workspace) -> None:
    over = board.client(ws)
    await over.write(A, "1")
    stale = await over.cursor()
    await ws.drop_namespace("default")
    for number in range(3):
        await over.write(A, str(number))
    errors: list[WatchError] = []
    async with over.watch(cursor=stale, on_error=errors.append) as handle:
        assert [event.sequence for event in await take(handle, 3)] == [1, 2, 3]
    assert [type(one.error) for one in errors] == [WatchGapError]


async def test_a_quiet_watch_is_told_where_it_stands(ws: Workspace) -> None:
    async with (
        serving(ws, write=True, limits=ServiceLimits(heartbeat_seconds=0.05)) as url,
        HttpWorkspace(url) as over,
        over.watch("/outputs", recursive=True) as handle,
    ):
        waiting = asyncio.create_task(anext(handle))
        await over.write(A, "x")
        end = await over.cursor()
        await until(lambda: handle.cursor == end)
        await over.write("/outputs/o", "x")
        assert (await waiting).path == "/outputs/o"


async def test_a_watch_that_is_not_allowed_says_so(ws: Workspace) -> None:
    token = token_of(SECRET, namespaces=("mine",))
    async with serving(ws, tokens=[token]) as url, HttpWorkspace(url, token=SECRET) as over:
        handle = over.watch(namespace="other")
        with refused(ErrorCode.PERMISSION_DENIED, AccessDeniedError):
            await handle.ready()
        with refused(ErrorCode.PERMISSION_DENIED):
            await anext(handle)


async def test_a_forgotten_watch_ends(board: Switchboard, ws: Workspace) -> None:
    over = board.client(ws)
    handle = over.watch()
    await handle.ready()
    gone = weakref.ref(handle)
    del handle
    gc.collect()
    assert gone() is None
    names = ("_advance", "_open")
    await until(
        lambda: not any(name in repr(task) for task in asyncio.all_tasks() for name in names)
    )


async def _pieces(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
async def test_frames_are_cut_alike_however_they_arrive(size: int) -> None:
    text = b"retry: 1\nid: a\nevent: ready\ndata: {}\n\n: beat\n\r\nid:b\r\ndata: 1\r\ndata:2\r\n\r\nid: cut\ndata: off"
    cut = [text[start : start + size] for start in range(0, len(text), size)]
    found = [(frame.name, frame.id, frame.data) async for frame in frames(_pieces(*cut))]
    assert found == [("ready", "a", "{}"), ("message", "b", "1\n2")]


@pytest.mark.parametrize(
    "pieces",
    [
        [b"data: " + b"x" * MAX_FRAME_BYTES, b"x" * 10],
        [b"data: 1\n" * (MAX_FRAME_BYTES // 4)],
        [b"data: \xff\xfe\n\n"],
    ],
    ids=["a line", "many lines", "no UTF-8"],
)
async def test_frames_without_measure_are_refused(pieces: list[bytes]) -> None:
    with refused(ErrorCode.RECORD_CORRUPT):
        async for _ in frames(_pieces(*pieces)):
            pass
