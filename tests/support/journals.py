"""Minimal stores that crash, stall and answer late, and the proof that a journal in one is whole and leaves nothing lying about."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from crux_workspace.storage.minimal import JsonObject, MinimalPage
from crux_workspace.testing import MemoryMinimalStore
from storage_adapters.journaled import judging, tree
from storage_adapters.journaled.entries import Checkpoint, Entry, Node, read
from storage_adapters.journaled.keys import PartitionKeys

__all__ = ["Crash", "OverStore", "audit", "small_nodes"]

T = TypeVar("T")


class Crash(Exception):
    """The process is gone: nothing that it does has an effect any more."""


def small_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a checkpoint be due after three commits and a node be full with three rows, so that few commits meet everything."""
    monkeypatch.setattr(judging, "BOUNDARY_ENTRIES", 3)
    monkeypatch.setattr(tree, "MOST_ITEMS", 3)


class OverStore:
    """One process's way to a store that others share: it takes time, and ends at a chosen call.

    Attributes:
        calls: How many calls were made.
    """

    def __init__(
        self,
        below: MemoryMinimalStore,
        *,
        crash_at: int | None = None,
        after: bool = False,
        chance: random.Random | None = None,
    ) -> None:
        """Go over a store.

        Args:
            below: The store.
            crash_at: Number of the call that the process does not survive.
            after: Whether that call still has its effect.
            chance: Gives calls that take some turns of the loop.
        """
        self.below = below
        self.calls = 0
        self._crash_at = crash_at
        self._after = after
        self._chance = chance

    async def get(self, key: str) -> JsonObject | None:
        """See `MinimalStore.get`."""
        return await self._call(lambda: self.below.get(key))

    async def put(self, key: str, value: JsonObject) -> None:
        """See `MinimalStore.put`."""
        await self._call(lambda: self.below.put(key, value))

    async def create(self, key: str, value: JsonObject) -> bool:
        """See `CreatingStore.create`."""
        return await self._call(lambda: self.below.create(key, value))

    async def delete(self, key: str) -> None:
        """See `MinimalStore.delete`."""
        await self._call(lambda: self.below.delete(key))

    async def list(
        self, prefix: str, *, limit: int | None = None, cursor: str | None = None
    ) -> MinimalPage:
        """See `MinimalStore.list`."""
        return await self._call(lambda: self.below.list(prefix, limit=limit, cursor=cursor))

    async def _call(self, call: Callable[[], Awaitable[T]]) -> T:
        self.calls += 1
        number = self.calls
        await self._turns()
        if self._crash_at is not None and number >= self._crash_at:
            if number == self._crash_at and self._after:
                await call()
            raise Crash(number)
        found = await call()
        await self._turns()
        return found

    async def _turns(self) -> None:
        if self._chance is not None:
            for _ in range(self._chance.randrange(4)):
                await asyncio.sleep(0)


async def audit(below: MemoryMinimalStore, partition: str) -> int:
    """Prove that a partition's journal is dense, that its tree is sound, and that nothing is left over; return its length."""
    keys = PartitionKeys.of("", partition)
    held = dict((await below.list("")).entries)

    def all_of(kind: str) -> dict[str, JsonObject]:
        stem = f"{kind}/{keys.mark}/"
        return {k.removeprefix(stem): v for k, v in held.items() if k.startswith(stem)}

    entries = {int(n): read(Entry, value, n) for n, value in all_of("log").items()}
    assert sorted(entries) == list(range(1, len(entries) + 1)), "the journal has no gap"
    made = {int(n): read(Checkpoint, value, n) for n, value in all_of("checkpoint").items()}
    last = made[max(made)] if made else Checkpoint.nothing()
    assert set(made) <= {last.position, last.previous}, "older checkpoints are gone"
    spent = {n for n, entry in entries.items() if entry.spent}
    assert spent == set(range(1, last.previous + 1)), "what checkpoints stand for is used up"
    nodes = {n: read(Node, value, n) for n, value in all_of("node").items()}
    reached, bodies = _reach(nodes, last.root)
    # The checkpoint before may still be read; what only it needs goes with the next.
    assert set(nodes) == reached | set(last.old_nodes), "no node is missing or left over"
    assert set(all_of("body")) == bodies | set(last.old_bodies), "no body is missing or left over"
    return len(entries)


def _reach(nodes: dict[str, Node], root: str | None) -> tuple[set[str], set[str]]:
    """Return the nodes and bodies of a tree, and prove that it is one."""
    reached: set[str] = set()
    bodies: list[str] = []
    keys: list[str] = []
    depths: set[int] = set()

    def visit(name: str, depth: int, low: str) -> None:
        node = nodes[name]
        reached.add(name)
        assert bool(node.rows) is not bool(node.children)
        for first, child in node.children:
            assert first >= low
            visit(child, depth + 1, first)
        if node.rows:
            depths.add(depth)
            assert node.rows[0].key >= low or depth == 0
        keys.extend(row.key for row in node.rows)
        bodies.extend(row.body for row in node.rows if row.body is not None)

    if root is not None:
        visit(root, 0, "")
    assert keys == sorted(set(keys)), "a tree's keys are in order, each once"
    assert len(bodies) == len(set(bodies)), "each body has one owner"
    assert len(depths) <= 1, "all leaves are at one depth"
    return reached, set(bodies)
