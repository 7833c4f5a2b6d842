"""Changing a text by a function of what is there: edit and append."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crux_workspace.engine.changeset import Changeset, Draft, NewContent
from crux_workspace.engine.committer import Finished, Stale
from crux_workspace.engine.content import (
    Prepared,
    discard,
    inline_text,
    load_text,
    off_loop,
    prepare_text,
    text_of,
)
from crux_workspace.engine.entry import Entry
from crux_workspace.engine.extending import extended
from crux_workspace.engine.measuring import check_file_size
from crux_workspace.engine.tree import LiveTree
from crux_workspace.errors import ErrorCode, InvalidInputError
from crux_workspace.model.attributes import check_attributes
from crux_workspace.model.edits import Edit, apply_edits, check_edits
from crux_workspace.model.files import WorkspaceFile
from crux_workspace.model.mime import guess
from crux_workspace.model.streams import utf8
from crux_workspace.operations import sourced, sourced_writing
from crux_workspace.operations.reading import binary_refused
from crux_workspace.operations.space import Options, Space, check_if_version, expected_entry
from crux_workspace.operations.writing import new_version, put_content

__all__ = ["append", "edit"]


class Rewrite:
    """Text changed by a function of what is there: inside the plan while it is small, prepared outside when it is not."""

    def __init__(
        self, space: Space, path: str, change: Callable[[str], str], mime_type: str | None
    ) -> None:
        self.space = space
        self.path = path
        self.change = change
        self.mime_type = mime_type
        self.ready: tuple[str, int, Prepared] | None = None
        self.always = False
        """Whether a change to the same text is a version of its own."""

    def content(self, entry: Entry | None) -> NewContent | None:
        """Return the new content for a head that was read with its body; None when the change changes nothing.

        Raises:
            Stale: It has to be prepared for this head first.
        """
        base = ("", 0) if entry is None else (entry.file_id, entry.version)
        if self.ready is not None and self.ready[:2] == base:
            return self.ready[2].content
        if entry is not None and not entry.head.is_inline:
            raise Stale(self.path, entry)
        old = "" if entry is None else text_of(self.path, entry.head, entry.body)
        new = self.change(old)
        if entry is not None and new == old and not self.always:
            return None
        data = utf8(self.path, new)
        check_file_size(self.space.ports, self.path, len(data))
        if len(data) > self.space.ports.content.inline_text_below_bytes:
            raise Stale(self.path, entry)
        return inline_text(new, data)

    async def prepare(self, stale: Stale) -> None:
        """Read the whole text that the plan saw, change it, and upload the result."""
        await self.abandon()
        entry = stale.seen
        mime = self.mime_type or (
            guess(self.path, "text") if entry is None else entry.head.mime_type
        )
        prepared = await self.prepared(entry, mime)
        base = ("", 0) if entry is None else (entry.file_id, entry.version)
        self.ready = (*base, prepared)

    async def prepared(self, entry: Entry | None, mime_type: str) -> Prepared:
        """Make the new content of a file as it is."""
        ports = self.space.ports
        old = ""
        if entry is not None:
            old = await load_text(ports, self.path, entry.head, entry.body)
        new = await off_loop(len(old), lambda: self.change(old))
        return await prepare_text(ports, self.path, new, mime_type=mime_type)

    async def abandon(self) -> None:
        """Delete an upload that no commit refers to."""
        if self.ready is not None:
            await discard(self.space.ports, *self.ready[2].content.uploads)
            self.ready = None


async def edit(
    space: Space,
    path: str,
    edits: Sequence[Edit],
    *,
    mime_type: str | None,
    options: Options,
) -> WorkspaceFile:
    """Replace parts of a text file."""
    check_attributes(mime_type=mime_type)
    check_edits(edits)
    if (source := sourced.mutable(space, path, options, "edit")) is not None:
        return await sourced_writing.edit(source, path, edits, mime_type=mime_type)
    rewrite = Rewrite(space, path, lambda text: apply_edits(text, edits), mime_type)

    async def plan(tree: LiveTree) -> Changeset | Finished[WorkspaceFile]:
        await tree.look(path, bodies=True, ways=False)
        entry = await expected_entry(tree, path, options)
        refuse_rewrite(path, entry, "edited")
        content = rewrite.content(entry)
        if content is None or content.sha256 == entry.head.sha256:
            return Finished(space.file(entry))
        return new_version(entry, content, "edit", mime_type)

    return await space.commit_file(
        "edit",
        path,
        plan,
        options=options,
        request=[[[e.find, e.replace, e.occurrence, e.replace_all] for e in edits], mime_type],
        prepare=rewrite.prepare,
        abandon=rewrite.abandon,
    )


def refuse_rewrite(path: str, entry: Entry, verb: str) -> None:
    """Only text is edited and appended to."""
    if entry.head.kind == "b":
        raise binary_refused(path, f"cannot be {verb}")
    if entry.head.kind == "j":
        raise InvalidInputError(
            f"{path} holds a JSON value and cannot be {verb} as text.",
            code=ErrorCode.INVALID_CONTENT,
            details={"path": path},
            hint="Read it with read_json, change the value and write it, or use update.",
        )


class _Addition(Rewrite):
    """Text added at the end; what is in the asset store stays there and gets another part."""

    def __init__(self, space: Space, path: str, text: str, mime_type: str | None) -> None:
        super().__init__(space, path, lambda old: old + text, mime_type)
        self.text = text
        self.always = True

    async def prepared(self, entry: Entry | None, mime_type: str) -> Prepared:
        """Upload the added text alone where it can be."""
        small = self.space.ports.content.inline_text_below_bytes
        if entry is None or entry.head.is_inline:
            return await super().prepared(entry, mime_type)
        if entry.head.size + len(self.text.encode()) <= small:
            return await super().prepared(entry, mime_type)
        return await extended(self.space.ports, self.path, entry.head, self.text, mime_type)


async def append(
    space: Space, path: str, text: str, *, mime_type: str | None, options: Options
) -> WorkspaceFile:
    """Add text at the end of a file, or create it."""
    check_attributes(mime_type=mime_type)
    given: object = text
    if not isinstance(given, str):
        raise InvalidInputError(
            f"Only text can be appended, got {type(given).__name__}.",
            code=ErrorCode.INVALID_CONTENT,
            details={"path": path},
        )
    utf8(path, text)
    if (source := sourced.mutable(space, path, options, "append")) is not None:
        return await sourced_writing.append(source, path, text, mime_type=mime_type)
    rewrite = _Addition(space, path, text, mime_type)

    async def plan(tree: LiveTree) -> Changeset:
        await tree.look(path, bodies=True)
        entry = tree.entry(path)
        await check_if_version(tree, path, entry, options.if_version)
        if entry is not None:
            refuse_rewrite(path, entry, "appended to")
            content = rewrite.content(entry)
            assert content is not None
            return new_version(entry, content, "append", mime_type)
        content = rewrite.content(None)
        assert content is not None
        changes = Changeset()
        draft = Draft(
            path=path,
            content=content,
            operation="append",
            mime_type=mime_type or guess(path, "text"),
        )
        await put_content(space, tree, changes, None, draft)
        return changes

    return await space.commit_file(
        "append",
        path,
        plan,
        options=options,
        request=[text, mime_type],
        prepare=rewrite.prepare,
        abandon=rewrite.abandon,
    )
