"""Making the next checkpoint: what anybody may do, any number of times, however late.

Everything that is written is a function of the journal and the checkpoint before, so it is the same whoever writes it; what is
deleted is deleted before the new checkpoint stands, so whoever takes over from one that died deletes it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from crux_workspace.errors import ErrorCode, StorageError
from storage_adapters.journaled.entries import Body, Checkpoint, Entry, Row, pack, read, write
from storage_adapters.journaled.journal import Journal
from storage_adapters.journaled.snapshot import Window
from storage_adapters.journaled.tree import Gone, Growth, Tree, gathered

__all__ = ["roll_forward"]


async def roll_forward(journal: Journal) -> None:
    """Make every checkpoint that is due."""
    async with journal.lock:
        await journal.catch_up()
        while (window := journal.pending()) is not None:
            position = window.boundaries[0]
            made = await journal.checkpoint_at(position)
            if made is None:
                try:
                    await _make(journal, window, position)
                except Gone:  # somebody else made it, and one more, meanwhile
                    journal.forget()
                    return
                made = await journal.checkpoint_at(position)
            if made is None:
                raise StorageError(
                    "The store lost a checkpoint that it had acknowledged; certify it with the kit.",
                    code=ErrorCode.RECORD_CORRUPT,
                )
            journal.stand_on(made)


async def _make(journal: Journal, window: Window, position: int) -> None:
    before = window.checkpoint
    if window.at(position).ends:
        made = Checkpoint.nothing(position, before.position)
        await _remove_tree(journal, before)
        await _tidy(journal, window)
    else:
        growth = Growth(journal.nodes, position)
        changes = _changes(window, position)
        root = await growth.grow(before.root, changes)
        rows = [row for _, row in changes if row is not None]
        await _save(journal, window, growth, rows)
        kept = {row.body for row in rows}
        made = Checkpoint(
            position=position,
            previous=before.position,
            root=root,
            meta=window.at(position).meta,
            old_nodes=growth.old_nodes,
            old_bodies=sorted({row.body for row in growth.old_rows if row.body is not None} - kept),
        )
        await _tidy(journal, window)
    await journal.store.create(journal.keys.checkpoint(position), write(made))
    await journal.store.put(journal.keys.tip(), {"position": position})


def _changes(window: Window, position: int) -> list[tuple[str, Row | None]]:
    """Return what the entries up to a position make of each key they touch."""
    found: list[tuple[str, Row | None]] = []
    for key, versions in window.index.items():
        rows = [row for at, row in versions if at <= position]
        if rows:
            found.append((key, rows[-1]))
    return found


async def _save(journal: Journal, window: Window, growth: Growth, rows: Sequence[Row]) -> None:
    refs = [row.body for row in rows if row.body is not None and row.body in window.bodies]

    async def save_body(ref: str) -> None:
        body = Body(pack(window.bodies[ref]))
        await journal.store.put(journal.keys.body(ref), write(body))

    await gathered([partial(save_body, ref) for ref in refs])
    await gathered([partial(journal.nodes.save, name, node) for name, node in growth.made])


async def _tidy(journal: Journal, window: Window) -> None:
    """Remove what only the checkpoint before the last one needed."""
    before, keys = window.checkpoint, journal.keys
    dead = [keys.node(node) for node in before.old_nodes]
    dead += [keys.body(ref) for ref in before.old_bodies]
    if before.previous:
        dead.append(keys.checkpoint(before.previous))
    await gathered([partial(journal.store.delete, key) for key in dead])

    async def use_up(at: int) -> None:
        key = keys.log(at)
        value = await journal.store.get(key)
        if value is not None:
            entry = read(Entry, value, key)
            if not entry.spent:
                await journal.store.put(key, write(entry.used_up()))

    positions = range(before.previous + 1, before.position + 1)
    await gathered([partial(use_up, at) for at in positions])


async def _remove_tree(journal: Journal, checkpoint: Checkpoint) -> None:
    """Remove the tree of a partition that has ended, leaves first: whoever takes over finds what is left."""
    keys = journal.keys
    for name, node in await Tree(journal.nodes, checkpoint.root).walk():
        bodies = [keys.body(row.body) for row in node.rows if row.body is not None]
        await gathered([partial(journal.store.delete, key) for key in bodies])
        await journal.store.delete(keys.node(name))
