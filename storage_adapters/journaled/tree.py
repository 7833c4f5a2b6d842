"""The records of a checkpoint: a tree of nodes that never change.

A checkpoint's new nodes are a function of the tree before and the journal, their names too. So whoever makes it writes the very same
objects, any number of times, however late; and there is nothing to take back when one that makes it dies.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import TypeVar

from crux_workspace.storage.minimal import MinimalStore
from storage_adapters.journaled.entries import Body, Node, Row, read, size_of, unpack, write
from storage_adapters.journaled.keys import PartitionKeys

__all__ = ["Gone", "Growth", "Nodes", "Tree", "gathered"]

MOST_ITEMS = 64
MOST_WEIGHT = 64 << 10
_CACHED_NODES = 256
_AT_ONCE = 16
MOST_BYTES = 128 << 10
"""Most bytes of JSON of a leaf's rows, unless one row has more: less than a store takes as one value."""
_KIND, _CUT_KIND = "a", "b"
"""First letters of node names, the second from the first leaf on that bytes cut short: changed whenever the same input would give other
nodes, so that versions do not mix."""

T = TypeVar("T")
_first = itemgetter(0)
_key = attrgetter("key")


class Gone(Exception):
    """Something that a checkpoint refers to is not there any more: a later checkpoint has taken its place."""


async def gathered(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Make calls, some at a time, and return what they return."""
    found: list[T] = []
    for start in range(0, len(calls), _AT_ONCE):
        found += await asyncio.gather(*(call() for call in calls[start : start + _AT_ONCE]))
    return found


class Nodes:
    """Reads nodes, and keeps those that were read last."""

    def __init__(self, store: MinimalStore, keys: PartitionKeys) -> None:
        self._store = store
        self.keys = keys
        self._held: OrderedDict[str, Node] = OrderedDict()

    async def load(self, name: str) -> Node:
        """Return a node.

        Raises:
            Gone: It is not there any more.
        """
        node = self._held.get(name)
        if node is not None:
            self._held.move_to_end(name)
            return node
        key = self.keys.node(name)
        value = await self._store.get(key)
        if value is None:
            raise Gone(key)
        node = read(Node, value, key)
        self._held[name] = node
        if len(self._held) > _CACHED_NODES:
            self._held.popitem(last=False)
        return node

    async def load_body(self, ref: str) -> bytes:
        """Return the bytes of a body that a tree refers to.

        Raises:
            Gone: It is not there any more.
        """
        key = self.keys.body(ref)
        value = await self._store.get(key)
        if value is None:
            raise Gone(key)
        return unpack(read(Body, value, key).data)

    async def save(self, name: str, node: Node) -> None:
        """Write a node."""
        await self._store.put(self.keys.node(name), write(node))


class Tree:
    """The rows of one checkpoint, by key."""

    def __init__(self, nodes: Nodes, root: str | None) -> None:
        self._nodes = nodes
        self.root = root

    async def get(self, key: str) -> Row | None:
        """Return the row at `key`."""
        row = await self.seek(key)
        return row if row is not None and row.key == key else None

    async def seek(self, low: str) -> Row | None:
        """Return the first row at or behind `low`."""
        return None if self.root is None else await self._seek(self.root, low)

    async def _seek(self, name: str, low: str) -> Row | None:
        node = await self._nodes.load(name)
        if not node.children:
            at = bisect_left(node.rows, low, key=_key)
            return node.rows[at] if at < len(node.rows) else None
        start = max(0, bisect_right(node.children, low, key=_first) - 1)
        for _, child in node.children[start : start + 2]:  # the next child begins behind `low`
            row = await self._seek(child, low)
            if row is not None:
                return row
        return None

    async def seek_back(self, high: str | None) -> Row | None:
        """Return the last row before `high`."""
        return None if self.root is None else await self._seek_back(self.root, high)

    async def _seek_back(self, name: str, high: str | None) -> Row | None:
        node = await self._nodes.load(name)
        if not node.children:
            at = len(node.rows) if high is None else bisect_left(node.rows, high, key=_key)
            return node.rows[at - 1] if at > 0 else None
        at = len(node.children) if high is None else bisect_left(node.children, high, key=_first)
        # The last one that begins before `high` has such a row.
        for _, child in reversed(node.children[:at]):
            row = await self._seek_back(child, high)
            if row is not None:
                return row
        return None

    async def walk(self) -> list[tuple[str, Node]]:
        """Return every node that is there, children before their parents."""
        found: list[tuple[str, Node]] = []
        waiting = [self.root] if self.root is not None else []
        while waiting:
            name = waiting.pop()
            try:
                node = await self._nodes.load(name)
            except Gone:
                continue
            found.append((name, node))
            waiting += [child for _, child in node.children]
        return found[::-1]


class Growth:
    """A tree that becomes the next one."""

    def __init__(self, nodes: Nodes, position: int) -> None:
        self._nodes = nodes
        self._position = position
        self._kind = _KIND
        self.made: list[tuple[str, Node]] = []
        self.old_nodes: list[str] = []
        self.old_rows: list[Row] = []
        """The rows that were replaced or deleted."""

    async def grow(self, root: str | None, changes: Sequence[tuple[str, Row | None]]) -> str | None:
        """Apply changes, sorted by key, None deleting; return the new root."""
        if not changes:
            return root
        if root is None:
            level = self._leaves([row for _, row in changes if row is not None])
        else:
            level = await self._apply(root, changes)
        while len(level) > 1:
            level = self._inner(level)
        return level[0][1] if level else None

    async def _apply(
        self, name: str, changes: Sequence[tuple[str, Row | None]]
    ) -> list[tuple[str, str]]:
        node = await self._nodes.load(name)
        self.old_nodes.append(name)
        if not node.children:
            return self._leaves(self._merged(node.rows, changes))
        level: list[tuple[str, str]] = []
        start = 0
        for number, child in enumerate(node.children):
            last = number + 1 == len(node.children)
            end = len(changes)
            if not last:
                end = bisect_left(changes, node.children[number + 1][0], lo=start, key=_first)
            if end > start:
                level += await self._apply(child[1], changes[start:end])
            else:
                level.append(child)
            start = end
        return self._inner(level) if level else []

    def _merged(self, rows: Iterable[Row], changes: Sequence[tuple[str, Row | None]]) -> list[Row]:
        held = {row.key: row for row in rows}
        for key, row in changes:
            old = held.pop(key, None)
            if old is not None:
                self.old_rows.append(old)
            if row is not None:
                held[key] = row
        return sorted(held.values(), key=_key)

    def _leaves(self, rows: list[Row]) -> list[tuple[str, str]]:
        made = []
        for part, is_cut in _parts(rows):
            if is_cut:
                self._kind = _CUT_KIND
            made.append((part[0].key, self._make(Node(rows=part, children=[]))))
        return made

    def _inner(self, level: list[tuple[str, str]]) -> list[tuple[str, str]]:
        count = -(-len(level) // MOST_ITEMS)
        size = -(-len(level) // count)
        parts = [level[start : start + size] for start in range(0, len(level), size)]
        return [(part[0][0], self._make(Node(rows=[], children=part))) for part in parts]

    def _make(self, node: Node) -> str:
        name = f"{self._kind}{self._position}.{len(self.made)}"
        self.made.append((name, node))
        return name


def _parts(rows: list[Row]) -> Iterator[tuple[list[Row], bool]]:
    """Cut rows into leaves of about the same size; also whether only its bytes of JSON ended one."""
    total = sum(row.weight for row in rows)
    count = max(-(-len(rows) // MOST_ITEMS), -(-total // MOST_WEIGHT))
    share = total / count if count else 0
    part: list[Row] = []
    weight = written = 0
    for row in rows:
        size = size_of(row)
        if part and written + size > MOST_BYTES:
            yield part, True
            part, weight, written = [], 0, 0
        part.append(row)
        weight += row.weight
        written += size
        if weight >= share or len(part) == MOST_ITEMS:
            yield part, False
            part, weight, written = [], 0, 0
    if part:
        yield part, False
