"""Plans that are made without reading: one call for each new path, and never a wrong result."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from crux_workspace import Limits, Workspace, open_workspace
from crux_workspace.errors import (
    ConflictError,
    InvalidInputError,
    LimitExceededError,
    WorkspaceError,
)
from crux_workspace.storage.layout import partition_name
from storage_adapters.redis import RedisRecordStore
from tests.support.redis_servers import RedisServer
from tests.support.soundness import check_sound

pytestmark = pytest.mark.redis

A = "/workspace/a.md"


@pytest.fixture
async def ws(redis_server: RedisServer) -> AsyncIterator[Workspace]:
    """A workspace whose next write is planned by guessing."""
    async with open_workspace(redis_server.url()) as opened:
        for number in range(4):
            await opened.write(f"/workspace/before/{number}", "x")
        yield opened


@pytest.fixture
async def other(redis_server: RedisServer) -> AsyncIterator[Workspace]:
    """Somebody else on the same namespace."""
    async with open_workspace(redis_server.url()) as opened:
        yield opened


def commands(server: RedisServer) -> Counter[str]:
    """Return how often each command came from a client since the last time."""
    with server.client() as client:
        stats: Any = client.info("commandstats")
        counts = Counter({name.removeprefix("cmdstat_"): s["calls"] for name, s in stats.items()})
        client.config_resetstat()
    return counts


async def test_new_paths_cost_one_call_each(ws: Workspace, redis_server: RedisServer) -> None:
    commands(redis_server)
    for number in range(20):
        await ws.write(f"/workspace/new/{number}", "x")
    counts = commands(redis_server)
    assert counts["evalsha"] == 20
    assert counts["hmget"] == 20, "only those that judge"


async def test_overwriting_guesses_seldom(ws: Workspace, redis_server: RedisServer) -> None:
    for number in range(10):
        await ws.write(f"/workspace/f{number}", "x")
    commands(redis_server)
    for turn in range(100):
        await ws.write(f"/workspace/f{turn % 10}", "y")
    assert commands(redis_server)["evalsha"] <= 101


async def test_what_somebody_else_made_meanwhile_is_met_as_if_it_had_been_read(
    ws: Workspace, other: Workspace
) -> None:
    await other.write(A, "theirs")
    assert (await ws.write(A, "mine")).version == 2
    for number in range(12):
        await ws.write(f"/workspace/more/{number}", "x")
    await other.write("/workspace/b", "theirs")
    with pytest.raises(ConflictError):
        await ws.write("/workspace/b", "mine", if_version=0)
    assert await ws.read_text("/workspace/b") == "theirs"


async def test_a_file_in_the_way_is_seen(ws: Workspace, other: Workspace) -> None:
    await other.write("/workspace/in the way", "x")
    with pytest.raises(WorkspaceError) as caught:
        await ws.write("/workspace/in the way/below", "x")
    assert caught.value.code == "PATH_TYPE_CONFLICT"
    await other.write("/workspace/deep/below", "x")
    with pytest.raises(WorkspaceError) as caught:
        await ws.write("/workspace/deep", "x")
    assert caught.value.code == "PATH_TYPE_CONFLICT"


async def test_a_deleted_file_is_brought_back_under_its_own_name(
    ws: Workspace, other: Workspace
) -> None:
    first = await other.write(A, "x")
    await other.delete(A)
    again = await ws.write(A, "y")
    assert (again.id, again.version) == (first.id, 3)


async def test_an_idempotency_key_is_known(ws: Workspace, other: Workspace) -> None:
    once = await other.write(A, "x", idempotency_key="k")
    assert (await ws.write(A, "x", idempotency_key="k")).version == once.version == 1
    with pytest.raises(InvalidInputError):
        await ws.write("/workspace/b", "x", idempotency_key="k")
    assert len(await ws.log()) == 5


async def test_a_ceiling_refuses(redis_server: RedisServer) -> None:
    async with open_workspace(redis_server.url(), limits=Limits(max_files=5)) as ws:
        for number in range(5):
            await ws.write(f"/workspace/{number}", "x")
        with pytest.raises(LimitExceededError):
            await ws.write("/workspace/6", "x")
        assert (await ws.usage()).live_files == 5


async def test_a_namespace_that_was_dropped_meanwhile_begins_anew(
    ws: Workspace, other: Workspace
) -> None:
    await other.drop_namespace("default")
    await ws.write(A, "x")
    assert [entry.sequence for entry in await ws.log()] == [1]


async def test_random_writers_agree_with_what_was_told(redis_server: RedisServer) -> None:
    """Eight clients on one namespace, new paths and old ones: each version was given out once, none is lost."""
    rng = random.Random(5)
    paths = [f"/workspace/p{number}" for number in range(60)]
    told: Counter[str] = Counter()

    async def client() -> None:
        async with open_workspace(redis_server.url()) as ws:
            for _ in range(60):
                path = rng.choice(paths)
                await (ws.append if rng.random() < 0.3 else ws.write)(path, "x")
                told[path] += 1

    await asyncio.gather(*(client() for _ in range(8)))
    async with open_workspace(redis_server.url()) as ws:
        versions = {entry.path: entry.version async for entry in ws.walk()}
        assert versions == dict(told)
        assert (await ws.log(limit=1))[0].sequence == sum(told.values()) == 480
    async with await RedisRecordStore.open(redis_server.url()) as store:
        await check_sound(store, partition_name("default", "default"))
