"""The server is killed in the middle of commits and started again: acknowledged is there, torn is nothing, watchers go on.

`CRUX_SERVER_KILLS` says how often; 2 rounds by default, 4 in CI.
"""

from __future__ import annotations

import asyncio
import os
import random

import pytest

from crux_workspace import Workspace, WorkspaceChangeEvent
from crux_workspace.errors import StorageError
from crux_workspace.storage.layout import partition_name
from storage_adapters.sql.postgres import PostgresRecordStore
from tests.postgres.conftest import Opening
from tests.support.crew import in_ci
from tests.support.postgres import PostgresServer
from tests.support.soundness import check_sound
from tests.watch.conftest import until

ROUNDS = int(os.environ.get("CRUX_SERVER_KILLS") or (4 if in_ci() else 2))

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(60 + 30 * ROUNDS)]

WRITERS = 6


class Writer:
    """Writes transactions one after the other, and remembers which were acknowledged."""

    def __init__(self, ws: Workspace, number: int) -> None:
        self.ws = ws
        self.folder = f"/workspace/{number}"
        self.next = 0
        self.acknowledged: list[int] = []
        self.failures: list[StorageError] = []

    async def work(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            self.next += 1
            try:
                async with self.ws.transaction() as tx:
                    await tx.append(f"{self.folder}/log", f"{self.next}\n")
                    await tx.write(f"{self.folder}/mark", str(self.next))
                    await tx.write(f"{self.folder}/large", f"{self.next} " * 40_000)
            except StorageError as error:
                self.failures.append(error)
                await asyncio.sleep(0.02)
            else:
                self.acknowledged.append(self.next)

    async def check(self) -> None:
        lines = [int(line) for line in (await self.ws.read_text(f"{self.folder}/log")).split()]
        assert lines == sorted(set(lines)), "each landed at most once, in order"
        assert set(self.acknowledged) <= set(lines), "what was acknowledged is there"
        assert set(lines) <= set(range(1, self.next + 1))
        assert int(await self.ws.read_text(f"{self.folder}/mark")) == lines[-1], "none is torn"
        large = await self.ws.read_text(f"{self.folder}/large")
        assert large == f"{lines[-1]} " * 40_000
        assert all(error.code in ("STORE_UNAVAILABLE", "STORE_TIMEOUT") for error in self.failures)


async def test_a_killed_server_loses_and_tears_nothing_and_watchers_go_on(
    own_server: PostgresServer, opening: Opening
) -> None:
    chance = random.Random(5)
    ws = await opening(own_server.url(pool_size=8))
    writers = [Writer(ws, number) for number in range(WRITERS)]
    seen: list[WorkspaceChangeEvent] = []
    stop = asyncio.Event()

    async def more(count: int) -> None:
        """Wait until so many more transactions were acknowledged."""
        wanted = count + sum(len(writer.acknowledged) for writer in writers)
        await until(
            lambda: sum(len(writer.acknowledged) for writer in writers) >= wanted, within=40
        )

    async with ws.watch(start="oldest", recursive=True, poll_interval_ms=20) as feed:

        async def follow() -> None:
            async for event in feed:
                seen.append(event)  # noqa: PERF401 - looked at while it grows

        following = asyncio.create_task(follow())
        working = [asyncio.create_task(writer.work(stop)) for writer in writers]
        for _ in range(ROUNDS):
            await more(20)
            await asyncio.sleep(chance.uniform(0, 0.05))
            await asyncio.to_thread(own_server.crash)
            await asyncio.sleep(chance.uniform(0, 0.2))
            await asyncio.to_thread(own_server.start)
        await more(20)
        stop.set()
        await asyncio.gather(*working)
        for writer in writers:
            await writer.check()
        log = await ws.log(limit=100_000)
        expected = [(one.sequence, c.path) for one in reversed(log) for c in one.changes]
        await until(lambda: len(seen) >= len(expected), within=30)
        assert [(event.sequence, event.path) for event in seen] == expected
        following.cancel()
    assert sum(len(writer.failures) for writer in writers), "the server was missed"
    async with await PostgresRecordStore.open(own_server.url()) as store:
        await check_sound(store, partition_name("default", "default"))


async def test_a_pool_survives_restarts_without_anybody_noticing(
    own_server: PostgresServer, opening: Opening
) -> None:
    ws = await opening(own_server.url(pool_size=4))
    await asyncio.gather(*(ws.write(f"/workspace/{n}", "1") for n in range(4)))
    for n in range(3):
        await asyncio.to_thread(own_server.stop)
        await asyncio.to_thread(own_server.start)
        assert await ws.read_text("/workspace/1") == "1" * (n + 1)
        await ws.append("/workspace/1", "1")


async def test_a_server_that_is_away_is_a_typed_error_and_forgotten_when_it_is_back(
    own_server: PostgresServer, opening: Opening
) -> None:
    ws = await opening(own_server.url())
    await ws.write("/workspace/a", "1")
    await asyncio.to_thread(own_server.stop)
    for call in (ws.read_text("/workspace/a"), ws.write("/workspace/a", "2"), ws.log()):
        with pytest.raises(StorageError) as away:
            await call
        assert away.value.code == "STORE_UNAVAILABLE"
        assert away.value.retryable
    await asyncio.to_thread(own_server.start)
    await ws.append("/workspace/a", "3")
    assert await ws.read_text("/workspace/a") == "13"
