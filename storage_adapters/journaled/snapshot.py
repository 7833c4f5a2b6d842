"""A partition as of one commit: a checkpoint's tree, overlaid with the entries behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial

from sortedcontainers import SortedDict

from crux_workspace.storage.layout import Meta, decode_meta, prefix_end
from crux_workspace.storage.records import Page, Record
from storage_adapters.journaled.entries import Checkpoint, Entry, Row, unpack
from storage_adapters.journaled.tree import Nodes, Tree, gathered

__all__ = ["Snapshot", "Window"]


class Window:
    """The entries behind a checkpoint, as far as they are known. It only grows."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.entries: list[Entry] = []
        self.index: SortedDict[str, list[tuple[int, Row | None]]] = SortedDict()
        self.bodies: dict[str, bytes] = {}
        self.boundaries: list[int] = []
        """Positions of the entries that checkpoints are to be made at."""

    @property
    def tail(self) -> int:
        """Position of the last known entry."""
        return self.checkpoint.position + len(self.entries)

    def at(self, position: int) -> Entry:
        """Return the entry at a position of the window."""
        return self.entries[position - self.checkpoint.position - 1]

    def add(self, entry: Entry) -> None:
        """Take in the entry behind the last one."""
        self.entries.append(entry)
        position = self.tail
        if entry.boundary:
            self.boundaries.append(position)
        for key in entry.gone:
            self.index.setdefault(key, []).append((position, None))
        for row in entry.rows:
            self.index.setdefault(row.key, []).append((position, row))
        for number, body in enumerate(entry.bodies):
            self.bodies[f"{position}.{number}"] = unpack(body)

    def last_end(self, position: int) -> int:
        """Return the position of the last entry up to `position` that ended the partition, 0 when there is none."""
        for n in range(position, self.checkpoint.position, -1):
            if self.at(n).ends:
                return n
        return 0


class Snapshot:
    """Reads of one moment; entries that are added to its window later do not show."""

    def __init__(self, window: Window, nodes: Nodes) -> None:
        self._window = window
        self._nodes = nodes
        self.position = window.tail
        self._end = window.last_end(self.position)
        self._tree = Tree(nodes, None if self._end else window.checkpoint.root)
        self.last = window.at(self.position) if window.entries else None
        told = window.checkpoint.meta if self.last is None else self.last.meta
        self.meta: Meta | None = decode_meta(told.encode()) if told else None

    @property
    def sequence(self) -> int:
        """Sequence of the last commit, 0 when the partition does not exist."""
        return 0 if self.meta is None else self.meta.sequence

    async def rows(self, keys: Sequence[str]) -> dict[str, Row | None]:
        """Return the rows at some keys."""
        found: dict[str, Row | None] = {}
        for key in keys:
            hidden, row = self._overlaid(key)
            found[key] = row if hidden else await self._tree.get(key)
        return found

    async def seek(self, low: str) -> Row | None:
        """Return the first row at or behind `low`."""
        while True:
            below = await self._tree.seek(low)
            above = next(self._overlay(low, None), None)
            if above is None or (below is not None and below.key < above[0]):
                return below
            if above[1] is not None:
                return above[1]
            low = above[0] + "\0"  # deleted; no key has a NUL, so this is the next one

    async def seek_back(self, high: str | None) -> Row | None:
        """Return the last row before `high`."""
        while True:
            below = await self._tree.seek_back(high)
            above = next(self._overlay(None, high), None)
            if above is None or (below is not None and below.key > above[0]):
                return below
            if above[1] is not None:
                return above[1]
            high = above[0]

    async def records(self, rows: Sequence[Row | None], *, bodies: bool) -> list[Record | None]:
        """Return the records of some rows."""
        refs = dict.fromkeys(row.body for row in rows if row is not None and row.body is not None)
        found: dict[str, bytes] = {}
        if bodies and refs:
            loaded = await gathered([partial(self.body, ref) for ref in refs])
            found = dict(zip(refs, loaded, strict=True))
        return [None if row is None else _record(row, found) for row in rows]

    async def body(self, ref: str) -> bytes:
        """Return a body's bytes.

        Raises:
            Gone: They are not there any more.
        """
        held = self._window.bodies.get(ref)
        if held is not None:
            return held
        return await self._nodes.load_body(ref)

    async def scan(
        self,
        prefix: str,
        *,
        after: str | None,
        before: str | None,
        reverse: bool,
        limit: int,
        bodies: bool,
        delimiter: str | None,
    ) -> Page:
        """See `RecordStore.scan`."""
        found: list[Row | str] = []
        more = False
        if limit > 0:
            async for item in self._names(prefix, after, before, reverse, delimiter):
                more = len(found) == limit
                if more:
                    break
                found.append(item)
        rows = [item for item in found if isinstance(item, Row)]
        records = await self.records(rows, bodies=bodies)
        last = found[-1] if found else ""
        return Page(
            [record for record in records if record is not None],
            [item for item in found if isinstance(item, str)],
            (last.key if isinstance(last, Row) else last) if more else None,
        )

    async def _names(
        self,
        prefix: str,
        after: str | None,
        before: str | None,
        reverse: bool,
        delimiter: str | None,
    ) -> AsyncIterator[Row | str]:
        """Yield the rows and common prefixes of a scan, seeking over what is folded."""
        low, high = prefix, prefix_end(prefix)
        if after is not None and after >= low:
            folded = delimiter is not None and after.endswith(delimiter) and after > prefix
            behind = prefix_end(after) if folded else after + "\0"
            if behind is None:
                return
            low = behind
        if before is not None and (high is None or before < high):
            high = before
        while True:
            row = await (self.seek_back(high) if reverse else self.seek(low))
            if row is None or row.key < low or (high is not None and row.key >= high):
                return
            cut = row.key.find(delimiter, len(prefix)) if delimiter else -1
            name = row.key if delimiter is None or cut < 0 else row.key[: cut + len(delimiter)]
            yield row if cut < 0 else name
            if reverse:
                high = name
                continue
            behind = row.key + "\0" if cut < 0 else prefix_end(name)
            if behind is None:
                return
            low = behind

    def _overlaid(self, key: str) -> tuple[bool, Row | None]:
        """Return whether the window decides about a key, and its row."""
        for position, row in reversed(self._window.index.get(key, ())):
            if position <= self.position:
                return (True, row) if position > self._end else (True, None)
        return False, None

    def _overlay(self, low: str | None, high: str | None) -> Iterator[tuple[str, Row | None]]:
        """Yield the keys that the window decides about, upwards from `low` or downwards from `high`."""
        for key in self._window.index.irange(
            low, high, inclusive=(True, False), reverse=low is None
        ):
            hidden, row = self._overlaid(key)
            if hidden:
                yield key, row


def _record(row: Row, bodies: dict[str, bytes]) -> Record:
    body = None if row.body is None else bodies.get(row.body)
    return Record(row.key, unpack(row.value), body, row.revision, row.at)
