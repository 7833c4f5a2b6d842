"""Writing older versions smaller, once nothing changes them any more.

A version ends as it was written: its body only changes owner. Every `SHRINK_EVERY` versions the commit that ends one of them also
writes the bodies before it again, compressed or as differences, and gc does the same for what no later commit comes to. Both are done
by expectation: what is written smaller, and what it is the difference from, must still be what was read.

The texts are read and encoded before the commit, outside of any lock. A commit is never refused for them: they are left out when it is
planned again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from crux_workspace.engine.bodies import readable
from crux_workspace.engine.codec import State, encode
from crux_workspace.engine.compression import DIFFERENCE, group_end, smallest
from crux_workspace.engine.content import off_loop
from crux_workspace.engine.entry import Entry, PastState
from crux_workspace.engine.keys import states_prefix
from crux_workspace.engine.tree import LiveTree, scan_range
from crux_workspace.errors import ErrorCode, StorageError
from crux_workspace.storage.layout import number
from crux_workspace.storage.records import Batch, Put, Reader

__all__ = [
    "LEAST_BYTES",
    "SHRINK_EVERY",
    "Smaller",
    "add_smaller",
    "can_shrink",
    "is_turn",
    "left_behind",
    "shrink",
    "shrink_ended",
]

LEAST_BYTES = 4096
"""Bodies below this size stay as they are."""
SHRINK_EVERY = 8
"""Versions that one commit writes smaller."""
_MOST_VERSIONS = 3 * SHRINK_EVERY + 1
"""Versions that one commit looks back at: a refused commit's turn is made up for by the next."""
_MOST_FILES = 8
"""Files whose versions one commit writes smaller; of a larger transaction gc takes the rest."""


@dataclass(frozen=True, slots=True)
class Smaller:
    """A state written smaller, and the revisions at which it and its base were read."""

    put: Put
    expect: dict[str, int]


def is_turn(ended: Entry) -> bool:
    """Tell whether the commit that ends this version is to write earlier ones smaller. Cost: two comparisons."""
    head = ended.head
    return head.size >= LEAST_BYTES and head.version % SHRINK_EVERY == 0 and head.is_inline


def can_shrink(state: State) -> bool:
    """Tell whether a state holds inline text that is still as it was written."""
    return (
        state.enc is None
        and state.size >= LEAST_BYTES
        and state.is_inline
        and not state.partial
        and state.kind != "b"
    )


async def shrink_ended(reader: Reader, ended: Iterable[Entry]) -> list[Smaller]:
    """Write the versions smaller that ended since the last turn of some files; what fails here is left to gc."""
    found: list[Smaller] = []
    for entry in list(ended)[:_MOST_FILES]:
        version = entry.version
        try:
            found += await shrink(
                reader,
                entry.file_id,
                versions=range(version - _MOST_VERSIONS, version),
                keep=(version - 1, entry.head.pinned),
                to_last_turn=True,
            )
        except StorageError:
            continue
    return found


async def shrink(
    reader: Reader,
    file_id: str,
    *,
    versions: range,
    keep: tuple[int | None, ...],
    to_last_turn: bool = False,
) -> list[Smaller]:
    """Write the states of some versions smaller.

    Args:
        reader: What to read from; no plan, nothing becomes an expectation by reading.
        file_id: The file.
        versions: Versions to look at.
        keep: Versions that stay as they are: the newest ended one, whose successor is still the head, and the pinned one.
        to_last_turn: Look no further down than to the first one that is smaller already.

    Returns:
        What to put, for states that get smaller by it; a damaged one stays as it is.

    Raises:
        StorageError: The store failed, or a record is damaged (``RECORD_CORRUPT``).
    """
    prefix = states_prefix(file_id)
    work: list[tuple[PastState, PastState | None]] = []
    newer: PastState | None = None
    seen = 0
    async for record in scan_range(
        reader,
        prefix,
        after=prefix + number(max(versions.start, 0)),
        before=prefix + number(versions.stop),
        reverse=True,
        bodies=True,
        page=SHRINK_EVERY + 2,
    ):
        state = PastState.of(record)
        if state.version == seen or state.is_tombstone or not state.state.is_inline:
            continue
        seen = state.version
        if to_last_turn and state.state.enc is not None:
            break
        if can_shrink(state.state) and state.version not in keep:
            work.append((state, _base_for(state, newer)))
        newer = state
    pairs = [(state, await _plain(reader, base)) for state, base in work]
    return await off_loop(
        sum(state.state.size for state, _ in pairs),
        lambda: [s for state, base in pairs if (s := _written(state, base)) is not None],
    )


def _base_for(state: PastState, newer: PastState | None) -> PastState | None:
    """Return the newer state whose text this one may be the difference from: one of its own group."""
    if newer is None or newer.version > group_end(state.version) or newer.state.partial:
        return None
    return newer


async def _plain(reader: Reader, state: PastState | None) -> PastState | None:
    """Return a base with its text; None when it is damaged: nothing may be the difference from that."""
    try:
        return None if state is None else await readable(reader, state)
    except StorageError as error:
        if error.code == ErrorCode.RECORD_CORRUPT:
            return None
        raise


def _written(state: PastState, base: PastState | None) -> Smaller | None:
    if state.body is None or hashlib.sha256(state.body).hexdigest() != state.state.sha256:
        return None
    chosen = smallest(state.body, None if base is None else base.body)
    if chosen is None:
        return None
    value = state.settled()
    value.enc, body = chosen
    expect = {state.key: state.revision}
    if base is not None and value.enc == DIFFERENCE:
        value.base = base.version, base.start
        expect[base.key] = base.revision
    return Smaller(Put(state.key, encode(value), body), expect)


def add_smaller(batch: Batch, smaller: Iterable[Smaller]) -> None:
    """Let a batch write states smaller, but for those that it deletes or writes itself, or whose base it deletes."""
    own, gone = {put.key for put in batch.puts}, set(batch.deletes)
    for item in smaller:
        if item.put.key in own or not gone.isdisjoint(item.expect):
            continue
        batch.puts.append(item.put)
        batch.expect.update(item.expect)


async def left_behind(
    tree: LiveTree, file_id: str, kept: Iterable[int], going: list[PastState]
) -> list[PastState]:
    """Return the versions that stay while a newer one is collected that they may be the difference from, as they were written.

    Cost: 1 read for a version that stays in the group of one that goes, 2 more for its text.
    """
    found: list[PastState] = []
    for version in kept:
        if not any(version < state.version <= group_end(version) for state in going):
            continue
        state = await tree.version_state(file_id, version)
        if state is not None and state.state.enc == DIFFERENCE:
            plain = await tree.version_state(file_id, version, bodies=True)
            if plain is not None:
                found.append(plain)
    return found
