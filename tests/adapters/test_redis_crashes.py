"""A server that is killed and started again, and a primary whose replica takes over without its last commits.

`CRUX_KILLS` says how often the server is killed; 4 times by default, 12 in CI.
"""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from crux_workspace import Workspace, WorkspaceChangeEvent, open_workspace
from crux_workspace.errors import StorageError, WatchGapError
from crux_workspace.storage import Batch, Put, Reader
from crux_workspace.storage.layout import META_KEY, decode_meta, partition_name
from storage_adapters import open_storage
from storage_adapters.redis import RedisRecordStore
from tests.support.crew import in_ci
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.redis_servers import RedisServer, serving
from tests.support.soundness import check_sound

pytestmark = [pytest.mark.redis, pytest.mark.timeout(180)]

ROUNDS = int(os.environ.get("CRUX_KILLS") or (12 if in_ci() else 4))
A = "/workspace/a.md"
WRITERS = 4


@pytest.mark.parametrize("fsync", ["always", "everysec"])
async def test_a_killed_server_tears_nothing_and_keeps_what_its_setting_promises(
    fsync: str,
) -> None:
    """Several clients commit transactions while it is killed; then it is started on what it left.

    With `everysec` it may lose the last of them, while a sync takes long, but tears none and leaves out none in between.
    """
    chance = random.Random(fsync)
    with serving(appendonly="yes", appendfsync=fsync) as server:
        acknowledged = [0] * WRITERS
        for _ in range(ROUNDS):
            async with open_workspace(server.url(timeout_ms=400)) as ws:
                writers = [
                    asyncio.create_task(_write(ws, who, acknowledged)) for who in range(WRITERS)
                ]
                before = list(acknowledged)
                while any(map(int.__eq__, before, acknowledged)):  # noqa: ASYNC110 - any condition, not an event
                    await asyncio.sleep(0.01)
                await asyncio.sleep(chance.uniform(0, 0.2))
                server.kill()
                await asyncio.gather(*writers)
            server.start()
            acknowledged = await _judge(server, acknowledged, whole=fsync == "always")
        assert min(acknowledged) >= ROUNDS or fsync == "everysec"


async def _write(ws: Workspace, who: int, acknowledged: list[int]) -> None:
    """Commit transactions of three paths until the server is gone."""
    number = acknowledged[who]
    while True:
        number += 1
        try:
            async with ws.transaction() as tx:
                await tx.write(f"/workspace/{who}/inline.md", f"{number}")
                await tx.write(f"/workspace/{who}/large.bin", f"{number:08d}".encode() * 20_000)
                await tx.append(f"/workspace/{who}/log", f"{number}\n")
        except StorageError:
            return
        acknowledged[who] = number


async def _judge(server: RedisServer, acknowledged: list[int], *, whole: bool) -> list[int]:
    """Hold what is there to what was acknowledged, all of it or but for the end; returns the numbers that are there."""
    found = []
    async with open_workspace(server.url()) as ws:
        for who, least in enumerate(acknowledged):
            log = f"/workspace/{who}/log"
            text = await ws.read_text(log) if await ws.exists(log) else ""
            lines = [int(line) for line in text.split()]
            last = len(lines)
            assert lines == list(range(1, last + 1)), "each landed once, in order"
            assert last <= least + 1
            assert last >= least or not whole, "what was acknowledged is there"
            found.append(last)
            if not last:
                continue
            assert await ws.read_text(f"/workspace/{who}/inline.md") == f"{last}"
            large = await ws.read_bytes(f"/workspace/{who}/large.bin")
            assert large == f"{last:08d}".encode() * 20_000, "no transaction is torn"
        sequences = [entry.sequence for entry in await ws.log(limit=1)]
        assert sum(sequences) == sum(found), "each transaction was one commit"
    async with open_storage(server.url()) as storage:
        records = await check_sound(storage.records, partition_name("default", "default"))
        assert storage.assets is not None
        for ref in records.referenced:
            assert await storage.assets.get(ref)
    return found


async def test_calls_live_through_a_restart() -> None:
    """A call that the restart meets waits, finds out what became of its commit, and is carried out once."""
    with serving(appendonly="yes", appendfsync="always") as server:
        async with open_workspace(server.url(timeout_ms=20_000)) as ws:
            written = 0
            stopping = False

            async def go_on() -> None:
                nonlocal written
                while not stopping:
                    written += 1
                    await ws.append(A, f"{written}\n")

            writing = asyncio.create_task(go_on())
            async with ws.watch(start="oldest", poll_interval_ms=50) as events:
                for _ in range(3):
                    await asyncio.sleep(0.1)
                    server.kill()
                    await asyncio.to_thread(server.start)
                stopping = True
                await writing
                text = await ws.read_text(A)
                assert text.split() == [str(number) for number in range(1, written + 1)]
                async with asyncio.timeout(30):
                    seen = [(await anext(events)).sequence for _ in range(written)]
                assert seen == list(range(1, written + 1))


# -- failover


@dataclass
class Pair:
    """A primary and its replica, each behind a network that can break."""

    primary: RedisServer
    replica: RedisServer
    clients: FaultProxy
    between: FaultProxy

    @property
    def url(self) -> str:
        """Where clients find whoever is the primary."""
        return f"redis://127.0.0.1:{self.clients.port}/0?timeout_ms=5000"

    async def part(self) -> None:
        """Wait until the replica has everything; then let it have nothing more."""
        with self.primary.client() as client:
            assert await asyncio.to_thread(client.wait, 1, 10_000) == 1
        self.between.faults.refuse = True
        self.between.reset()

    async def promote(self) -> None:
        """The primary dies; the replica takes its place and its address."""
        self.primary.kill()
        with self.replica.client() as client:
            client.replicaof("NO", "ONE")
        self.clients.upstream = ("127.0.0.1", self.replica.port)
        self.clients.reset()


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    """A primary and a replica that follows it."""
    with serving() as primary, serving() as replica:
        async with (
            fault_proxy(("127.0.0.1", primary.port)) as clients,
            fault_proxy(("127.0.0.1", primary.port)) as between,
        ):
            with replica.client() as client:
                client.replicaof("127.0.0.1", str(between.port))
                deadline = time.monotonic() + 30
                while client.info("replication")["master_link_status"] != "up":
                    assert time.monotonic() < deadline
                    await asyncio.sleep(0.02)
            yield Pair(primary, replica, clients, between)


@pytest.mark.parametrize("written", [1, 4, 9], ids=["fewer", "as many", "more"])
async def test_a_watcher_is_told_of_a_failover_that_lost_commits(pair: Pair, written: int) -> None:
    """It stood at commit 14; the promoted replica has 10, and then others under the same numbers."""
    async with open_workspace(pair.url) as ws:
        for number in range(10):
            await ws.write(A, f"{number}")
        async with ws.watch(start="oldest", poll_interval_ms=100) as live:
            assert [event.sequence for event in await _take(live, 10)] == list(range(1, 11))
            await pair.part()
            for number in range(10, 14):
                await ws.write(A, f"{number}")
            assert [event.sequence for event in await _take(live, 4)] == [11, 12, 13, 14]
            place = live.cursor
            await pair.promote()
            async with open_workspace(pair.replica.url()) as other:
                for number in range(written):
                    await other.write("/workspace/other.md", f"{number}")
            with pytest.raises(WatchGapError):
                await _take(live, 1)
            after = await _take(live, 10 + written)
            assert [event.sequence for event in after] == list(range(1, 11 + written))
            assert {event.path for event in after[10:]} == {"/workspace/other.md"}
        async with ws.watch(cursor=place) as resumed:
            with pytest.raises(WatchGapError):
                await _take(resumed, 1)
            assert len(await _take(resumed, 10 + written)) == 10 + written
        assert await ws.read_text(A) == "9"
        await ws.write(A, "goes on")
        assert (await ws.log(limit=1))[0].sequence == 11 + written


async def _take(
    events: AsyncIterator[WorkspaceChangeEvent], count: int
) -> list[WorkspaceChangeEvent]:
    async with asyncio.timeout(30):
        return [await anext(events) for _ in range(count)]


async def test_a_failover_that_lost_nothing_is_not_told(pair: Pair) -> None:
    async with open_workspace(pair.url) as ws:
        async with ws.watch(poll_interval_ms=100) as live:
            for number in range(5):
                await ws.write(A, f"{number}")
            await pair.part()
            await pair.promote()
            await ws.write(A, "after")
            assert [event.sequence for event in await _take(live, 6)] == [1, 2, 3, 4, 5, 6]
        assert await ws.read_text(A) == "after"


async def test_a_plan_that_was_read_from_the_lost_primary_is_made_again(pair: Pair) -> None:
    """Its revision fits the promoted replica, where another commit has that number: only the connection tells."""
    partition = "plans"

    async def put(store: RedisRecordStore, text: bytes, *, number: int) -> None:
        [meta] = await store.get_many(partition, [META_KEY])
        batch = Batch(
            commit_id=f"{number:024x}",
            verb="write",
            now=number,
            incarnation=None if meta is None else decode_meta(meta.value).incarnation,
            puts=[Put("a", b"{}", text)],
        )
        await store.commit(partition, batch)

    async with await RedisRecordStore.open(pair.url) as store:
        await put(store, b"1", number=1)
        await pair.part()
        await put(store, b"lost", number=2)
        seen: list[bytes | None] = []

        async def plan(reader: Reader) -> Batch:
            meta, record = await reader.get_many([META_KEY, "a"])
            assert meta is not None
            assert record is not None
            seen.append(record.body)
            if len(seen) == 1:
                await pair.promote()
                async with await RedisRecordStore.open(pair.replica.url()) as other:
                    await put(other, b"kept", number=3)
            assert record.revision == 2
            return Batch(
                commit_id="f" * 24,
                verb="write",
                now=9,
                incarnation=decode_meta(meta.value).incarnation,
                expect={"a": record.revision},
                puts=[Put("a", b"{}", (record.body or b"") + b" and more")],
            )

        await store.commit_planned(partition, plan)
        [record] = await store.get_many(partition, ["a"])
        assert record is not None
        assert (seen, record.body) == ([b"lost", b"kept"], b"kept and more")


async def test_a_server_that_became_a_replica_is_left(pair: Pair) -> None:
    """The old primary lives on and was demoted: what is written there would be lost."""
    async with open_workspace(pair.url) as ws:
        await ws.write(A, "1")
        await pair.part()
        with pair.replica.client() as client:
            client.replicaof("NO", "ONE")
        with pair.primary.client() as client:
            client.replicaof("127.0.0.1", str(pair.replica.port))
        pair.clients.upstream = ("127.0.0.1", pair.replica.port)
        assert (await ws.write(A, "2")).version == 2
        async with open_workspace(pair.replica.url()) as other:
            assert await other.read_text(A) == "2"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that is gone at the end."""
    with tempfile.TemporaryDirectory(prefix="crux-redis-") as made:
        yield Path(made)


async def test_a_file_that_a_crash_cut_off_is_read_up_to_the_last_whole_commit(
    folder: Path,
) -> None:
    """Half a commit at the end of the file is no commit."""
    server = RedisServer(folder, appendonly="yes", appendfsync="always")
    server.start()
    try:
        async with open_workspace(server.url()) as ws:
            for number in range(20):
                async with ws.transaction() as tx:
                    await tx.write(A, f"{number}")
                    await tx.write("/workspace/b.md", f"{number}")
        server.kill()
        log = max((folder / "appendonlydir").glob("*.incr.aof"))
        whole = log.read_bytes()
        last = 19
        for cut in (1, 150, 600, 1_500):
            log.write_bytes(whole[:-cut])
            server.start()
            async with open_workspace(server.url()) as ws:
                text = await ws.read_text(A)
                assert await ws.read_text("/workspace/b.md") == text
                assert int(text) <= last
                last = int(text)
                assert (await ws.log(limit=1))[0].sequence == last + 1
            async with await RedisRecordStore.open(server.url()) as store:
                await check_sound(store, partition_name("default", "default"))
            server.kill()
        assert last < 19
    finally:
        server.end()
