"""Copies out of sources into files kept here, each remembering what it was copied from, and copies into sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crux_workspace.engine.changeset import Changeset, Draft, FileDelta, NewContent
from crux_workspace.engine.committer import Finished
from crux_workspace.engine.content import content_value, discard, prepare
from crux_workspace.engine.tree import LiveTree
from crux_workspace.errors import PathExistsError
from crux_workspace.model.contents import BinaryContent, Content
from crux_workspace.model.files import Status, WorkspaceDirectory, WorkspaceEntry, WorkspaceFile
from crux_workspace.model.paths import normalise
from crux_workspace.mounts.calling import unsupported
from crux_workspace.mounts.checking import revision_of
from crux_workspace.mounts.source_tree import SourceTree
from crux_workspace.operations import sourced, sourced_writing
from crux_workspace.operations.relocating import (
    CopyAcross,
    Places,
    commit_across,
    exists_refused,
    recall_across,
)
from crux_workspace.operations.space import (
    Options,
    Space,
    check_if_version,
    not_found,
    slash_refused,
)
from crux_workspace.operations.writing import put_content

__all__ = ["copy_in", "copy_out"]


@dataclass(slots=True)
class _Fetched:
    """A file of a source, stored and ready to be planned with."""

    content: Content
    stored: NewContent
    produced_by: dict[str, Any]

    def draft(self, path: str) -> Draft:
        """Plan it as a file at a path."""
        return Draft(
            path=path,
            content=self.stored,
            operation="copy",
            mime_type=self.content.mime_type,
            metadata=self.content.metadata,
            status=self.content.status,
            artifact_kind=self.content.artifact_kind,
            produced_by=self.produced_by,
        )


async def copy_in(
    source: SourceTree,
    space: Space,
    places: Places,
    *,
    overwrite: bool,
    options: Options,
) -> WorkspaceEntry:
    """Copy a file, or everything below a directory, out of a source; one commit. `produced_by` names source and revision.

    Raises:
        StorageError: The source failed, or gives only a part (``SOURCE_INVALID``).
        UnsupportedError: It is binary and the source has no bytes to give (``SOURCE_UNSUPPORTED``).
    """
    request = ["source", places.src, overwrite]
    known = await space.remembered(
        "copy",
        options=options,
        request=[places.dst, *request],
        recall=recall_across(space, places.dst),
    )
    if known is not None:
        return known
    content = None if places.src == source.mount.path else await source.whole(places.src)
    if content is None:
        return await _directory_in(source, space, places, overwrite=overwrite, options=options)
    if places.src_directory:
        raise slash_refused(places.src)
    if places.dst_directory:
        raise slash_refused(places.dst)
    space.router.check_file_place(places.dst)
    fetched = await _fetch(source, space, content, places.dst)

    async def plan(tree: LiveTree) -> Changeset | Finished[WorkspaceFile]:
        await tree.look(places.dst)
        there = tree.entry(places.dst)
        await check_if_version(tree, places.dst, there, options.if_version)
        if there is not None and not overwrite:
            raise exists_refused(places.dst)
        changes = Changeset()
        draft = fetched.draft(places.dst)
        if there is not None and there.head.pinned is not None:
            draft.status, draft.pinned = "final", there.head.pinned
        delta = await put_content(space, tree, changes, there, draft)
        if content.status == "final":
            draft.pinned = delta.version
        return changes

    return await space.commit_file(
        "copy",
        places.dst,
        plan,
        options=options,
        request=request,
        abandon=lambda: discard(space.ports, *fetched.stored.uploads),
    )


async def _fetch(source: SourceTree, space: Space, content: Content, dst: str) -> _Fetched:
    value: Any = content.path
    if isinstance(content, BinaryContent):
        source.require("read_bytes", f"copying the binary file {content.path}")
        value = await source.stream(content.path)
        if value is None:
            raise not_found(content.path)
    else:
        value = content.content
    prepared = await prepare(space.ports, dst, value, mime_type=content.mime_type)
    revision = revision_of(content) or f"sha256:{prepared.content.sha256}"
    produced = space.ports.provenance() or {"run_id": None, "span_id": None}
    return _Fetched(
        content, prepared.content, {**produced, "sources": [f"{content.path}@{revision}"]}
    )


async def _directory_in(
    source: SourceTree, space: Space, places: Places, *, overwrite: bool, options: Options
) -> WorkspaceEntry:
    files = (await source.collect(places.src)).complete()
    if not files:
        raise not_found(places.src)
    fetched: list[_Fetched] = []

    async def abandon() -> None:
        for item in fetched:
            await discard(space.ports, *item.stored.uploads)

    plan = _CopyIn(space, places, overwrite, options)
    try:
        paths = [file.path for file in files]
        async for content in source.texts(paths):
            item = await _fetch(source, space, content, plan.target(content.path))
            fetched.append(item)
    except BaseException:
        await abandon()
        raise
    plan.fetched, plan.is_file = fetched, False
    request = [places.dst, "source", places.src, overwrite]
    return await commit_across(space, plan, request, abandon)


class _CopyIn(CopyAcross):
    fetched: Sequence[_Fetched] = ()

    def target(self, path: str) -> str:
        """Return where a file of the source goes."""
        target = normalise(self.places.dst + path[len(self.places.src) :])
        self.space.router.writable(target)
        self.space.router.check_file_place(target)
        return target

    async def plan(self, tree: LiveTree) -> Changeset | Finished[WorkspaceEntry]:
        await tree.look(self.places.dst)
        changes = Changeset()
        self.refuse_directory_version()
        await self.clear_directory(tree, changes)
        targets = [self.target(item.content.path) for item in self.fetched]
        await tree.look(*targets)
        for item, target in zip(self.fetched, targets, strict=True):
            gone = self.cleared.get(target) or tree.gone(target)
            draft = item.draft(target)
            file_id = self.space.ports.ids() if gone is None else gone.gone.file_id
            delta = changes.add(FileDelta(file_id=file_id, gone=gone, after=draft))
            if item.content.status == "final":
                draft.pinned = delta.version
        return changes


# -- into a source


async def copy_out(
    space: Space, target: SourceTree, places: Places, *, overwrite: bool
) -> WorkspaceEntry:
    """Copy a file into a source whose provider opted into writes.

    Raises:
        PathExistsError: The provider has a file there (``ALREADY_EXISTS``).
        UnsupportedError: The provider does not write, or a directory is meant (``SOURCE_UNSUPPORTED``).
    """
    target.require("write", "writes")
    for path, is_directory in (
        (places.src, places.src_directory),
        (places.dst, places.dst_directory),
    ):
        if is_directory:
            raise slash_refused(path)
    value, attributes = await _outgoing(space, target, places.src)
    if await target.has_file(places.dst):
        if not overwrite:
            raise PathExistsError(
                f"There is already a file at {places.dst}.",
                details={"path": places.dst},
                hint="Pass overwrite=True to replace it; a source keeps no history of it.",
            )
        if places.src == places.dst:
            return await target.stat(places.dst) or WorkspaceDirectory(
                places.dst, target.mount.path
            )
    return await sourced_writing.write(target, places.dst, value, operation="copy", **attributes)


async def _outgoing(space: Space, target: SourceTree, src: str) -> tuple[object, dict[str, Any]]:
    """Return a file's content and the attributes that go with it."""
    origin = space.router.source(src)
    if origin is not None:
        content = await sourced.whole(origin, src)
        value: object = (
            await sourced.read_bytes(origin, src, None)
            if isinstance(content, BinaryContent)
            else content.content
        )
        return value, _attributes(
            content.mime_type, content.metadata, content.status, content.artifact_kind
        )
    reads = space.reads()
    entry = await reads.find(src, bodies=True)
    if entry is None:
        if await reads.has_below(src):
            raise unsupported(target.mount, "copies of directories", "Copy its files one by one.")
        raise not_found(src)
    value = await content_value(space.ports, src, entry.head, entry.body)
    head = entry.head
    return value, _attributes(head.mime_type, head.metadata, head.status, head.artifact_kind)


def _attributes(
    mime_type: str, metadata: dict[str, Any] | None, status: Status | None, kind: str | None
) -> dict[str, Any]:
    return {"mime_type": mime_type, "metadata": metadata, "status": status, "kind": kind}
