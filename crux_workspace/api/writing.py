"""The methods that change files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import EllipsisType
from typing import Any

from crux_workspace.api.reading import ReadMethods
from crux_workspace.model.contents import WritableContent
from crux_workspace.model.edits import Edit, edits_of
from crux_workspace.model.files import IfVersion, Status, WorkspaceEntry, WorkspaceFile
from crux_workspace.model.options import check_flags
from crux_workspace.model.paths import (
    PathLike,
    check_namespace,
    normalise_directory_hint,
    normalise_file,
)
from crux_workspace.operations import copying, editing, purging, relocating, sourced, writing
from crux_workspace.operations.relocating import Places
from crux_workspace.operations.space import Options, Space

__all__ = ["WriteMethods", "writable_file"]


class WriteMethods(ReadMethods):
    """Writing, editing, moving and deleting files."""

    async def write(
        self,
        path: PathLike,
        content: WritableContent,
        *,
        mime_type: str | None = None,
        metadata: dict[str, Any] | None = None,
        status: Status | None = None,
        kind: str | None = None,
        encoding: str | None = None,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceFile:
        """Create or replace a file; always appends a version.

        One commit: the whole file is there or nothing changed. Without `if_version` it never fails because somebody else wrote
        meanwhile. Metadata is replaced and the MIME type guessed anew; status, kind and pin stay.

        Args:
            path: Where the file is to be.
            content: ``str`` is text; bytes, a binary file object or an async iterator of bytes is binary; any other JSON value is
                JSON. Streams use constant memory.
            mime_type: None guesses it from the name, else from the content's kind.
            metadata: JSON object kept with the version; None removes it.
            status: ``final`` publishes and pins what is written, ``draft`` makes an artifact; None keeps it.
            kind: What sort of artifact it is; None keeps it.
            encoding: ``utf-8`` takes bytes for text, strictly.
            if_version: The head must be this version (0: no file), or this very file and version.
            idempotency_key: A second call with this key returns the first result; kept 24 h.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The file as the commit left it.

        Raises:
            InvalidPathError: The path can name no file (``INVALID_PATH``).
            InvalidInputError: It is no content, or a bad option (``INVALID_CONTENT``, ``INVALID_ARGUMENT``).
            ConflictError: The head is not the expected one (``VERSION_CONFLICT``).
            AlreadyExistsError: A directory is there, or a file above (``PATH_TYPE_CONFLICT``).
            AccessDeniedError: Outside all mounts, or on a read-only one (``OUTSIDE_MOUNTS``, ``READ_ONLY_MOUNT``).
            LimitExceededError: A limit refuses it (``FILE_TOO_LARGE``, ``QUOTA_EXCEEDED``).
            StateError: It needs an asset store and there is none (``ASSET_STORE_REQUIRED``).
            UnsupportedError: A source-backed mount whose provider does not do that (``SOURCE_UNSUPPORTED``).

        Cost:
            1 read, 1 commit

        Example:
            >>> (await ws.write("/workspace/a.md", "one")).version
            1
        """
        call = partial(
            _write,
            path,
            content,
            mime_type=mime_type,
            metadata=metadata,
            status=status,
            kind=kind,
            encoding=encoding,
            options=Options(idempotency_key, if_version),
        )
        return await self._runner.run("write", path, namespace, call)

    async def edit(
        self,
        path: PathLike,
        find: str | None = None,
        replace: str | None = None,
        *,
        occurrence: int | None = None,
        replace_all: bool = False,
        edits: Sequence[Edit] | None = None,
        mime_type: str | None = None,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceFile:
        r"""Replace exact text; nothing in it is a pattern.

        Edits of one file by several callers all land or raise; none is lost. An edit that changes nothing writes nothing.

        Args:
            path: A text file.
            find: The text to replace; it must occur exactly once unless `occurrence` or `replace_all` says which.
            replace: What to put there; empty removes.
            occurrence: Which hit, from 1, overlapping ones counted.
            replace_all: Every hit, left to right.
            edits: Several edits instead, applied in order, all or none.
            mime_type: None keeps it.
            if_version: The head must be this version, or this very file and version.
            idempotency_key: A second call with this key returns the first result; kept 24 h.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The file after the edit.

        Raises:
            EditError: The text is not there, or more than once; details and hint say where (``EDIT_NOT_FOUND``, ``EDIT_AMBIGUOUS``).
            PathNotFoundError: There is no such file (``FILE_NOT_FOUND``).
            InvalidInputError: JSON, or a bad option (``INVALID_CONTENT``, ``INVALID_ARGUMENT``).
            BinaryContentError: The content is binary (``BINARY_CONTENT``).
            ConflictError: The head is not the expected one (``VERSION_CONFLICT``).
            UnsupportedError: A source-backed mount whose provider does not do that (``SOURCE_UNSUPPORTED``).

        Cost:
            1 read, 1 commit

        Example:
            >>> await ws.write("/workspace/a.md", "draft"); (await ws.edit("/workspace/a.md", "draft", "final")).version
            2
        """

        def call(space: Space) -> Awaitable[WorkspaceFile]:
            return editing.edit(
                space,
                writable_file(space, path),
                edits_of(find, replace, occurrence, replace_all, edits),
                mime_type=mime_type,
                options=Options(idempotency_key, if_version),
            )

        return await self._runner.run("edit", path, namespace, call)

    async def append(
        self,
        path: PathLike,
        text: str,
        *,
        mime_type: str | None = None,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceFile:
        r"""Add text at the end of a text file, or create it.

        Appends of several callers all land or raise; none is lost. What is in the asset store already stays there: only `text` is
        stored, as one more part of the content. The first append of a process to such a text reads it once, a chunk at a time, for
        its hash.

        Args:
            path: A text file.
            text: What to add, as it is: no line end is made up.
            mime_type: None keeps it, or guesses it for a new file.
            if_version: The head must be this version (0: no file), or this very file and version.
            idempotency_key: A second call with this key returns the first result; kept 24 h.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The file after the append.

        Raises:
            InvalidInputError: The file holds JSON, or `text` is none (``INVALID_CONTENT``).
            BinaryContentError: The content is binary (``BINARY_CONTENT``).
            ConflictError: The head is not the expected one (``VERSION_CONFLICT``).
            LimitExceededError: The file or the namespace would be too large (``FILE_TOO_LARGE``, ``QUOTA_EXCEEDED``).
            StorageError: The bytes are gone or damaged (``ASSET_MISSING``, ``RECORD_CORRUPT``).
            UnsupportedError: A source-backed mount whose provider does not do that (``SOURCE_UNSUPPORTED``).

        Cost:
            1 read, 1 commit

        Example:
            >>> (await ws.append("/workspace/log.txt", "started\n")).size
            8
        """

        def call(space: Space) -> Awaitable[WorkspaceFile]:
            return editing.append(
                space,
                writable_file(space, path),
                text,
                mime_type=mime_type,
                options=Options(idempotency_key, if_version),
            )

        return await self._runner.run("append", path, namespace, call)

    async def update(
        self,
        path: PathLike,
        fn: Callable[[Any], Any] | Callable[[Any], Awaitable[Any]],
        *,
        max_attempts: int = 5,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceFile:
        """Read a file's value, change it with a function, and write it back; again when somebody else was faster.

        Args:
            path: A file; MIME type, metadata, status and kind stay.
            fn: Gets the value (text, JSON value or bytes) and returns the new one; sync or async, may be called several times.
            max_attempts: How often to try.
            if_version: The head must be this version, or this very file and version.
            idempotency_key: A second call with this key returns the first result; kept 24 h.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The file after the update.

        Raises:
            PathNotFoundError: There is no such file (``FILE_NOT_FOUND``).
            ConflictError: Somebody else was faster each time (``VERSION_CONFLICT``).
            UnsupportedError: On a source-backed mount (``SOURCE_UNSUPPORTED``).

        Cost:
            2 reads, 1 commit

        Example:
            >>> await ws.write("/workspace/n.json", {"n": 1})
            >>> (await ws.update("/workspace/n.json", lambda value: {"n": value["n"] + 1})).version
            2
        """

        def call(space: Space) -> Awaitable[WorkspaceFile]:
            return writing.update(
                space,
                writable_file(space, path),
                fn,
                max_attempts=max_attempts,
                options=Options(idempotency_key, if_version),
            )

        return await self._runner.run("update", path, namespace, call)

    async def set(
        self,
        path: PathLike,
        *,
        mime_type: str | EllipsisType = ...,
        metadata: dict[str, Any] | EllipsisType | None = ...,
        status: Status | EllipsisType | None = ...,
        kind: str | EllipsisType | None = ...,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceFile:
        """Change attributes only: a commit and an update event, but no version.

        Args:
            path: A file.
            mime_type: New MIME type; left out, it stays.
            metadata: New metadata, None removes it; left out, it stays.
            status: ``final`` pins the current version; left out, it stays.
            kind: New kind of artifact, None removes it; left out, it stays.
            if_version: The head must be this version, or this very file and version.
            idempotency_key: A second call with this key returns the first result; kept 24 h.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The file with its new attributes.

        Raises:
            PathNotFoundError: There is no such file (``FILE_NOT_FOUND``).
            InvalidInputError: A bad value, or a published file's status (``INVALID_ARGUMENT``).
            ConflictError: The head is not the expected one (``VERSION_CONFLICT``).
            UnsupportedError: On a source-backed mount (``SOURCE_UNSUPPORTED``).

        Cost:
            1 read, 1 commit

        Example:
            >>> (await ws.set("/workspace/notes.md", metadata={"topic": "x"})).version
            1
        """

        def call(space: Space) -> Awaitable[WorkspaceFile]:
            return writing.set_attributes(
                space,
                writable_file(space, path),
                mime_type=mime_type,
                metadata=metadata,
                status=status,
                kind=kind,
                options=Options(idempotency_key, if_version),
            )

        return await self._runner.run("set", path, namespace, call)

    async def rename(
        self,
        src: PathLike,
        dst: PathLike,
        *,
        overwrite: bool = False,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceEntry:
        """Give a file or a directory another path.

        One commit, whatever is below a directory. History, creation time and attributes stay with the file. The same path is no
        change. What is overwritten stays recoverable.

        Args:
            src: A file or a directory.
            dst: Its new path.
            overwrite: Replace a file that is there.
            if_version: The source must be at this version, or be this very file and version.
            idempotency_key: A second call with this key returns the first result; kept 24 h.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The file or directory at its new path.

        Raises:
            PathNotFoundError: There is nothing at the source (``FILE_NOT_FOUND``).
            PathExistsError: The destination exists (``ALREADY_EXISTS``).
            AlreadyExistsError: File and directory would meet (``PATH_TYPE_CONFLICT``).
            InvalidInputError: A directory into itself, a mount root, or `if_version` with a directory (``INVALID_ARGUMENT``).
            ConflictError: The source is not the expected one (``VERSION_CONFLICT``).
            UnsupportedError: On a source-backed mount (``SOURCE_UNSUPPORTED``).

        Cost:
            1 read, 1 commit

        Example:
            >>> (await ws.rename("/workspace/notes.md", "/outputs/notes.md")).path
            '/outputs/notes.md'
        """
        return await self._relocate(
            "rename", src, dst, overwrite, Options(idempotency_key, if_version), namespace
        )

    async def move(
        self,
        src: PathLike,
        dst: PathLike,
        *,
        overwrite: bool = False,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceEntry:
        """Do the same as `rename`, under the name that callers of file systems expect.

        Args:
            src: A file or a directory.
            dst: Its new path.
            overwrite: Replace a file that is there.
            if_version: The source must be at this version, or be this very file and version.
            idempotency_key: A second call with this key returns the first result; kept 24 h.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The file or directory at its new path.

        Raises:
            PathNotFoundError: There is nothing at the source (``FILE_NOT_FOUND``).
            PathExistsError: The destination exists (``ALREADY_EXISTS``).
            UnsupportedError: On a source-backed mount (``SOURCE_UNSUPPORTED``).

        Cost:
            1 read, 1 commit

        Example:
            >>> (await ws.move("/workspace/notes.md", "/outputs/notes.md")).path
            '/outputs/notes.md'
        """
        return await self._relocate(
            "move", src, dst, overwrite, Options(idempotency_key, if_version), namespace
        )

    async def _relocate(
        self,
        verb: str,
        src: PathLike,
        dst: PathLike,
        overwrite: bool,
        options: Options,
        namespace: str | None,
    ) -> WorkspaceEntry:
        def call(space: Space) -> Awaitable[WorkspaceEntry]:
            check_flags(overwrite=overwrite)
            places = _places(src, dst)
            space.router.writable(places.src)
            space.router.writable(places.dst)
            return relocating.rename(space, verb, places, overwrite=overwrite, options=options)

        return await self._runner.run(verb, src, namespace, call)

    async def copy(
        self,
        src: PathLike,
        dst: PathLike,
        *,
        overwrite: bool = False,
        to_namespace: str | None = None,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceEntry:
        """Make a new file, or a new version of the destination, of what a file holds; of a directory all of it.

        One commit. Attributes are carried; a published file's copy is pinned at its own version. Nothing is shared with another
        namespace: it gets the bytes again, of the source as it was at one commit, assets a chunk at a time.

        Args:
            src: A file or a directory.
            dst: Where the copy is to be.
            overwrite: Append a version to a file that is there.
            to_namespace: Put the copy into this namespace.
            if_version: The destination must be at this version (0: no file), or be this very file and version.
            idempotency_key: A second call with this key returns the first result; kept 24 h.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The copy.

        Raises:
            PathNotFoundError: There is nothing at the source (``FILE_NOT_FOUND``).
            PathExistsError: The destination exists (``ALREADY_EXISTS``).
            AlreadyExistsError: File and directory would meet (``PATH_TYPE_CONFLICT``).
            ConflictError: The destination is not the expected one (``VERSION_CONFLICT``).
            UnsupportedError: A source-backed mount whose provider does not do that (``SOURCE_UNSUPPORTED``).

        Cost:
            1 read, 1 commit

        Example:
            >>> (await ws.copy("/workspace/notes.md", "/outputs/notes.md")).version
            1
        """

        async def call(space: Space) -> WorkspaceEntry:
            check_flags(overwrite=overwrite)
            places = _places(src, dst)
            options = Options(idempotency_key, if_version)
            space.router.readable(places.src)
            space.router.writable(places.dst)
            target = space
            if to_namespace is not None and check_namespace(to_namespace) != space.ports.namespace:
                target = self._runner.core.space(to_namespace, space.ports.actor)
            if (tree := sourced.mutable(space, places.dst, options, "copy")) is not None:
                return await copying.copy_out(space, tree, places, overwrite=overwrite)
            if (tree := space.router.source(places.src)) is not None:
                return await copying.copy_in(
                    tree, target, places, overwrite=overwrite, options=options
                )
            if target is space:
                return await relocating.copy(space, places, overwrite=overwrite, options=options)
            return await relocating.copy_across(
                space, target, places, overwrite=overwrite, options=options
            )

        return await self._runner.run("copy", src, namespace, call)

    async def delete(
        self,
        path: PathLike,
        *,
        recursive: bool = False,
        purge: bool = False,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> None:
        """Delete a file, or everything below a directory; what is not there is no error.

        A deletion is a tombstone version: `undo` brings the file back, its history stays readable. `purge` erases all versions and
        assets for good, also of a deleted file, and what a rename overwrote at the path; its name leaves old log entries, and remembered
        results of idempotent calls on it are forgotten. It returns when all is gone; a crash in between is taken up by `gc`.

        Args:
            path: A file or a directory.
            recursive: Needed for a directory.
            purge: Erase instead of leaving a tombstone.
            if_version: The head must be this version, or this very file and version.
            idempotency_key: A second call with this key does nothing; kept 24 h.
            namespace: Use this namespace instead of the workspace's own.

        Raises:
            AlreadyExistsError: A directory without `recursive` (``PATH_TYPE_CONFLICT``).
            ConflictError: The head is not the expected one (``VERSION_CONFLICT``).
            AccessDeniedError: Outside all mounts, or on a read-only one (``OUTSIDE_MOUNTS``, ``READ_ONLY_MOUNT``).
            UnsupportedError: A source-backed mount whose provider does not do that (``SOURCE_UNSUPPORTED``).

        Cost:
            1 read, 1 commit

        Example:
            >>> await ws.delete("/workspace/notes.md"); await ws.exists("/workspace/notes.md")
            False
        """

        async def call(space: Space) -> None:
            check_flags(recursive=recursive, purge=purge)
            where, directory = normalise_directory_hint(path)
            space.router.writable(where)
            verb = purging.purge if purge else writing.delete
            await verb(
                space,
                where,
                directory=directory,
                recursive=recursive,
                options=Options(idempotency_key, if_version),
            )

        await self._runner.run("delete", path, namespace, call)


def writable_file(space: Space, path: PathLike) -> str:
    """Read a path that must name a file where changes are allowed."""
    where = normalise_file(path)
    space.router.writable(where)
    space.router.check_file_place(where)
    return where


def _places(src: PathLike, dst: PathLike) -> Places:
    source, source_directory = normalise_directory_hint(src)
    target, target_directory = normalise_directory_hint(dst)
    return Places(source, target, source_directory, target_directory)


def _write(
    path: PathLike,
    content: WritableContent,
    space: Space,
    **how: Any,  # noqa: ANN401 - the options of the operation
) -> Awaitable[WorkspaceFile]:
    return writing.write(space, writable_file(space, path), content, **how)
