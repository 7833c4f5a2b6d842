"""Rename, move and copy, of files and of whole directories; each is one commit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from crux_workspace.engine.built import Built
from crux_workspace.engine.changeset import Changeset, Draft, FileDelta, NewContent
from crux_workspace.engine.codec import Op
from crux_workspace.engine.committer import Done, Finished
from crux_workspace.engine.content import discard, put_asset
from crux_workspace.engine.entry import Entry, GoneFile
from crux_workspace.engine.measuring import check_file_size
from crux_workspace.engine.parts import stream_parts
from crux_workspace.engine.past import PastReads
from crux_workspace.engine.tree import LiveTree
from crux_workspace.errors import (
    AlreadyExistsError,
    ConflictError,
    ErrorCode,
    InvalidInputError,
    PathExistsError,
)
from crux_workspace.events.log import read_meta
from crux_workspace.model.files import WorkspaceDirectory, WorkspaceEntry
from crux_workspace.model.paths import ancestors, is_below, normalise
from crux_workspace.operations import sourced
from crux_workspace.operations.space import (
    Options,
    Space,
    check_if_version,
    claim,
    not_found,
    slash_refused,
)
from crux_workspace.operations.writing import put_content
from crux_workspace.storage.layout import META_KEY
from crux_workspace.storage.records import Reader

__all__ = [
    "CopyAcross",
    "Places",
    "Plan",
    "commit_across",
    "copy",
    "copy_across",
    "exists_refused",
    "recall_across",
    "rename",
]

_SNAPSHOTS = 3


@dataclass(frozen=True, slots=True)
class Places:
    """Two normalised paths, and which of them were written with a trailing slash."""

    src: str
    dst: str
    src_directory: bool = False
    dst_directory: bool = False


def exists_refused(path: str, what: str = "file") -> PathExistsError:
    """Make the error of a destination that is taken (``ALREADY_EXISTS``)."""
    return PathExistsError(
        f"There is already a {what} at {path}.",
        details={"path": path},
        hint="Pass overwrite=True to replace it; what it held stays in its history."
        if what == "file"
        else None,
    )


async def _commit_entry(
    space: Space,
    verb: str,
    places: Places,
    plan: Plan,
    options: Options,
    overwrite: bool,
) -> WorkspaceEntry:
    """Commit a call whose result is the file or directory at the destination."""

    def remember(built: Built, op: Op) -> None:
        op.path = places.dst
        op.head = built.heads.get(places.dst)
        op.shape = "directory" if op.head is None else "file"

    async def recall(_: Reader, op: Op, sequence: int, at: int) -> WorkspaceEntry:
        path = op.path or places.dst
        if op.head is None:
            return _directory(space, path)
        return space.file(Entry(path, op.head, sequence, at))

    def finish(done: Done) -> WorkspaceEntry:
        if places.dst in done.built.heads:
            return space.file(done.entry(places.dst))
        return _directory(space, places.dst)

    return await space.commit(
        verb,
        (places.src, places.dst),
        plan.plan,
        finish,
        options=options,
        request=[places.src, places.dst, overwrite],
        remember=remember,
        recall=recall,
    )


def _directory(space: Space, path: str) -> WorkspaceDirectory:
    return WorkspaceDirectory(path, space.router.mount_path(path))


class Plan:
    """What rename and copy share: decide whether the source is a file or a directory, and clear the destination."""

    def __init__(self, space: Space, places: Places, overwrite: bool, options: Options) -> None:
        self.space = space
        self.places = places
        self.overwrite = overwrite
        self.options = options
        self.cleared: dict[str, GoneFile] = {}
        """Expired files that the plan clears away, and what a copy at their path goes on with."""

    async def plan(self, tree: LiveTree) -> Changeset | Finished[WorkspaceEntry]:
        """Plan the call on what is there now."""
        raise NotImplementedError

    def refuse_slashes(self) -> None:
        """A file is meant: neither end may be spelt as a directory."""
        if self.places.src_directory:
            raise slash_refused(self.places.src)
        if self.places.dst_directory:
            raise slash_refused(self.places.dst)
        self.space.router.check_file_place(self.places.dst)

    def refuse_directory_version(self) -> None:
        """A directory has no version to expect."""
        if self.options.if_version is not None:
            raise InvalidInputError(
                f"{self.places.src} is a directory and has no version; leave if_version out.",
                details={"path": self.places.src, "option": "if_version"},
            )

    async def source_files(self, tree: LiveTree, *, bodies: bool) -> list[Entry]:
        """Return the live files below the source directory, or say that nothing is there."""
        if self.places.src == "/":
            raise InvalidInputError("The root cannot be moved or copied.", details={"path": "/"})
        below = await tree.below(self.places.src, bodies=bodies)
        live = [entry for entry in below if not entry.is_expired(tree.now)]
        if not live:
            if self.space.router.is_fixed_directory(self.places.src):
                raise not_found(self.places.src, "The directory is empty.")
            raise not_found(self.places.src)
        return live

    def refuse_itself(self) -> None:
        """A directory cannot go into itself."""
        src, dst = self.places.src, self.places.dst
        if is_below(dst, src):
            raise InvalidInputError(
                f"{src} cannot be moved or copied into itself ({dst}).", details={"path": dst}
            )

    async def clear_directory(self, tree: LiveTree, changes: Changeset) -> None:
        """Make sure that the destination directory does not exist and can."""
        src, dst = self.places.src, self.places.dst
        if tree.entry(dst) is not None:
            raise AlreadyExistsError(
                f"{dst} is a file; the directory {src} cannot take its place.",
                code=ErrorCode.PATH_TYPE_CONFLICT,
                details={"path": dst},
            )
        if self.space.router.is_fixed_directory(dst):
            raise exists_refused(dst, "directory")
        if (expired := tree.expired(dst)) is not None:
            changes.expire(expired)
        for above in ancestors(dst):
            if tree.entry(above) is not None:
                raise AlreadyExistsError(
                    f"{dst} cannot become a directory: {above} is a file.",
                    code=ErrorCode.PATH_TYPE_CONFLICT,
                    details={"path": dst, "conflict": above},
                )
            if (late := tree.expired(above)) is not None:
                changes.expire(late)
        self.cleared.clear()
        for entry in await tree.below(dst):
            if not entry.is_expired(tree.now):
                raise exists_refused(dst, "directory")
            self.cleared[entry.path] = changes.expire(entry)

    async def copy_all(
        self, tree: LiveTree, changes: Changeset, pairs: Sequence[tuple[Entry, NewContent]]
    ) -> None:
        """Plan the copies below a destination that was cleared; a deleted file there goes on."""
        targets = [self.moved(entry) for entry, _ in pairs]
        await tree.look(*targets)
        for (entry, content), target in zip(pairs, targets, strict=True):
            check_file_size(self.space.ports, target, content.size)
            gone = self.cleared.get(target) or tree.gone(target)
            draft = copied(entry, target, content)
            file_id = self.space.ports.ids() if gone is None else gone.gone.file_id
            delta = changes.add(FileDelta(file_id=file_id, gone=gone, after=draft))
            if entry.head.pinned is not None:
                draft.pinned = delta.version

    def moved(self, entry: Entry) -> str:
        """Return where a file below the source goes."""
        path = normalise(self.places.dst + entry.path[len(self.places.src) :])
        self.space.router.writable(path)
        self.space.router.check_file_place(path)
        return path


# -- rename


async def rename(
    space: Space, verb: str, places: Places, *, overwrite: bool, options: Options
) -> WorkspaceEntry:
    """Give a file or a directory another path; history, creation time and attributes stay with it."""
    for path in (places.src, places.dst):
        sourced.refuse(space, path, verb)
    if space.router.is_root(places.src):
        raise InvalidInputError(
            f"{places.src} is a mount root and cannot be renamed or moved.",
            details={"path": places.src},
        )
    nested = space.router.roots_below(places.src)
    if nested:
        raise InvalidInputError(
            f"{places.src} holds the mount {nested[0]} and cannot be renamed or moved.",
            details={"path": places.src, "mount": nested[0]},
        )
    plan = _Rename(space, places, overwrite, options)
    return await _commit_entry(space, verb, places, plan, options, overwrite)


class _Rename(Plan):
    async def plan(self, tree: LiveTree) -> Changeset | Finished[WorkspaceEntry]:
        src, dst = self.places.src, self.places.dst
        await tree.look(src, dst)
        entry = tree.entry(src)
        if entry is None and not await tree.has_below(src):
            await check_if_version(tree, src, None, self.options.if_version)
            raise not_found(src)
        if entry is None:
            self.refuse_directory_version()
            return await self.directory(tree)
        self.refuse_slashes()
        await check_if_version(tree, src, entry, self.options.if_version)
        if src == dst:
            return Finished(self.space.file(entry))
        changes = Changeset()
        await self.clear_file(tree, changes)
        draft = Draft.like(entry, path=dst)
        changes.add(FileDelta(file_id=entry.file_id, before=entry, after=draft))
        return changes

    async def clear_file(self, tree: LiveTree, changes: Changeset) -> None:
        dst = self.places.dst
        there = tree.entry(dst)
        if there is None:
            await claim(tree, changes, dst)
            return
        if not self.overwrite:
            raise exists_refused(dst)
        changes.add(FileDelta(file_id=there.file_id, before=there, overwritten=True))

    async def directory(self, tree: LiveTree) -> Changeset | Finished[WorkspaceEntry]:
        if self.places.src == self.places.dst:
            return Finished(_directory(self.space, self.places.src))
        self.refuse_itself()
        changes = Changeset()
        entries = await self.source_files(tree, bodies=False)
        await self.clear_directory(tree, changes)
        for entry in entries:
            self.space.router.writable(entry.path)
            draft = Draft.like(entry, path=self.moved(entry))
            changes.add(FileDelta(file_id=entry.file_id, before=entry, after=draft))
        return changes


# -- copy


async def copy(
    space: Space, places: Places, *, overwrite: bool, options: Options
) -> WorkspaceEntry:
    """Make new files of what is at the source."""
    plan = _Copy(space, places, overwrite, options)
    return await _commit_entry(space, "copy", places, plan, options, overwrite)


class _Copy(Plan):
    async def plan(self, tree: LiveTree) -> Changeset | Finished[WorkspaceEntry]:
        src, dst = self.places.src, self.places.dst
        await tree.look(src, dst, bodies=True)
        entry = tree.entry(src)
        if entry is None and not await tree.has_below(src):
            raise not_found(src)
        if entry is None:
            self.refuse_directory_version()
            return await self.directory(tree)
        self.refuse_slashes()
        there = tree.entry(dst)
        await check_if_version(tree, dst, there, self.options.if_version)
        if there is not None and not self.overwrite:
            raise exists_refused(dst)
        if src == dst:
            return Finished(self.space.file(entry))
        changes = Changeset()
        content = NewContent.again(entry.head, entry.body)
        await plan_copy(self.space, tree, changes, entry, there, dst, content)
        return changes

    async def directory(self, tree: LiveTree) -> Changeset | Finished[WorkspaceEntry]:
        changes = Changeset()
        if self.places.src == self.places.dst:
            raise exists_refused(self.places.dst, "directory")
        self.refuse_itself()
        entries = await self.source_files(tree, bodies=True)
        await self.clear_directory(tree, changes)
        pairs = [(entry, NewContent.again(entry.head, entry.body)) for entry in entries]
        await self.copy_all(tree, changes, pairs)
        return changes


def copied(entry: Entry, path: str, content: NewContent) -> Draft:
    """Plan a copy: attributes are carried, a final one is pinned at its own version by the caller."""
    draft = Draft.like(
        entry, path=path, content=content, operation="copy", restored_from=None, walk=None
    )
    draft.pinned = None
    return draft


async def plan_copy(
    space: Space,
    tree: LiveTree,
    changes: Changeset,
    entry: Entry,
    there: Entry | None,
    dst: str,
    content: NewContent,
) -> None:
    """Plan the copy of one file onto a path that was looked at; a published destination stays published."""
    check_file_size(space.ports, dst, content.size)
    draft = copied(entry, dst, content)
    if there is not None and there.head.pinned is not None:
        draft.status, draft.pinned = "final", there.head.pinned
    delta = await put_content(space, tree, changes, there, draft)
    if entry.head.pinned is not None:
        draft.pinned = delta.version


async def copy_across(
    source: Space, target: Space, places: Places, *, overwrite: bool, options: Options
) -> WorkspaceEntry:
    """Copy to another namespace: the bytes are put again, nothing is shared; one commit there."""
    request = [source.ports.namespace, places.src, places.dst, overwrite]
    recall = recall_across(target, places.dst)
    known = await target.remembered("copy", options=options, request=request, recall=recall)
    if known is not None:
        return known
    entry = await source.reads().find(places.src, bodies=True)
    if entry is not None and places.src_directory:
        raise slash_refused(places.src)
    entries = [entry] if entry is not None else await _files_at_once(source, places.src)
    if not entries:
        raise not_found(places.src)
    contents: list[NewContent] = []

    async def abandon() -> None:
        for content in contents:
            await discard(target.ports, *content.uploads)

    try:
        for found in entries:
            contents.append(await _carried(source, target, found))  # noqa: PERF401 - a failure leaves those before it
    except BaseException:
        await abandon()
        raise
    plan = CopyAcross(target, places, overwrite, options)
    plan.entries, plan.contents, plan.is_file = entries, contents, entry is not None
    return await commit_across(target, plan, request, abandon)


async def _files_at_once(source: Space, path: str) -> list[Entry]:
    """Return the files below a directory as of one commit, inline bytes included.

    Raises:
        ConflictError: What was there then was collected again and again while it was read (``VERSION_CONFLICT``).
    """
    reader = source.ports.reader
    for _ in range(_SNAPSHOTS):
        [record] = await reader.get_many([META_KEY], bodies=False)
        meta = read_meta(record)
        if meta is None:
            return []
        past = PastReads(reader, meta.sequence, source.ports.clock())
        found = [entry async for entry in past.files(path, bodies=True)]
        if not past.expired:
            return found
    raise ConflictError(
        f"{path} keeps changing, and what it held is collected, while it is copied; try again.",
        details={
            "path": path,
            "base_version": None,
            "current_version": None,
            "last_operation": None,
            "last_actor": None,
        },
    )


async def _carried(source: Space, target: Space, entry: Entry) -> NewContent:
    """Put a file's bytes again for another namespace: inline ones as they are, those of assets a chunk at a time."""
    head = entry.head
    content = NewContent.again(head, entry.body)
    if not head.is_inline:
        pieces = stream_parts(source.ports, entry.path, head)
        async with aclosing(pieces):
            upload = await put_asset(target.ports, entry.path, pieces, head.mime_type)
        content.asset, content.uri, content.parts = upload.ref, upload.uri, ()
        content.uploads = (upload,)
    return content


def recall_across(
    target: Space, dst: str
) -> Callable[[Reader, Op, int, int], Awaitable[WorkspaceEntry]]:
    """Make what returns the result of an earlier copy with the same key."""

    async def recall(_: Reader, op: Op, sequence: int, at: int) -> WorkspaceEntry:
        if op.head is None:
            return _directory(target, dst)
        return target.file(Entry(dst, op.head, sequence, at))

    return recall


async def commit_across(
    target: Space,
    plan: CopyAcross,
    request: list[Any],
    abandon: Callable[[], Coroutine[Any, Any, None]],
) -> WorkspaceEntry:
    """Commit copies whose content came from elsewhere and is stored in the target's namespace already."""
    places = plan.places

    def finish(done: Done) -> WorkspaceEntry:
        if plan.is_file:
            return target.file(done.entry(places.dst))
        return _directory(target, places.dst)

    def remember(built: Built, op: Op) -> None:
        op.path, op.head = places.dst, built.heads.get(places.dst)

    return await target.commit(
        "copy",
        (places.dst,),
        plan.plan,
        finish,
        options=plan.options,
        request=request,
        remember=remember,
        recall=recall_across(target, places.dst),
        abandon=abandon,
    )


class CopyAcross(Plan):
    """Copies of files of another namespace, their content stored already."""

    entries: Sequence[Entry] = ()
    contents: Sequence[NewContent] = ()
    is_file = True

    async def plan(self, tree: LiveTree) -> Changeset | Finished[WorkspaceEntry]:
        """Plan the copies onto what is at the destination now."""
        dst = self.places.dst
        await tree.look(dst)
        changes = Changeset()
        if self.is_file:
            self.refuse_slashes()
            there = tree.entry(dst)
            await check_if_version(tree, dst, there, self.options.if_version)
            if there is not None and not self.overwrite:
                raise exists_refused(dst)
            [entry], [content] = self.entries, self.contents
            await plan_copy(self.space, tree, changes, entry, there, dst, content)
            return changes
        self.refuse_directory_version()
        await self.clear_directory(tree, changes)
        pairs = list(zip(self.entries, self.contents, strict=True))
        await self.copy_all(tree, changes, pairs)
        return changes
