"""A real Cluster of three nodes: the kits, slots that move, nodes that are sealed, refuse, are killed or fail over.

`CRUX_KILLS` says how often a node is killed; once by default.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trustme

from crux_workspace import open_workspace
from crux_workspace.errors import StorageError, WatchGapError
from crux_workspace.storage import RecordStore
from crux_workspace.storage.layout import partition_name
from crux_workspace.testing import AssetStoreContract, RecordStoreContract
from storage_adapters.redis import RedisAssetStore, RedisRecordStore
from tests.support.fault_proxy import fault_proxy
from tests.support.redis_cluster import RedisCluster, cluster_of_three, slot_of
from tests.support.redis_servers import RedisServer
from tests.support.soundness import check_sound
from tests.watch.conftest import take

pytestmark = [pytest.mark.redis, pytest.mark.timeout(120)]

A, B = "/workspace/a.md", "/workspace/b.md"
SECRET = "a-secret-of-these-tests"  # noqa: S105 - it guards a Cluster of this module
KILLS = int(os.environ.get("CRUX_KILLS") or 1)


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


async def test_a_slot_that_is_on_its_way_is_followed_by_each_call(cluster: RedisCluster) -> None:
    """All its keys have moved, and the node of the slot is still the old one: it answers each call by ASK."""
    partition = partition_name("default", "on its way")
    slot = slot_of(partition)
    source = cluster.holder(slot)
    target = next(node for node in cluster.nodes if node is not source)
    async with open_workspace(cluster.url(), namespace="on its way") as ws:
        await ws.write(A, "0\n")
        await ws.write("/workspace/b.bin", bytes(300_000))
        for one, other in ((source, target), (target, source)):
            await asyncio.to_thread(_move_keys, cluster, slot, one, other)
            async with asyncio.timeout(10):
                await ws.append(A, "1\n")
                assert await ws.read_bytes("/workspace/b.bin") == bytes(300_000)
            await asyncio.to_thread(_settle_slot, cluster, slot, other)
            await ws.append(A, "2\n")
        assert (await ws.read_text(A)).split() == ["0", "1", "2", "1", "2"]
        assert (await ws.log(limit=1))[0].sequence == 6


async def _until(holds: object) -> None:
    assert callable(holds)
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - any condition, not an event
            await asyncio.sleep(0.001)


def _move(cluster: RedisCluster, slot: int, source: RedisServer, target: RedisServer) -> None:
    """Move a slot as an administrator does: key by key, while both nodes serve it."""
    _move_keys(cluster, slot, source, target)
    _settle_slot(cluster, slot, target)


def _move_keys(cluster: RedisCluster, slot: int, source: RedisServer, target: RedisServer) -> None:
    with source.client() as one, target.client() as other:
        there, here = cluster.id(target), cluster.id(source)
        other.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", here)
        one.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", there)
        while keys := one.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 2):
            one.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)


def _settle_slot(cluster: RedisCluster, slot: int, target: RedisServer) -> None:
    there = cluster.id(target)
    for node in sorted(cluster.nodes, key=lambda node: node is not target):
        with node.client() as client:
            client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", there)


@pytest.fixture
async def sealed(cluster: RedisCluster, tmp_path: Path) -> AsyncIterator[str]:
    """The Cluster with a password, and announced by addresses that speak TLS: the URL of one of them."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    async with AsyncExitStack() as stack:
        ports = []
        stack.callback(_heard, cluster, [node.port for node in cluster.nodes])
        for node in cluster.nodes:
            proxy = await stack.enter_async_context(
                fault_proxy(("127.0.0.1", node.port), tls=context)
            )
            ports.append(proxy.port)
            stack.callback(_configure, node, announced=0, password="")
            _configure(node, announced=proxy.port, password=SECRET)
        await asyncio.to_thread(_heard, cluster, ports)
        place = f"127.0.0.1:{ports[0]}/0?timeout_ms=3000&ssl_ca_certs={tmp_path / 'ca.pem'}"
        yield f"rediss://:{SECRET}@{place}"


def _heard(cluster: RedisCluster, ports: list[int]) -> None:
    """Wait until each node says that the nodes are at these ports."""

    def told(node: RedisServer) -> set[int]:
        with node.client() as client:
            return {place[1] for _, _, place, *_ in client.execute_command("CLUSTER SLOTS")}

    cluster.settled(lambda: all(told(node) == set(ports) for node in cluster.nodes))


def _configure(node: RedisServer, *, announced: int, password: str) -> None:
    with node.client() as client:
        client.config_set("cluster-announce-port", announced)
        client.config_set("requirepass", password)
    node.password = password or None


async def test_all_nodes_are_reached_by_the_same_tls_and_password(
    sealed: str, cluster: RedisCluster
) -> None:
    names = [f"sealed {number}" for number in range(12)]
    holders = {cluster.holder(slot_of(partition_name("default", name))).port for name in names}
    assert len(holders) == 3
    async with open_workspace(sealed) as ws, open_workspace(sealed) as other:
        async with ws.watch(namespace=names[0], poll_interval_ms=60_000) as events:
            await asyncio.sleep(0.3)
            await asyncio.gather(*(other.write(A, name, namespace=name) for name in names))
            async with asyncio.timeout(10):
                assert (await anext(events)).path == A
        for name in names:
            await other.write("/workspace/b.bin", bytes(300_000), namespace=name)
            assert await ws.read_text(A, namespace=name) == name
            assert await ws.read_bytes("/workspace/b.bin", namespace=name) == bytes(300_000)
            await ws.drop_namespace(name)
    with pytest.raises(StorageError) as caught:
        await open_workspace(sealed.replace(SECRET, "x" + SECRET))
    assert not caught.value.retryable
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("who", ["a user without rights on one node", "another password there"])
async def test_a_node_that_refuses_is_told_and_takes_nothing(
    who: str, cluster: RedisCluster
) -> None:
    """The credentials are right for the node of the URL, and not for another one: its namespaces are refused whole."""
    names = [f"refused {number}" for number in range(12)]
    refusing = cluster.nodes[2]
    for node in cluster.nodes:
        with node.client() as client:
            rules = ["+@all", "~*", "&*", "on", f">{SECRET}"]
            if node is refusing:
                rules = ["on", ">other"] if who.startswith("another") else [*rules, "-hset"]
            client.execute_command("ACL", "SETUSER", "crux", "reset", *rules)
    try:
        url = cluster.url().replace("//", f"//crux:{SECRET}@") + "?timeout_ms=300"
        async with open_workspace(url) as ws:
            for name in names:
                partition = partition_name("default", name)
                if cluster.holder(slot_of(partition)) is not refusing:
                    await ws.write(A, name, namespace=name)
                    continue
                with pytest.raises(StorageError) as caught:
                    await ws.write(A, name, namespace=name)
                assert not caught.value.retryable
                assert SECRET not in "".join(traceback.format_exception(caught.value))
        async with open_workspace(cluster.url()) as ws:
            for name in names:
                refused = cluster.holder(slot_of(partition_name("default", name))) is refusing
                assert await ws.exists(A, namespace=name) is not refused
                await ws.drop_namespace(name)
    finally:
        for node in cluster.nodes:
            with node.client() as client:
                client.acl_deluser("crux")


async def test_two_prefixes_side_by_side_on_a_cluster(cluster: RedisCluster) -> None:
    urls = [cluster.url(), cluster.url() + "?prefix=other", cluster.url() + "?prefix=crux:0"]
    for number, url in enumerate(urls):
        async with open_workspace(url, id="beside") as ws:
            assert await ws.stat(A) is None
            await ws.write(A, f"{number}")
            await ws.write("/workspace/b.bin", bytes([number]) * 300_000)
    async with open_workspace(urls[0], id="beside") as ws:
        await ws.drop_namespace("default")
        await ws.gc(dry_run=False)
    for number, url in enumerate(urls[1:], 1):
        async with open_workspace(url, id="beside") as ws:
            assert await ws.read_text(A) == f"{number}"
            assert await ws.read_bytes("/workspace/b.bin") == bytes([number]) * 300_000
            await ws.drop_namespace("default")


async def test_a_node_that_is_killed_in_the_middle_of_commits_tears_and_loses_nothing() -> None:
    """It has no replica: calls wait for it, or are told; then it is started on its file, synced by each commit."""
    with cluster_of_three(appendonly="yes", appendfsync="always") as cluster:
        names = [f"n{number}" for number in range(9)]
        dying = cluster.holder(slot_of(partition_name("default", names[0])))
        told = dict.fromkeys(names, 0)
        stop = asyncio.Event()
        async with open_workspace(cluster.url()) as opener:
            del opener  # the nodes answer

        async def client(name: str) -> None:
            seed = next(node for node in cluster.nodes if node is not dying)
            async with open_workspace(seed.url(timeout_ms=300), namespace=name) as ws:
                number = 0
                while not stop.is_set():
                    number += 1
                    try:
                        async with ws.transaction() as tx:
                            await tx.write("/workspace/mark", f"{number}")
                            await tx.write("/workspace/large.bin", f"{number:08d}".encode() * 9_000)
                            await tx.append("/workspace/log", f"{number}\n")
                    except StorageError:
                        number -= 1
                        log = "/workspace/log"
                        with contextlib.suppress(
                            StorageError
                        ):  # what became of it is asked, as a client does
                            text = await ws.read_text(log) if await ws.exists(log) else ""
                            number = len(text.split())
                        continue
                    told[name] = number

        clients = [asyncio.create_task(client(name)) for name in names]
        for _ in range(KILLS):
            before = dict(told)
            await _until(lambda before=before: all(told[n] > before[n] + 2 for n in names))
            dying.kill()
            await asyncio.sleep(0.4)
            await asyncio.to_thread(dying.start)
            await asyncio.to_thread(
                cluster.settled, lambda: cluster.info(dying, "cluster_state") == "ok"
            )
        before = dict(told)
        await _until(lambda: all(told[n] > before[n] + 2 for n in names))
        stop.set()
        await asyncio.gather(*clients)
        async with open_workspace(cluster.url()) as ws:
            for name in names:
                lines = (await ws.read_text("/workspace/log", namespace=name)).split()
                assert lines == [str(n) for n in range(1, len(lines) + 1)], "each once, in order"
                assert told[name] <= len(lines) <= told[name] + 1
                last = int(await ws.read_text("/workspace/mark", namespace=name))
                assert last == len(lines) == (await ws.log(limit=1, namespace=name))[0].sequence
                large = await ws.read_bytes("/workspace/large.bin", namespace=name)
                assert large == f"{last:08d}".encode() * 9_000
        async with await RedisRecordStore.open(cluster.url()) as store:
            for name in names:
                await check_sound(store, partition_name("default", name))


async def test_a_node_that_dies_is_followed_by_its_replica() -> None:
    """The replica is elected by the other nodes; calls wait for it, and what was acknowledged and replicated is there.

    A revision that the replica never got is given out again there, for somebody else's change: what the lost node told of it is not
    believed, though the replica is connected to for the first time. Its sequence is given out again too, and a watcher that saw the lost
    commit is told of a gap, live or resumed.
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
        async with (
            open_workspace(url, namespace=name) as ws,
            ws.watch(start="oldest", poll_interval_ms=100) as live,
        ):
            for number in range(20):
                await ws.append(A, f"{number}\n")
            for number in range(8):  # from then on it is planned without reading
                await ws.write(B, f"{number}")
            with dying.client() as client:
                assert client.wait(1, 5000) == 1
                replica.pause()
                client.client_kill_filter(_type="replica", skipme=False)
            assert (await ws.write(B, "mine, and lost")).version == 9
            lost = (await take(live, 29))[-1]
            assert (lost.sequence, lost.version) == (29, 9)
            dying.kill()
            replica.resume()
            async with open_workspace(url, namespace=name) as other:
                theirs = await other.write(B, "theirs", metadata={"by": "other"})
            assert theirs.version == 9
            async with ws.watch(cursor=lost.cursor) as resumed:
                for watching in (live, resumed):
                    with pytest.raises(WatchGapError):
                        await take(watching, 1)
                    seen = await take(watching, 29)
                    assert [event.sequence for event in seen] == list(range(1, 30))
                    assert seen[-1].commit != lost.commit
            assert (await ws.write(B, "three")).version == 10
            assert await ws.read_text(B, version=9) == "theirs"
            assert (await ws.read(B, version=9)).metadata == {"by": "other"}
            await ws.append(A, "after\n")
            lines = (await ws.read_text(A)).split()
            assert lines == [*map(str, range(20)), "after"]
            await ws.write("/workspace/elsewhere", "x", namespace="another")
