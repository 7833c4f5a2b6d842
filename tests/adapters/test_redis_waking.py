"""Word of other processes' commits: what is published while the subscription is broken is made up for by the next one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from crux_workspace import open_workspace
from storage_adapters.redis import hints
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.redis_servers import RedisServer
from tests.watch.conftest import nothing_from, take, until

pytestmark = pytest.mark.redis

A = "/workspace/a.md"
NEVER = 3_600_000


@pytest.fixture
async def proxy(redis_server: RedisServer) -> AsyncIterator[FaultProxy]:
    """A network that breaks, in front of an empty server."""
    async with fault_proxy(("127.0.0.1", redis_server.port)) as running:
        yield running


def subscribers(server: RedisServer) -> int:
    """Return how many connections listen."""
    with server.client() as client:
        return int(client.info("clients")["pubsub_clients"])


@pytest.mark.parametrize("how", ["it is cut", "it falls silent"])
async def test_commits_made_while_the_subscription_is_broken_are_seen_right_after_it(
    how: str, proxy: FaultProxy, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watcher polls once an hour, and its other connection lives on: only the new subscription can tell."""
    monkeypatch.setattr(hints, "_QUIET_S", 0.1)
    url = f"redis://127.0.0.1:{proxy.port}/0?timeout_ms=300"
    async with (
        open_workspace(url) as ws,
        open_workspace(redis_server.url()) as other,
        ws.watch(recursive=True, poll_interval_ms=NEVER) as feed,
    ):
        await feed.ready()
        following = asyncio.create_task(take(feed, 1))
        await until(lambda: subscribers(redis_server) == 1)
        await other.write(A, "1")
        assert [event.version for event in await following] == [1]
        connections = proxy.connections
        if how == "it is cut":
            proxy.faults.refuse = True
            with redis_server.client() as client:
                client.client_kill_filter(_type="pubsub")
            await until(lambda: subscribers(redis_server) == 0)
        else:
            proxy.faults.silent = proxy.faults.deaf = True
        for number in range(2, 5):
            await other.write(A, str(number))
        await nothing_from(feed)
        if how == "it falls silent":
            await until(lambda: proxy.connections > connections)
        proxy.faults.refuse = proxy.faults.silent = proxy.faults.deaf = False
        seen = await take(feed, 3)
        assert [event.version for event in seen] == [2, 3, 4]
        if how == "it is cut":
            assert proxy.connections == connections + 1, "the subscription alone, once"
        following = asyncio.create_task(take(feed, 1))
        await other.write(A, "5")
        assert [event.version for event in await following] == [5]
