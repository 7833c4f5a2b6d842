"""A real Cluster of three nodes: the kits, slots that move, and a node that fails over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from crux_workspace import open_workspace
from crux_workspace.storage import RecordStore
from crux_workspace.storage.layout import partition_name
from crux_workspace.testing import AssetStoreContract, RecordStoreContract
from storage_adapters.redis import RedisAssetStore, RedisRecordStore
from tests.support.redis_cluster import RedisCluster, cluster_of_three, slot_of
from tests.support.redis_servers import RedisServer

pytestmark = [pytest.mark.redis, pytest.mark.timeout(120)]

A, B = "/workspace/a.md", "/workspace/b.md"


@pytest.fixture(scope="module")
def cluster() -> Iterator[RedisCluster]:
    """Three nodes, shared by the tests of this module."""
    with cluster_of_three() as running:
        yield running


class TestRecordsOnACluster(RecordStoreContract):
    cluster: RedisCluster

    @pytest.fixture
    async def store(self, cluster: RedisCluster) -> AsyncIterator[RedisRecordStore]:
        self.cluster = cluster
        async with await RedisRecordStore.open(cluster.url()) as store:
            yield store

    async def another(self, store: RecordStore) -> RecordStore:
        return await RedisRecordStore.open(self.cluster.nodes[1].url())


class TestAssetsOnACluster(AssetStoreContract):
    @pytest.fixture
    async def store(self, cluster: RedisCluster) -> AsyncIterator[RedisAssetStore]:
        async with await RedisAssetStore.open(cluster.url()) as store:
            yield store


async def test_namespaces_lie_on_all_nodes_and_are_listed_together(cluster: RedisCluster) -> None:
    names = [f"space {number:03d}" for number in range(40)]
    holders = {cluster.holder(slot_of(partition_name("all", name))).port for name in names}
    assert len(holders) == 3
    async with open_workspace(cluster.url(), id="all") as ws:
        await asyncio.gather(*(ws.write(A, name, namespace=name) for name in names))
        assert (await ws.namespaces()).names == names
        texts = await asyncio.gather(*(ws.read_text(A, namespace=name) for name in names))
        assert texts == names
        await ws.drop_namespace(names[0])
        assert (await ws.namespaces()).names == names[1:]


async def test_a_watcher_hears_of_commits_on_every_node(cluster: RedisCluster) -> None:
    names = [f"heard {number}" for number in range(12)]
    async with (
        open_workspace(cluster.nodes[0].url()) as here,
        open_workspace(cluster.nodes[2].url()) as there,
    ):
        handles = [here.watch(namespace=name, poll_interval_ms=60_000) for name in names]
        events = [asyncio.create_task(anext(handle)) for handle in handles]
        await asyncio.sleep(0.5)
        for name in names:
            await there.write(A, name, namespace=name)
        async with asyncio.timeout(10):
            assert [event.namespace for event in await asyncio.gather(*events)] == names
        for handle in handles:
            await handle.stop()


async def test_a_slot_that_moves_takes_its_namespace_along(cluster: RedisCluster) -> None:
    partition = partition_name("default", "moving")
    slot = slot_of(partition)
    source = cluster.holder(slot)
    target = next(node for node in cluster.nodes if node is not source)
    async with open_workspace(cluster.url(), namespace="moving") as ws:
        await ws.write(A, "0\n")
        done = asyncio.Event()
        written = 0

        async def go_on_writing() -> None:
            nonlocal written
            while not done.is_set():
                written += 1
                await ws.append(A, f"{written}\n")

        writing = asyncio.create_task(go_on_writing())
        for one, other in ((source, target), (target, source)):
            await _until(lambda: written % 7 == 3)
            await asyncio.to_thread(_move, cluster, slot, one, other)
            before = written
            await _until(lambda before=before: written > before + 5)
        done.set()
        await writing
        text = await ws.read_text(A)
        assert text.split() == [str(number) for number in range(written + 1)]
        assert (await ws.log(limit=1))[0].sequence == written + 1


async def _until(holds: object) -> None:
    assert callable(holds)
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - any condition, not an event
            await asyncio.sleep(0.001)


def _move(cluster: RedisCluster, slot: int, source: RedisServer, target: RedisServer) -> None:
    """Move a slot as an administrator does: key by key, while both nodes serve it."""
    with source.client() as one, target.client() as other:
        there, here = cluster.id(target), cluster.id(source)
        other.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", here)
        one.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", there)
        while keys := one.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 2):
            one.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
        for client in (other, one):
            client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", there)
    with next(n for n in cluster.nodes if n not in (source, target)).client() as third:
        third.execute_command("CLUSTER", "SETSLOT", slot, "NODE", there)


async def test_a_node_that_dies_is_followed_by_its_replica() -> None:
    """The replica is elected by the other nodes; calls wait for it, and what was acknowledged and replicated is there.

    A revision that the replica never got is given out again there, for somebody else's change: what the lost node told of it is not
    believed, though the replica is connected to for the first time.
    """
    with cluster_of_three() as cluster:
        dying = cluster.nodes[0]
        replica = cluster.add_replica(dying)
        name = next(
            name
            for name in (f"n{number}" for number in range(1000))
            if cluster.holder(slot_of(partition_name("default", name))) is dying
        )
        url = cluster.nodes[1].url(timeout_ms=20_000)
        async with open_workspace(url, namespace=name) as ws:
            for number in range(20):
                await ws.append(A, f"{number}\n")
            for number in range(8):  # from then on it is planned without reading
                await ws.write(B, f"{number}")
            with dying.client() as client:
                assert client.wait(1, 5000) == 1
                replica.pause()
                client.client_kill_filter(_type="replica", skipme=False)
            assert (await ws.write(B, "mine, and lost")).version == 9
            dying.kill()
            replica.resume()
            async with open_workspace(url, namespace=name) as other:
                theirs = await other.write(B, "theirs", metadata={"by": "other"})
            assert theirs.version == 9
            assert (await ws.write(B, "three")).version == 10
            assert await ws.read_text(B, version=9) == "theirs"
            assert (await ws.read(B, version=9)).metadata == {"by": "other"}
            await ws.append(A, "after\n")
            lines = (await ws.read_text(A)).split()
            assert lines == [*map(str, range(20)), "after"]
            await ws.write("/workspace/elsewhere", "x", namespace="another")
