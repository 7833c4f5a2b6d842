"""A real Cluster of three nodes, with a replica of the first when asked for."""

from __future__ import annotations

import atexit
import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from storage_adapters.redis.keyspace import Keyspace, slot_of_bucket
from tests.support.ports import free_port
from tests.support.redis_servers import RedisServer

__all__ = ["RedisCluster", "cluster_of_three", "emptied_cluster", "slot_of"]

_SLOTS = 16384
_READY_S = 30
_NODE_TIMEOUT_MS = 1500


class RedisCluster:
    """Nodes that hold the slots by thirds.

    Args:
        folder: Where their files are.
        settings: Settings of each of them, as `RedisServer` takes them.
    """

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder
        self._settings = settings
        self.nodes: list[RedisServer] = []

    def add(self) -> RedisServer:
        """Start one more node, which knows nobody."""
        node = RedisServer(
            self.folder / f"n{len(self.nodes)}",
            cluster_enabled="yes",
            cluster_node_timeout=_NODE_TIMEOUT_MS,
            cluster_port=free_port(),
            cluster_replica_validity_factor=0,
            **self._settings,
        )
        node.start()
        self.nodes.append(node)
        return node

    def form(self) -> None:
        """Start three nodes and give each its third of the slots."""
        for number in range(3):
            with self.add().client() as client:
                first, last = _SLOTS * number // 3, _SLOTS * (number + 1) // 3 - 1
                client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
        for node in self.nodes[1:]:
            self.introduce(node)
        self.settled(lambda: all(self.info(n, "cluster_known_nodes") == "3" for n in self.nodes))
        self.settled(lambda: all(self.info(n, "cluster_state") == "ok" for n in self.nodes))

    def introduce(self, node: RedisServer) -> None:
        """Make a node known to the first one, and so to all."""
        first = self.nodes[0]
        with node.client() as client:
            bus = first.settings["cluster-port"]
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", first.port, bus)

    def add_replica(self, of: RedisServer) -> RedisServer:
        """Start a replica of a node, and wait until it has everything."""
        replica = self.add()
        self.introduce(replica)
        self.settled(lambda: self.info(replica, "cluster_state") == "ok")
        with replica.client() as client:
            self.settled(lambda: _done(client.execute_command, "CLUSTER", "REPLICATE", self.id(of)))
            self.settled(lambda: client.info("replication").get("master_link_status") == "up")
        return replica

    def id(self, node: RedisServer) -> str:
        """Return a node's id."""
        with node.client() as client:
            return str(client.execute_command("CLUSTER", "MYID").decode())

    def info(self, node: RedisServer, name: str) -> str:
        """Return what a node says of the Cluster."""
        with node.client() as client:
            text = client.execute_command("CLUSTER", "INFO")
        pairs = (
            text
            if isinstance(text, dict)
            else dict(line.split(":", 1) for line in text.decode().split())
        )
        return str(pairs[name])

    def holder(self, slot: int) -> RedisServer:
        """Return the node that holds a slot."""
        return self.nodes[next(n for n in range(3) if slot < _SLOTS * (n + 1) // 3)]

    def settled(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + _READY_S
        while not holds():
            assert time.monotonic() < deadline, [node.log()[-500:] for node in self.nodes]
            time.sleep(0.02)

    def url(self) -> str:
        """Return the URL of one node."""
        return self.nodes[0].url()

    def end(self) -> None:
        """Stop all nodes."""
        for node in self.nodes:
            node.end()


def slot_of(partition: str) -> int:
    """Return the slot that a partition lies in."""
    return slot_of_bucket(Keyspace("crux", 0).partition(partition).bucket)


def _done(command: Callable[..., object], *arguments: object) -> bool:
    with contextlib.suppress(Exception):
        command(*arguments)
        return True
    return False


@contextlib.contextmanager
def cluster_of_three(**settings: object) -> Iterator[RedisCluster]:
    """Run a Cluster with these settings; nothing of it is left at the end."""
    with tempfile.TemporaryDirectory(prefix="crux-rc-", ignore_cleanup_errors=True) as folder:
        cluster = RedisCluster(Path(folder), **settings)
        try:
            cluster.form()
            yield cluster
        finally:
            cluster.end()


@lru_cache(maxsize=1)
def _shared_cluster() -> RedisCluster:
    stack = contextlib.ExitStack()
    cluster = stack.enter_context(cluster_of_three())
    atexit.register(stack.close)
    return cluster


def emptied_cluster() -> RedisCluster:
    """Return the Cluster that the tests of this process share, with nothing in it."""
    cluster = _shared_cluster()
    for node in cluster.nodes:
        with node.client() as client:
            client.flushall()
    return cluster
