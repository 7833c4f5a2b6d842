"""Writers, droppers of connections and readers at random: what is delivered is the log, once."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable

import pytest

from crux_workspace import LocalRuntime, Workspace, WorkspaceChangeEvent
from crux_workspace import storage as storage_room
from crux_workspace.errors import WorkspaceError
from crux_workspace.storage import Storage
from crux_workspace.testing import LatencyRecordStore
from tests.conftest import BUNDLED, REDIS


async def _write(ws: Workspace, random_: random.Random, count: int) -> None:
    for _ in range(count):
        path = f"/workspace/{random_.randrange(3)}/{random_.randrange(4)}.md"
        other = f"/workspace/{random_.randrange(3)}/{random_.randrange(4)}.md"
        with contextlib.suppress(WorkspaceError):
            match random_.randrange(6):
                case 0:
                    await ws.rename(path, other, overwrite=True)
                case 1:
                    await ws.delete(f"/workspace/{random_.randrange(3)}", recursive=True)
                case 2:
                    await ws.move(
                        f"/workspace/{random_.randrange(3)}", f"/outputs/{random_.random()}"
                    )
                case _:
                    await ws.write(path, "x")
        if random_.random() < 0.2:
            await asyncio.sleep(0.002 * random_.random())


async def _follow(
    ws: Workspace, random_: random.Random, start: str, seen: list[WorkspaceChangeEvent]
) -> None:
    """Read with a watch that is stopped and resumed all the time, until it is cancelled."""
    cursor = start
    while True:
        async with ws.watch(
            cursor=cursor, poll_interval_ms=3, limit=random_.randint(1, 7)
        ) as handle:
            for _ in range(random_.randint(1, 9)):
                event = await anext(handle)
                seen.append(event)
                cursor = event.cursor
                if random_.random() < 0.3:
                    await asyncio.sleep(0)


@pytest.mark.parametrize("storage", [*BUNDLED, REDIS], indirect=True)
@pytest.mark.parametrize("seed", range(6))
async def test_what_is_delivered_is_the_log(
    make_ws: Callable[..., Workspace], storage: Storage, runtime: LocalRuntime, seed: int
) -> None:
    random_ = random.Random(seed)
    ws = make_ws(runtime=runtime)
    far = storage_room.storage(records=LatencyRecordStore(storage.records, delay_ms=0.3))
    other = make_ws(storage=far, runtime=runtime)
    start = await ws.cursor()
    seen: list[list[WorkspaceChangeEvent]] = [[] for _ in range(4)]
    followers = [
        asyncio.create_task(_follow(where, random.Random(seed + n), start, seen[n]))
        for n, where in enumerate((ws, ws, other, other))
    ]
    await asyncio.gather(_write(ws, random_, 60), _write(other, random_, 40))
    expected = [
        (entry.sequence, change.type, change.from_path, change.path)
        for entry in reversed(await ws.log(limit=1_000))
        for change in entry.changes
    ]
    async with asyncio.timeout(20):
        while min(map(len, seen)) < len(expected):
            for follower in followers:
                if follower.done():
                    follower.result()  # tells why it stopped
            await asyncio.sleep(0.005)
    await asyncio.sleep(0.01)
    for follower in followers:
        follower.cancel()
    await asyncio.gather(*followers, return_exceptions=True)
    for events in seen:
        assert [(e.sequence, e.type, e.from_path, e.path) for e in events] == expected
