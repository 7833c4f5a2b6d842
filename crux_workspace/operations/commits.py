"""The commit log: listing it, looking at the tree as of a commit, and reversing one commit whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from crux_workspace.engine.changeset import Changeset, Draft, FileDelta, NewContent
from crux_workspace.engine.codec import FilePlace, Gone, Op, Was, decode, encode
from crux_workspace.engine.committer import Done
from crux_workspace.engine.entry import Entry, GoneFile
from crux_workspace.engine.keys import file_key, gone_key, was_key_parts, was_prefix
from crux_workspace.engine.past import PastReads, expired_version
from crux_workspace.engine.tree import LiveTree
from crux_workspace.errors import (
    ConflictError,
    ErrorCode,
    InvalidInputError,
    NotFoundError,
    NothingToUndoError,
    VersionNotFoundError,
)
from crux_workspace.events.cursors import (
    NO_MARK,
    EventCursor,
    decode_event_cursor,
    encode_event_cursor,
    mark,
)
from crux_workspace.events.log import (
    commit_changes,
    commit_entry,
    find_commit,
    last_at,
    log_head,
    log_page,
    read_meta,
    sequence_of_key,
)
from crux_workspace.model.changes import PURGED_PATH, Change
from crux_workspace.model.moments import Moment, at_ms
from crux_workspace.model.options import needed_number
from crux_workspace.model.paths import ancestors, is_at_or_below, is_below
from crux_workspace.model.versions import CommitEntry
from crux_workspace.operations.space import Options, Space, type_conflict
from crux_workspace.storage.layout import META_KEY, log_key, number
from crux_workspace.storage.records import Put, Reader

__all__ = [
    "Resolved",
    "log",
    "reads_of",
    "resolve_moment",
    "undo_commit",
]

_PAGE = 64


# -- log


async def log(
    space: Space, *, path: str | None, directory: bool, limit: int, cursor: str | None
) -> list[CommitEntry]:
    """Return commits, newest first; with a path those that touched it or something below it, of a `directory` only the latter."""
    needed_number("limit", limit, least=0)
    if path is not None:
        space.router.browsable(path)
    reader, partition = space.ports.reader, space.ports.partition
    [record] = await reader.get_many([META_KEY], bodies=False)
    meta = read_meta(record)
    before = None
    if cursor is not None:
        place = decode_event_cursor(cursor, partition)
        if meta is not None and place.incarnation != mark(meta.incarnation):
            raise InvalidInputError(
                "The cursor is of a namespace that was dropped since; start without a cursor.",
                code=ErrorCode.INVALID_CURSOR,
            )
        await _check_place(reader, place)
        before = log_key(place.sequence)
    found: list[CommitEntry] = []
    if meta is None or limit == 0:
        return found
    while True:
        wanted = _PAGE if path is not None else min(max(limit - len(found), 8), _PAGE)
        heads, before = await log_page(reader, before=before, limit=wanted)
        for head in heads:
            whole = await commit_entry(reader, head, partition, meta.incarnation)
            entry = _visible(space, whole)
            if path is None or _touches(entry, path, is_below if directory else is_at_or_below):
                found.append(entry)
                if len(found) == limit:
                    return found
        if before is None:
            return found


def _visible(space: Space, entry: CommitEntry) -> CommitEntry:
    """Leave out the changes outside of this workspace's mounts."""
    shown = [change for change in entry.changes if space.router.shows(change)]
    return entry if len(shown) == len(entry.changes) else replace(entry, changes=shown)


async def _check_place(reader: Reader, place: EventCursor) -> None:
    """Refuse a cursor that names a commit other than the one the log has there (``INVALID_CURSOR``)."""
    [record] = await reader.get_many([log_key(place.sequence)], bodies=False)
    if record is not None and place.commit not in (NO_MARK, mark(log_head(record).commit_id)):
        raise InvalidInputError(
            "The cursor is malformed; start without a cursor.", code=ErrorCode.INVALID_CURSOR
        )


def _touches(entry: CommitEntry, path: str, holds: Callable[[str, str], bool]) -> bool:
    return any(
        holds(where, path)
        for change in entry.changes
        for where in (change.path, change.from_path)
        if where is not None
    )


# -- views


@dataclass(frozen=True, slots=True)
class Resolved:
    """The commit that a view shows; it belongs to one incarnation of its namespace."""

    sequence: int
    at: int
    incarnation: str | None


async def reads_of(space: Space, resolved: Resolved) -> PastReads:
    """Return the reads of a view that was resolved before.

    Raises:
        NotFoundError: The namespace was dropped since (``COMMIT_NOT_FOUND``).
    """
    reader = space.ports.reader
    if resolved.sequence:
        [record] = await reader.get_many([META_KEY], bodies=False)
        meta = read_meta(record)
        if meta is None or meta.incarnation != resolved.incarnation:
            raise NotFoundError(
                f"Commit {resolved.sequence} is gone: its namespace was dropped since.",
                code=ErrorCode.COMMIT_NOT_FOUND,
                details={"sequence": resolved.sequence},
            )
    return PastReads(reader, resolved.sequence, resolved.at)


async def resolve_moment(space: Space, moment: Moment) -> Resolved:
    """Resolve a moment to a commit.

    Raises:
        InvalidInputError: A sequence beyond the newest, or a datetime without time zone (``INVALID_ARGUMENT``).
        NotFoundError: The moment lies before the retained log (``COMMIT_NOT_FOUND``).
    """
    reader = space.ports.reader
    [record] = await reader.get_many([META_KEY], bodies=False)
    meta = read_meta(record)
    newest = 0 if meta is None else meta.sequence
    if isinstance(moment, datetime):
        sequence = await last_at(reader, newest, at_ms(moment))
    else:
        sequence = moment
        if sequence > newest:
            raise InvalidInputError(
                f"There is no commit {sequence} yet; the newest is {newest}.",
                details={"sequence": sequence, "newest": newest},
            )
    if sequence == 0:
        return Resolved(0, 0, None)
    [commit] = await reader.get_many([log_key(sequence)], bodies=False)
    if commit is None:
        raise NotFoundError(
            f"Commit {sequence} is older than the retained log of this namespace.",
            code=ErrorCode.COMMIT_NOT_FOUND,
            details={"sequence": sequence},
        )
    at = log_head(commit).at
    assert meta is not None
    return Resolved(sequence, commit.at if at is None else at, meta.incarnation)


# -- undo_commit


async def undo_commit(space: Space, commit: str | CommitEntry, *, options: Options) -> CommitEntry:
    """Reverse all changes of a commit with one new commit."""
    wanted = commit.commit if isinstance(commit, CommitEntry) else commit
    given: object = wanted
    if not isinstance(given, str):
        raise InvalidInputError("commit must be a commit's string or a CommitEntry.")

    async def plan(tree: LiveTree) -> Changeset:
        await tree.get(())
        record, head = await find_commit(tree.reader, wanted)
        changes = await commit_changes(tree.reader, record, head)
        if not changes:
            raise NothingToUndoError("That commit changed no file.", details={"commit": wanted})
        return await _reverse(space, tree, changes, sequence_of_key(record.key))

    def finish(done: Done) -> CommitEntry:
        batch = done.built.batch
        incarnation = batch.incarnation or done.commit_id
        cursor = encode_event_cursor(
            space.ports.partition, incarnation, done.sequence, done.commit_id
        )
        return CommitEntry(
            sequence=done.sequence,
            commit=done.commit,
            at=done.at,
            verb=batch.verb,
            actor=batch.actor,
            changes=batch.changes,
            cursor=cursor,
        )

    async def recall(reader: Reader, _: Op, sequence: int, __: int) -> CommitEntry:
        partition = space.ports.partition
        [record, meta] = await reader.get_many([log_key(sequence), META_KEY])
        known = read_meta(meta)
        if record is None or known is None:
            raise NotFoundError(
                "The commit that this idempotency_key made is not in the log any more.",
                code=ErrorCode.COMMIT_NOT_FOUND,
            )
        return await commit_entry(reader, record, partition, known.incarnation)

    return await space.commit(
        "undo_commit",
        (),
        plan,
        finish,
        options=options,
        request=[wanted],
        recall=recall,
    )


async def _reverse(space: Space, tree: LiveTree, changes: list[Change], sequence: int) -> Changeset:
    """Plan the way back: every touched path as it was right before the commit."""
    paths = list(dict.fromkeys(p for c in changes for p in (c.path, c.from_path) if p is not None))
    if PURGED_PATH in paths:
        raise VersionNotFoundError(
            f"Commit {sequence} changed a file that was purged since; it cannot be reversed.",
            code=ErrorCode.VERSION_EXPIRED,
            details={"sequence": sequence},
        )
    for path in paths:
        space.router.writable(path)
    await tree.look(*paths)
    for path in paths:
        await _refuse_later_change(tree, path, sequence)
        tree.quiet.append((path, False))
    past = PastReads(tree.reader, sequence - 1, tree.now)
    now = {e.file_id: e for path in paths if (e := tree.entry(path)) is not None}
    before: dict[str, Entry] = {}
    for path in paths:
        past.at = 0
        entry = await past.find(path, bodies=True)
        if entry is not None:
            before[entry.file_id] = entry
    planned = await _way_back(tree, now, before)
    await _refuse_in_the_way(tree, planned)
    left = {e.path for e in now.values() if e.file_id in before} - {e.path for e in before.values()}
    for path in left:
        await _restore_gone(tree, planned, path, sequence)
    return planned


async def _restore_gone(tree: LiveTree, planned: Changeset, path: str, sequence: int) -> None:
    """A file that had come to a path where another one was deleted leaves it: the deleted one goes on there again."""
    prefix = was_prefix(path)
    page = await tree.reader.scan(prefix, before=prefix + number(sequence), reverse=True, limit=1)
    if not page.records or tree.gone(path) is not None:
        return
    file_id = decode(Was, page.records[0].value).file_id
    [record] = await tree.get([file_key(file_id)])
    place = None if record is None else decode(FilePlace, record.value)
    if place is None or not place.gone or place.purged or place.path != path:
        return
    kept = [state async for state in tree.states(file_id, page=64)]
    if not kept or not kept[0].is_tombstone:
        return
    gone = Gone(
        file_id=file_id,
        version=kept[0].version,
        created_at=kept[-1].created_at,
        first=kept[-1].version,
    )
    planned.extra_puts.append(Put(gone_key(path), encode(gone)))


async def _way_back(tree: LiveTree, now: dict[str, Entry], before: dict[str, Entry]) -> Changeset:
    """Plan from what is to what was, file by file."""
    occupied = {entry.path for entry in before.values()}
    planned = Changeset()
    for file_id, entry in now.items():
        if file_id not in before:
            overwritten = entry.path in occupied
            planned.add(FileDelta(file_id=file_id, before=entry, overwritten=overwritten))
    for file_id, earlier in before.items():
        planned.add(await _back(tree, file_id, now.get(file_id), earlier))
    return planned


async def _refuse_in_the_way(tree: LiveTree, planned: Changeset) -> None:
    """A file cannot come back below another file, nor where a directory is now."""
    vacated = {
        delta.before.path
        for delta in planned.deltas
        if delta.before is not None
        and (delta.after is None or delta.after.path != delta.before.path)
    }
    for delta in planned.deltas:
        if delta.after is None or tree.entry(delta.after.path) is not None:
            continue
        path = delta.after.path
        for above in ancestors(path):
            if tree.entry(above) is not None and above not in vacated:
                raise type_conflict(path, above, is_file=True)
        for entry in await tree.below(path):
            if not entry.is_expired(tree.now) and entry.path not in vacated:
                raise type_conflict(path, entry.path, is_file=False)


async def _back(tree: LiveTree, file_id: str, current: Entry | None, earlier: Entry) -> FileDelta:
    """Plan one file's way back: content as a new `undo` version, attributes and pin as they were."""
    head = earlier.head
    if head.pinned is not None and head.pinned != earlier.version:
        await _refuse_lost_pin(tree, earlier, head.pinned)
    draft = Draft.like(earlier, content=None, walk=None)
    if current is not None and current.version == earlier.version:
        draft.operation, draft.restored_from = current.head.operation, current.head.restored_from
        draft.walk = current.head.walk
        return FileDelta(file_id=file_id, before=current, after=draft)
    draft.content = NewContent.again(head, earlier.body)
    position = head.restored_from or earlier.version
    draft.operation, draft.restored_from = "undo", position
    top = position
    if current is not None:
        top = current.version if current.head.walk is None else current.head.walk[1]
    draft.walk = (position, max(position, top))
    if current is not None:
        return FileDelta(file_id=file_id, before=current, after=draft)
    return FileDelta(file_id=file_id, gone=await _gone(tree, earlier), after=draft)


async def _gone(tree: LiveTree, earlier: Entry) -> GoneFile:
    """Return what a deleted or overwritten file goes on with."""
    [gone, place] = await tree.get([gone_key(earlier.path), file_key(earlier.file_id)])
    if gone is not None:
        found = GoneFile.of(gone)
        if found.gone.file_id == earlier.file_id:
            return found
    known = None if place is None else decode(FilePlace, place.value)
    if place is not None and known is not None:
        if known.purged:
            raise _purged(earlier.path)
        if not known.gone or known.path != earlier.path:
            # A transaction can take a deleted file up again and move it in one commit, which names the new path only.
            raise await _changed_later(tree, earlier.path, None, place.revision)
    oldest = tree.versions_from(earlier.file_id, 1, earlier.version + 2)
    kept = await anext(oldest, None)
    first = earlier.version if kept is None else kept[0].version
    return GoneFile(earlier.path, earlier.deleted_as(earlier.version + 1, first), 0)


async def _refuse_lost_pin(tree: LiveTree, earlier: Entry, pinned: int) -> None:
    """A pin comes back only with the version it shows: collecting may have taken it since."""
    if await tree.version_state(earlier.file_id, pinned) is None:
        raise expired_version(earlier.path)


def _purged(path: str) -> VersionNotFoundError:
    return VersionNotFoundError(
        f"What {path} held was purged.", code=ErrorCode.VERSION_EXPIRED, details={"path": path}
    )


async def _refuse_later_change(tree: LiveTree, path: str, sequence: int) -> None:
    """Nothing may have happened on the path since the commit."""
    if (late := tree.expired(path)) is not None:
        raise ConflictError(
            f"{path} has expired since the commit; there is nothing to reverse at it.",
            details={
                "path": path,
                "base_version": None,
                "current_version": late.version,
                "last_operation": "expire",
                "last_actor": None,
                "sequence": None,
                "commit": None,
            },
        )
    entry = tree.entry(path)
    later = 0 if entry is None else max(entry.commit_sequence, entry.bound)
    if later <= sequence:
        prefix = was_prefix(path)
        page = await tree.reader.scan(prefix, reverse=True, limit=1)
        later = was_key_parts(page.records[0].key)[1] if page.records else 0
    if later > sequence:
        raise await _changed_later(tree, path, None if entry is None else entry.version, later)


async def _changed_later(
    tree: LiveTree, path: str, version: int | None, later: int
) -> ConflictError:
    [record] = await tree.reader.get_many([log_key(later)], bodies=False)
    head = None if record is None else log_head(record)
    return ConflictError(
        f"{path} was changed by a later commit ({later}); reverse that one first.",
        details={
            "path": path,
            "base_version": None,
            "current_version": version,
            "last_operation": None if head is None else head.verb,
            "last_actor": None if head is None else head.actor,
            "sequence": later,
            "commit": None if head is None else f"{later}-{head.commit_id}",
        },
    )
