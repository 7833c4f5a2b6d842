"""Changing one file's content or attributes, and deleting."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from types import EllipsisType
from typing import Any

from msgspec import Struct

from crux_workspace.engine.changeset import Changeset, Draft, FileDelta, NewContent
from crux_workspace.engine.committer import Finished
from crux_workspace.engine.content import content_value, discard, prepare
from crux_workspace.engine.entry import Entry
from crux_workspace.engine.tree import LiveTree
from crux_workspace.errors import ConflictError, InvalidInputError
from crux_workspace.model.attributes import check_attributes, check_changed_attributes
from crux_workspace.model.files import ContentKind, IfVersion, Status, WorkspaceFile
from crux_workspace.model.jsontext import plain_json
from crux_workspace.model.mime import guess
from crux_workspace.model.options import check_callable, needed_number
from crux_workspace.operations import sourced, sourced_writing
from crux_workspace.operations.space import (
    Options,
    Space,
    check_if_version,
    claim,
    expected_entry,
    needs_recursive,
    not_found,
    slash_refused,
)

__all__ = [
    "deletable",
    "delete",
    "new_version",
    "put_content",
    "set_attributes",
    "update",
    "write",
]

_KINDS: dict[str, ContentKind] = {"t": "text", "j": "json", "b": "binary"}


# -- options


def refuse_unpinning(path: str, entry: Entry | None, status: object) -> None:
    """A published file is unpublished by `withdraw` only."""
    if entry is not None and entry.head.pinned is not None and status != "final":
        raise InvalidInputError(
            f"{path} is published (version {entry.head.pinned} is pinned); its status cannot be set to {status}.",
            details={"path": path, "pinned_version": entry.head.pinned},
            hint="Call withdraw first.",
        )


# -- write


async def write(
    space: Space,
    path: str,
    content: Any,  # noqa: ANN401 - whatever a caller hands over
    *,
    mime_type: str | None,
    metadata: dict[str, Any] | None,
    status: Status | None,
    kind: str | None,
    encoding: str | None,
    options: Options,
) -> WorkspaceFile:
    """Create or replace a file."""
    check_attributes(mime_type=mime_type, metadata=metadata, status=status, kind=kind)
    metadata = None if metadata is None else plain_json(metadata)
    if (source := sourced.mutable(space, path, options, "write")) is not None:
        return await sourced_writing.write(
            source,
            path,
            await sourced_writing.plain_content(path, content, encoding),
            operation="write",
            mime_type=mime_type,
            metadata=metadata,
            status=status,
            kind=kind,
        )
    ports = space.ports
    guessed = mime_type or guess(path, "text")
    prepared = await prepare(ports, path, content, mime_type=guessed, encoding=encoding)
    is_text = prepared.content.kind == "t"
    mime = guessed if is_text or mime_type else guess(path, _KINDS[prepared.content.kind])
    produced = ports.provenance() if status is not None or kind is not None else None

    work = _Write(
        space, path, prepared.content, mime, metadata, status, kind, produced, options.if_version
    )
    return await space.commit_file(
        "write",
        path,
        work.plan,
        options=options,
        request=[prepared.digest, mime_type, metadata, status, kind]
        if options.idempotency_key is not None
        else [],
        abandon=work.abandon,
    )


class _Write(Struct, gc=False):
    """A write that is to be planned: one object, where a closure would keep a cell for each of its names."""

    space: Space
    path: str
    content: NewContent
    mime_type: str
    metadata: dict[str, Any] | None
    status: Status | None
    kind: str | None
    produced_by: dict[str, Any] | None
    if_version: IfVersion

    async def plan(self, tree: LiveTree) -> Changeset:
        path, status, kind = self.path, self.status, self.kind
        await tree.look(path)
        entry = tree.entry(path)
        if self.if_version is not None:
            await check_if_version(tree, path, entry, self.if_version)
        if status is not None:
            refuse_unpinning(path, entry, status)
        changes = Changeset()
        draft = Draft(
            path=path, content=self.content, mime_type=self.mime_type, metadata=self.metadata
        )
        if entry is None:
            draft.status, draft.artifact_kind = status, kind
            draft.produced_by = self.produced_by
        else:
            head = entry.head
            draft.status = status or head.status
            draft.artifact_kind = head.artifact_kind if kind is None else kind
            draft.produced_by = self.produced_by or head.produced_by
            draft.pinned = head.pinned
        delta = await put_content(self.space, tree, changes, entry, draft)
        if status == "final":
            draft.pinned = delta.version
        return changes

    def abandon(self) -> Coroutine[Any, Any, None]:
        return discard(self.space.ports, *self.content.uploads)


async def put_content(
    space: Space, tree: LiveTree, changes: Changeset, entry: Entry | None, draft: Draft
) -> FileDelta:
    """Plan a new version at a path: of the live file, of the deleted one, or of a new file."""
    if entry is not None:
        return changes.add(FileDelta(file_id=entry.file_id, before=entry, after=draft))
    gone = await claim(tree, changes, draft.path)
    file_id = space.ports.ids() if gone is None else gone.gone.file_id
    return changes.add(FileDelta(file_id=file_id, gone=gone, after=draft))


# -- update


async def update(
    space: Space,
    path: str,
    change: Callable[[Any], Any],
    *,
    max_attempts: int,
    options: Options,
) -> WorkspaceFile:
    """Read, change, write; again when somebody else was faster."""
    sourced.refuse(space, path, "update")
    needed_number("max_attempts", max_attempts)
    check_callable("fn", change)
    known = await space.remembered_file("update", path, options=options, request=[])
    if known is not None:
        return known
    for attempt in range(1, max_attempts + 1):
        reads = space.reads()
        entry = await reads.find(path, bodies=True)
        tree = LiveTree(space.ports.reader, space.ports.clock())
        await check_if_version(tree, path, entry, options.if_version)
        if entry is None:
            raise not_found(path)
        value = await content_value(space.ports, path, entry.head, entry.body)
        new = change(value)
        if inspect.isawaitable(new):
            new = await new
        try:
            return await _replace(space, path, entry, new, options)
        except ConflictError:
            if attempt == max_attempts:
                raise
    raise AssertionError("unreachable")


def new_version(
    entry: Entry, content: NewContent, operation: str, mime_type: str | None
) -> Changeset:
    """Plan the next version of a live file; what it carries besides content stays."""
    draft = Draft.like(entry, content=content, operation=operation, restored_from=None, walk=None)
    draft.mime_type = mime_type or draft.mime_type
    return Changeset([FileDelta(file_id=entry.file_id, before=entry, after=draft)])


async def _replace(
    space: Space,
    path: str,
    seen: Entry,
    new: Any,  # noqa: ANN401 - whatever the function returned
    options: Options,
) -> WorkspaceFile:
    ports = space.ports
    expected = space.file(seen)
    prepared = await prepare(ports, path, new, mime_type=seen.head.mime_type)

    async def plan(tree: LiveTree) -> Changeset:
        await tree.look(path, ways=False)
        entry = tree.entry(path)
        await check_if_version(tree, path, entry, options.if_version)
        await check_if_version(tree, path, entry, expected)
        assert entry is not None
        return new_version(entry, prepared.content, "write", None)

    return await space.commit_file(
        "update",
        path,
        plan,
        options=options,
        request=[],
        abandon=lambda: discard(ports, *prepared.content.uploads),
    )


# -- attributes


async def set_attributes(
    space: Space,
    path: str,
    *,
    mime_type: str | EllipsisType,
    metadata: dict[str, Any] | EllipsisType | None,
    status: Status | EllipsisType | None,
    kind: str | EllipsisType | None,
    options: Options,
) -> WorkspaceFile:
    """Change attributes only: no version is appended."""
    sourced.refuse(space, path, "set")
    given: dict[str, Any] = {
        name: value
        for name, value in (
            ("mime_type", mime_type),
            ("metadata", metadata),
            ("status", status),
            ("kind", kind),
        )
        if value is not ...
    }
    check_changed_attributes(given)
    if given.get("metadata") is not None:
        given["metadata"] = plain_json(given["metadata"])
    produced = space.ports.provenance() if {"status", "kind"} & given.keys() else None

    async def plan(tree: LiveTree) -> Changeset | Finished[WorkspaceFile]:
        await tree.look(path, ways=False)
        entry = await expected_entry(tree, path, options)
        if "status" in given:
            refuse_unpinning(path, entry, status)
        draft = Draft.like(entry)
        draft.mime_type = given.get("mime_type", draft.mime_type)
        draft.metadata = given.get("metadata", draft.metadata)
        draft.status = given.get("status", draft.status)
        draft.artifact_kind = given.get("kind", draft.artifact_kind)
        if status == "final":
            draft.pinned = entry.version
        if draft == Draft.like(entry):
            return Finished(space.file(entry))
        draft.produced_by = produced or draft.produced_by
        return Changeset([FileDelta(file_id=entry.file_id, before=entry, after=draft)])

    return await space.commit_file(
        "set",
        path,
        plan,
        options=options,
        request=[sorted(given), [given[name] for name in sorted(given)]],
    )


# -- delete


async def delete(
    space: Space, path: str, *, directory: bool, recursive: bool, options: Options
) -> None:
    """Delete a file, or with `recursive` everything below a directory; what is not there is no error."""
    if (source := sourced.mutable(space, path, options, "delete")) is not None:
        await sourced_writing.delete(source, path, recursive=recursive, directory=directory)
        return
    if directory and not recursive:
        raise needs_recursive(path)

    async def plan(tree: LiveTree) -> Changeset | Finished[None]:
        await tree.look(path, ways=False)
        changes = Changeset()
        entry = await deletable(tree, path, options, directory=directory)
        if entry is not None:
            changes.add(FileDelta(file_id=entry.file_id, before=entry))
            return changes
        if recursive:
            for below in await tree.below(path):
                space.router.writable(below.path)
                changes.expire(below)
        elif space.router.is_fixed_directory(path) or await tree.has_below(path):
            raise needs_recursive(path)
        return changes if changes.deltas else Finished(None)

    await space.commit(
        "delete",
        (path,),
        plan,
        lambda _: None,
        options=options,
        request=[path, recursive],
    )


async def deletable(
    tree: LiveTree, path: str, options: Options, *, directory: bool
) -> Entry | None:
    """Return the live file that is to go, at the version that the caller expects; a directory has no version to expect."""
    entry = None if path == "/" else tree.entry(path)
    if directory and entry is not None:
        raise slash_refused(path)
    if options.if_version is not None and entry is None and await tree.has_below(path):
        raise InvalidInputError(
            f"{path} is a directory and has no version; leave if_version out.",
            details={"path": path, "option": "if_version"},
        )
    await check_if_version(tree, path, entry, options.if_version)
    return entry
