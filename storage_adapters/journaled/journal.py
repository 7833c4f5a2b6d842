"""One partition's journal: where it ends, what its last entries are, and the next one.

Whoever creates the entry at a position has committed. Entries are never deleted, so no two commits ever have one position, however
late a writer's create arrives; once checkpoints hold what an entry did, only its place is left.
"""

from __future__ import annotations

import asyncio
from functools import partial

from crux_workspace.errors import ErrorCode, StorageError
from crux_workspace.storage.minimal import CreatingStore
from crux_workspace.storage.records import OutcomeUnknown
from storage_adapters.journaled.entries import Checkpoint, Entry, read, write
from storage_adapters.journaled.keys import PartitionKeys
from storage_adapters.journaled.snapshot import Snapshot, Window
from storage_adapters.journaled.tree import Nodes, gathered

__all__ = ["Journal"]

_RELOADS = 50


class Journal:
    """What this process knows of one partition; it looks for more whenever it is asked."""

    def __init__(self, store: CreatingStore, keys: PartitionKeys) -> None:
        self.store = store
        self.keys = keys
        self.nodes = Nodes(store, keys)
        self.lock = asyncio.Lock()
        """Held by whoever moves what is known on."""
        self._window: Window | None = None

    async def current(self) -> Snapshot:
        """Return the partition as it is now, or a little later."""
        window = self._window
        if window is None:
            async with self.lock:
                if self._window is None:
                    self._window = await self._load()
            window = self._window
            assert window is not None
            return Snapshot(window, self.nodes)
        entry = await self._entry(window.tail + 1)
        boundaries = window.boundaries
        checkpoint = await self.checkpoint_at(boundaries[-1]) if boundaries else None
        if entry is not None or checkpoint is not None:
            async with self.lock:
                await self._move_on(checkpoint)
        if self._window is None:
            return await self.current()
        return Snapshot(self._window, self.nodes)

    def forget(self) -> None:
        """Know nothing any more: what was known is no longer there."""
        self._window = None

    def learn(self, position: int, entry: Entry) -> None:
        """Take in an entry that this process wrote, if it is the next one."""
        if self._window is not None and self._window.tail + 1 == position:
            self._window.add(entry)

    def pending(self) -> Window | None:
        """Return the window when a checkpoint is to be made of its first entries."""
        window = self._window
        return window if window is not None and window.boundaries else None

    def stand_on(self, checkpoint: Checkpoint) -> None:
        """Go on from a later checkpoint."""
        window = self._window
        if window is None or not window.checkpoint.position < checkpoint.position <= window.tail:
            return
        moved = Window(checkpoint)
        for position in range(checkpoint.position + 1, window.tail + 1):
            moved.add(window.at(position))
        self._window = moved

    async def catch_up(self) -> None:
        """Stand on the last checkpoint that was made: those before it may be gone."""
        for position in reversed(self._window.boundaries if self._window is not None else []):
            checkpoint = await self.checkpoint_at(position)
            if checkpoint is not None:
                self.stand_on(checkpoint)
                return

    async def publish(self, position: int, entry: Entry) -> bool:
        """Write the entry, unless there is one; tell whether it is ours.

        Raises:
            OutcomeUnknown: The store failed, and does not tell.
        """
        key = self.keys.log(position)
        try:
            won = await self.store.create(key, write(entry))
        except Exception as error:
            try:
                found = await self._entry(position)
            except Exception as again:
                raise OutcomeUnknown("the journal entry") from again
            if found is None:  # it may still arrive
                raise OutcomeUnknown("the journal entry") from error
            return found.id == entry.id
        if won:
            return True
        # The store, or what is below it, may have tried twice: then the first try was ours.
        found = await self._entry(position)
        return found is not None and found.id == entry.id

    async def checkpoint_at(self, position: int) -> Checkpoint | None:
        """Return the checkpoint at a position, if it was made."""
        key = self.keys.checkpoint(position)
        value = await self.store.get(key)
        return None if value is None else read(Checkpoint, value, key)

    async def _entry(self, position: int) -> Entry | None:
        key = self.keys.log(position)
        value = await self.store.get(key)
        return None if value is None else read(Entry, value, key)

    async def _move_on(self, checkpoint: Checkpoint | None) -> None:
        if checkpoint is not None:
            self.stand_on(checkpoint)
        while (window := self._window) is not None:
            position = window.tail + 1
            entry = await self._entry(position)
            if entry is None:
                return
            if self._window is not window or window.tail + 1 != position:
                continue  # this process wrote it meanwhile
            if entry.spent:
                break
            window.add(entry)
        self._window = await self._load()

    async def _load(self) -> Window:
        for attempt in range(_RELOADS):
            window = await self._read_window()
            if window is not None:
                return window
            await asyncio.sleep(0.01 * attempt)
        raise StorageError(
            "The journal in the store contradicts itself: entries are gone that no checkpoint stands for.",
            code=ErrorCode.RECORD_CORRUPT,
        )

    async def _read_window(self) -> Window | None:
        """Read the last checkpoint and the entries behind it; None when they were used up meanwhile."""
        tail, last = await self._find_tail()
        checkpoint = Checkpoint.nothing()
        base = 0 if last is None else tail if last.boundary else last.base
        while base:
            found = await self.checkpoint_at(base)
            if found is not None:
                checkpoint = found
                break
            boundary = await self._entry(base)
            if boundary is None or boundary.spent:
                return None
            base = boundary.base
        window = Window(checkpoint)
        positions = range(checkpoint.position + 1, tail + 1)
        for entry in await gathered([partial(self._entry, n) for n in positions]):
            if entry is None or entry.spent:
                return None
            window.add(entry)
        return window

    async def _find_tail(self) -> tuple[int, Entry | None]:
        """Return position and content of the last entry, from wherever the hint says to begin."""
        hint = await self.store.get(self.keys.tip())
        low = 0
        if hint is not None and type(hint.get("position")) is int:
            low = max(0, hint["position"])
        last = await self._entry(low) if low else None
        if last is None:
            low = 0
        step = 1
        while (found := await self._entry(low + step)) is not None:
            low, last, step = low + step, found, step * 2
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            found = await self._entry(middle)
            if found is None:
                high = middle
            else:
                low, last = middle, found
        return low, last
