"""gc's part in keeping histories small: what no later commit of a file comes to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from crux_workspace.engine.changeset import Changeset
from crux_workspace.engine.committer import Finished
from crux_workspace.engine.compression import GROUP, group_end
from crux_workspace.engine.entry import Entry, PastState
from crux_workspace.engine.keys import HEAD_PREFIX, STATE_PREFIX
from crux_workspace.engine.shrinking import Smaller, can_shrink, shrink
from crux_workspace.engine.tree import LiveTree, scan_range
from crux_workspace.errors import ErrorCode, StorageError
from crux_workspace.operations.space import Options, Space

__all__ = ["shrink_histories"]

_PAGE = 256


@dataclass(slots=True)
class _History:
    """The ended versions of one file, as far as they were seen."""

    file_id: str
    newest: int = 0
    groups: set[int] = field(default_factory=set)
    """Ends of the groups that have a version to write smaller."""


async def shrink_histories(space: Space) -> None:
    """Write older versions smaller, group by group; a pinned version and the newest ended one stay as they are.

    A group with a damaged body is left alone. Cost: a scan of all ended states without their bodies, and for each group with
    something to do a read of its bodies and a commit.
    """
    pinned: dict[str, int] = {}
    async for record in scan_range(space.ports.reader, HEAD_PREFIX):
        entry = Entry.of(record)
        if entry.head.pinned is not None:
            pinned[entry.file_id] = entry.head.pinned
    async for history in _histories(space):
        keep = (history.newest, pinned.get(history.file_id))
        for end in sorted(history.groups):
            versions = range(end - GROUP + 1, end + 1)
            try:
                smaller = await shrink(
                    space.ports.reader, history.file_id, versions=versions, keep=keep
                )
            except StorageError as error:
                if error.code != ErrorCode.RECORD_CORRUPT:
                    raise
                continue
            if smaller:
                await _write(space, smaller)


async def _histories(space: Space) -> AsyncIterator[_History]:
    """Iterate over the files that have a version to write smaller."""
    history = _History("")
    seen = 0
    async for record in scan_range(space.ports.reader, STATE_PREFIX):
        state = PastState.of(record)
        seen += 1
        if seen % _PAGE == 0:
            await asyncio.sleep(0)  # a store that answers in place never gives the loop a turn
        if state.file_id != history.file_id:
            if history.groups:
                yield history
            history = _History(state.file_id)
        history.newest = state.version
        if can_shrink(state.state):
            history.groups.add(group_end(state.version))
    if history.groups:
        yield history


async def _write(space: Space, smaller: list[Smaller]) -> None:
    """Write states smaller, as far as they and their bases are still the ones that were read."""

    async def plan(tree: LiveTree) -> Changeset | Finished[None]:
        wanted = {key: revision for item in smaller for key, revision in item.expect.items()}
        found = await tree.get(wanted)
        same = {
            record.key
            for record in found
            if record is not None and record.revision == wanted[record.key]
        }
        puts = [item.put for item in smaller if item.expect.keys() <= same]
        return Changeset(extra_puts=puts) if puts else Finished(None)

    await space.commit("gc", (), plan, lambda _: None, options=Options(), request=[])
