"""A real server that reads a long file while it is called: it is waited for, as long as the URL says."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest
import redis

from crux_workspace import open_workspace
from crux_workspace.errors import ErrorCode, StorageError
from tests.support.redis_servers import RedisServer, serving

pytestmark = pytest.mark.redis

A = "/workspace/a.md"
KEYS = 1_000
LOADING_S = 1.5


@pytest.fixture
def slow() -> Iterator[RedisServer]:
    """A server whose file takes a while to read."""
    with serving(save="", key_load_delay=0, loading_process_events_interval_bytes=1_024) as server:
        with server.client() as client:
            client.mset({f"other:{number}": os.urandom(1_024) for number in range(KEYS)})
        yield server


def restart(server: RedisServer) -> None:
    """Start it anew on what it saved; it takes connections and loads."""
    with server.client() as client:
        client.save()
    server.kill()
    server.settings["key-load-delay"] = int(LOADING_S * 1_000_000 / KEYS)
    server.start(loaded=False)
    with server.client() as client, pytest.raises(redis.exceptions.BusyLoadingError):
        client.ping()


async def test_opening_waits_for_a_server_that_loads(slow: RedisServer) -> None:
    async with open_workspace(slow.url()) as ws:
        await ws.write(A, "kept")
    await asyncio.to_thread(restart, slow)
    async with open_workspace(slow.url(timeout_ms=20_000)) as ws:
        assert await ws.read_text(A) == "kept"
        assert (await ws.write(A, "goes on")).version == 2


async def test_opening_gives_up_when_loading_takes_too_long(slow: RedisServer) -> None:
    await asyncio.to_thread(restart, slow)
    with pytest.raises(StorageError, match="loading") as caught:
        await open_workspace(slow.url(timeout_ms=100))
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.STORE_UNAVAILABLE, True)
    with slow.client() as client, pytest.raises(redis.exceptions.BusyLoadingError):
        client.ping()  # it gave up in good time


async def test_calls_wait_for_a_server_that_loads_again(slow: RedisServer) -> None:
    async with open_workspace(slow.url(timeout_ms=20_000)) as ws:
        await ws.write(A, "0\n")
        await asyncio.to_thread(restart, slow)
        await asyncio.gather(*(ws.append(A, f"{number}\n") for number in range(1, 4)))
        assert sorted((await ws.read_text(A)).split()) == ["0", "1", "2", "3"]
        assert (await ws.log(limit=1))[0].sequence == 4
