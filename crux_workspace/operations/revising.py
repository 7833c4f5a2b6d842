"""A file's versions: history, diff, and walking back and forth through them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from crux_workspace.engine.bodies import readable
from crux_workspace.engine.changeset import Changeset, Draft, FileDelta, NewContent
from crux_workspace.engine.codec import Attributes
from crux_workspace.engine.committer import Finished
from crux_workspace.engine.content import load_text
from crux_workspace.engine.entry import Entry, PastState
from crux_workspace.engine.gathering import gather
from crux_workspace.engine.keys import head_key
from crux_workspace.engine.measuring import check_file_size
from crux_workspace.engine.tree import LiveTree
from crux_workspace.errors import (
    ErrorCode,
    NothingToUndoError,
    StateError,
    VersionNotFoundError,
)
from crux_workspace.model.diffs import FileDiff, diff_texts
from crux_workspace.model.files import WorkspaceFile
from crux_workspace.model.options import needed_number, ordinal, whole_number
from crux_workspace.model.versions import VersionEntry
from crux_workspace.operations import sourced
from crux_workspace.operations.origins import check_restored
from crux_workspace.operations.reading import (
    binary_refused,
    find_version,
    version_missing,
)
from crux_workspace.operations.space import (
    Options,
    Space,
    check_if_version,
    claim,
    expected_entry,
    not_found,
)

__all__ = ["diff", "history", "redo", "undo"]

_DIFF_OFF_LOOP_BYTES = 1 << 16


async def history(
    space: Space, path: str, *, limit: int | None, before: int | None
) -> list[VersionEntry]:
    """Return a file's versions, newest first; of a deleted file too. Cost: 1 read and pages."""
    whole_number("limit", limit)
    whole_number("before", before, least=1)
    if space.router.source(path) is not None:
        return []
    reads = space.reads()
    known = await reads.identity(path)
    found: list[VersionEntry] = []
    if known.file_id is None or limit == 0:
        return found
    below = before
    if known.raw is not None:
        if before is None or known.raw.version < before:
            found.append(known.raw.to_version())
        below = known.raw.version if before is None else min(before, known.raw.version)
    if limit is not None and len(found) == limit:
        return found
    async for state in reads.versions(known.file_id, below=below):
        found.append(state.to_version())
        if limit is not None and len(found) == limit:
            break
    return found


# -- diff


async def diff(
    space: Space,
    path: str,
    *,
    from_version: int | None,
    to_version: int | None,
    context_lines: int,
) -> FileDiff:
    """Compare two versions; by default the latest change."""
    ordinal("from_version", from_version)
    ordinal("to_version", to_version)
    needed_number("context_lines", context_lines, least=0)
    sourced.refuse(space, path, "diff")
    reads = space.reads()
    if to_version is None:
        entry = await reads.find(path)
        if entry is None:
            raise not_found(path)
        to_version = entry.version
    if from_version is None:
        from_version = to_version - 1
        if from_version == 0:
            raise VersionNotFoundError(
                f"Version {to_version} of {path} is its first: there is nothing before it to compare with.",
                details={"path": path, "version": 0},
            )
    old = await _text(space, path, from_version)
    new = await _text(space, path, to_version)
    if len(old) + len(new) < _DIFF_OFF_LOOP_BYTES:
        return diff_texts(path, old, new, from_version, to_version, context_lines)
    return await asyncio.to_thread(
        diff_texts, path, old, new, from_version, to_version, context_lines
    )


async def _text(space: Space, path: str, version: int) -> str:
    """Return a version as text; a deletion has none."""
    _, at = await find_version(space, space.reads(), path, version, bodies=True)
    of: Attributes = at.head if isinstance(at, Entry) else at.state
    if isinstance(at, PastState) and at.is_tombstone:
        return ""
    if of.kind == "b":
        raise binary_refused(path, "cannot be compared line by line")
    gather(path, of.size)
    return await load_text(space.ports, path, of, at.body)


# -- undo


@dataclass(slots=True)
class _Target:
    """What undo or redo brings back: the content of a version, and the original version it stands for."""

    version: int
    attributes: Attributes
    body: bytes | None

    @property
    def position(self) -> int:
        """An undo or a redo stands for the version it restored."""
        return self.attributes.restored_from or self.version


async def undo(
    space: Space, path: str, *, to_version: int | None, options: Options
) -> WorkspaceFile:
    """Restore earlier content as a new version; of a deleted file too."""
    sourced.refuse(space, path, "undo")
    ordinal("to_version", to_version)

    async def plan(tree: LiveTree) -> Changeset:
        await tree.look(path)
        entry = tree.entry(path)
        await check_if_version(tree, path, entry, options.if_version)
        if entry is None:
            return await _undelete(space, tree, path, to_version)
        target = await _undo_target(tree, path, entry, to_version)
        await check_restored(space.router, tree, path, entry.file_id, target.version)
        check_file_size(space.ports, path, target.attributes.size)
        top = entry.version if entry.head.walk is None else entry.head.walk[1]
        return _restored(entry, target, "undo", (target.position, top))

    return await space.commit_file("undo", path, plan, options=options, request=[to_version])


def _restored(entry: Entry, target: _Target, operation: str, walk: tuple[int, int]) -> Changeset:
    draft = Draft.like(
        entry,
        content=NewContent.again(target.attributes, target.body),
        operation=operation,
        restored_from=target.position,
        walk=walk,
        mime_type=target.attributes.mime_type,
        metadata=target.attributes.metadata,
    )
    return Changeset([FileDelta(file_id=entry.file_id, before=entry, after=draft)])


async def _undo_target(tree: LiveTree, path: str, entry: Entry, to_version: int | None) -> _Target:
    if to_version is None:
        position = entry.version if entry.head.walk is None else entry.head.walk[0]
        return await _newest_below(tree, path, entry.file_id, position)
    if to_version >= entry.version:
        if to_version == entry.version:
            raise NothingToUndoError(
                f"{path} is at version {to_version} already.", details={"path": path}
            )
        raise version_missing(path, to_version, entry.version)
    return await _version(tree, path, entry.file_id, to_version, entry.version)


async def _newest_below(tree: LiveTree, path: str, file_id: str, position: int) -> _Target:
    """Return the newest content below a version, passing over deletions."""
    wanted = position - 1
    async for state in tree.states(file_id, below=position, bodies=True, page=2):
        if state.version > wanted:
            continue
        if state.version < wanted:
            break
        if not state.is_tombstone:
            return await _target(tree, path, state, position)
        tree.rely(state.key, state.revision)
        wanted = state.version - 1
    if wanted >= 1:
        raise version_missing(path, wanted, position)
    raise NothingToUndoError(f"{path} has no earlier content.", details={"path": path})


async def _target(tree: LiveTree, path: str, state: PastState, last: int) -> _Target:
    """Make the target of an ended state that was read with its body."""
    found = await readable(tree.reader, state)
    if found is None:
        raise version_missing(path, state.version, last)
    tree.rely(found.key, found.revision)
    return _Target(found.version, found.state, found.body)


async def _version(tree: LiveTree, path: str, file_id: str, version: int, last: int) -> _Target:
    state = await tree.version_state(file_id, version, bodies=True)
    if state is None:
        raise version_missing(path, version, last)
    if state.is_tombstone:
        raise VersionNotFoundError(
            f"Version {version} of {path} is its deletion and has no content to restore.",
            details={"path": path, "version": version},
        )
    return _Target(version, state.state, state.body)


async def _undelete(space: Space, tree: LiveTree, path: str, to_version: int | None) -> Changeset:
    """Bring a deleted file back; what was an artifact comes back as a draft."""
    expired = tree.expired(path)
    gone = tree.gone(path)
    if expired is None and gone is None:
        raise not_found(path)
    space.router.check_file_place(path)
    changes = Changeset()
    going_on = await claim(tree, changes, path)
    assert going_on is not None
    file_id, last = going_on.gone.file_id, going_on.gone.version
    if expired is not None and to_version in (None, expired.version):
        [head] = await tree.get([head_key(path)], bodies=True)
        body = None if head is None else head.body
        target = _Target(expired.version, expired.head, body)
    elif to_version is None:
        target = await _newest_below(tree, path, file_id, last)
    else:
        target = await _version(tree, path, file_id, to_version, last)
    await check_restored(space.router, tree, path, file_id, target.version)
    of = target.attributes
    check_file_size(space.ports, path, of.size)
    was_artifact = bool(of.status or of.artifact_kind or of.produced_by)
    draft = Draft(
        path=path,
        content=NewContent.again(of, target.body),
        operation="undo",
        restored_from=target.position,
        walk=(target.position, target.position),
        mime_type=of.mime_type,
        metadata=of.metadata,
        status="draft" if was_artifact else None,
        artifact_kind=of.artifact_kind,
        produced_by=of.produced_by,
    )
    changes.add(FileDelta(file_id=file_id, gone=going_on, after=draft))
    return changes


# -- redo


async def redo(space: Space, path: str, *, options: Options) -> WorkspaceFile:
    """Take back an undo; any other content change in between ends the way."""
    sourced.refuse(space, path, "redo")

    async def plan(tree: LiveTree) -> Changeset | Finished[WorkspaceFile]:
        await tree.look(path, ways=False)
        entry = await expected_entry(tree, path, options)
        walk = entry.head.walk
        if walk is None or walk[0] >= walk[1]:
            raise StateError(
                f"{path} has no undo to take back.",
                code=ErrorCode.NOTHING_TO_REDO,
                details={"path": path},
            )
        target = await _next_above(tree, path, entry, walk)
        await check_restored(space.router, tree, path, entry.file_id, target.version)
        check_file_size(space.ports, path, target.attributes.size)
        return _restored(entry, target, "redo", (target.position, walk[1]))

    return await space.commit_file("redo", path, plan, options=options, request=[])


async def _next_above(tree: LiveTree, path: str, entry: Entry, walk: tuple[int, int]) -> _Target:
    """Return the version from which undo came to the walk's position: the way down from its top, one step before."""
    position, step = walk
    above: PastState | None = None
    async for state in tree.states(entry.file_id, below=step + 1, bodies=True, page=4):
        if state.version > step or (above is not None and state.version == above.version):
            continue
        if above is None and state.version < step:
            break
        tree.rely(state.key, state.revision)
        if state.is_tombstone:
            continue
        stands_for = state.state.restored_from or state.version
        if above is not None and stands_for <= position:
            break
        above = state
        step = stands_for
    if above is not None:
        return await _target(tree, path, above, entry.version)
    raise version_missing(path, step, entry.version)
