"""Which old versions a commit collects: oldest first, never a pinned one, at most 32 at once."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from crux_workspace.engine.changeset import FileDelta
from crux_workspace.engine.entry import PastState
from crux_workspace.engine.ports import EnginePorts
from crux_workspace.engine.shrinking import left_behind
from crux_workspace.engine.tree import LiveTree

__all__ = ["MAX_COLLECTED", "Collected", "collect", "first_kept"]

MAX_COLLECTED = 32
"""Versions that one commit collects of one file; gc takes the rest."""


@dataclass(slots=True)
class Collected:
    """What goes with a commit."""

    first: int
    """Where collection starts from now on."""
    states: list[PastState] = field(default_factory=list)
    whole: list[PastState] = field(default_factory=list)
    """Versions that stay, and must not be the difference from one that goes any more; with their text."""
    ending: bool = False
    """The version that this very commit ends is not kept either."""


def collect(
    ports: EnginePorts, tree: LiveTree, delta: FileDelta, history_added: int
) -> Coroutine[Any, Any, Collected] | None:
    """Choose what a change of one file collects.

    Args:
        ports: Limits of the workspace.
        tree: What the plan reads.
        delta: The change.
        history_added: Bytes that the commit so far adds to the history.

    Returns:
        The states to delete and the new start of collection, to be awaited: one scan. None where nothing can be due.
    """
    first = first_kept(delta)
    wanted, bytes_over = first, 0
    if delta.appends or delta.upkeep:
        wanted = _wanted_by_count(ports, delta, first)
        bytes_over = _history_over(ports, tree, delta, history_added) if delta.appends else 0
    if wanted > first or bytes_over > 0 or _has_pin(delta):
        return _collect(tree, delta, first, wanted, bytes_over)
    return None


async def _collect(
    tree: LiveTree, delta: FileDelta, first: int, wanted: int, bytes_over: int
) -> Collected:
    collected = Collected(first)
    kept = _pins(delta)
    released = _released_pin(delta, kept)
    if released is not None and released < first:
        async for states in tree.versions_from(delta.file_id, released, released + 1):
            collected.states += states
    if wanted > first or bytes_over > 0:
        await _oldest(tree, delta, collected, kept, wanted, bytes_over)
    collected.whole = await left_behind(tree, delta.file_id, kept, collected.states)
    return collected


def first_kept(delta: FileDelta) -> int:
    """Return where collection starts if a change collects nothing."""
    if delta.before is not None:
        return delta.before.head.first
    return 1 if delta.gone is None else delta.gone.gone.first


def _has_pin(delta: FileDelta) -> bool:
    return delta.before is not None and delta.before.head.pinned is not None


def _pins(delta: FileDelta) -> set[int]:
    """Versions that must stay: the pin, and the content that a deletion leaves to be undone."""
    kept: set[int] = set()
    if delta.after is not None and delta.after.pinned is not None:
        kept.add(delta.after.pinned)
    if delta.after is None and delta.before is not None:
        kept.add(delta.before.version)
    return kept


def _released_pin(delta: FileDelta, kept: set[int]) -> int | None:
    before = delta.before
    if before is None or before.head.pinned is None or before.head.pinned in kept:
        return None
    return before.head.pinned


def _wanted_by_count(ports: EnginePorts, delta: FileDelta, first: int) -> int:
    most = ports.versioning.max_versions
    return first if most is None else max(first, delta.version - most + 1)


def _history_over(ports: EnginePorts, tree: LiveTree, delta: FileDelta, history_added: int) -> int:
    most = ports.limits.max_history_bytes
    if most is None:
        return 0
    ended = delta.before.head.size if delta.before is not None else 0
    held = 0 if tree.meta is None else tree.meta.counters.get("history_bytes", 0)
    return held + history_added + ended - most


async def _oldest(
    tree: LiveTree,
    delta: FileDelta,
    collected: Collected,
    kept: set[int],
    wanted: int,
    bytes_over: int,
) -> None:
    """Go from the oldest version up while the count or the bytes ask for it."""
    base = delta.base_version
    stored = base if delta.before is not None else base + 1
    earlier: list[PastState] = []
    taken = 0
    async for states in tree.versions_from(delta.file_id, collected.first, base + 1):
        version = states[0].version
        if version >= stored:
            earlier = states
            break
        if taken == MAX_COLLECTED or not (version < wanted or bytes_over > 0):
            return
        if version not in kept:
            collected.states += states
            bytes_over -= sum(state.state.size for state in states if not state.state.partial)
            taken += 1
        collected.first = version + 1
    if delta.before is not None and delta.appends and taken < MAX_COLLECTED:
        _ending(delta, collected, kept, earlier, wanted, bytes_over)


def _ending(
    delta: FileDelta,
    collected: Collected,
    kept: set[int],
    earlier: list[PastState],
    wanted: int,
    bytes_over: int,
) -> None:
    """Judge the version that the commit ends; `earlier` are its states before its last."""
    base = delta.base_version
    if base not in kept and (base < wanted or bytes_over > 0):
        collected.ending = True
        collected.states += earlier
    if collected.ending or (base < wanted and delta.after is not None):
        collected.first = base + 1
