"""The methods of versions, artifacts and commits."""

from __future__ import annotations

from collections.abc import Awaitable

from crux_workspace.api.publishing import PublishMethods
from crux_workspace.model.diffs import FileDiff
from crux_workspace.model.files import IfVersion, WorkspaceFile
from crux_workspace.model.paths import PathLike, normalise_directory_hint, normalise_file
from crux_workspace.model.versions import CommitEntry, VersionEntry
from crux_workspace.operations import commits, publishing, revising
from crux_workspace.operations.space import Options, Space

__all__ = ["VersionMethods"]


class VersionMethods(PublishMethods):
    """History, undo and redo, and the commit log."""

    async def history(
        self,
        path: PathLike,
        *,
        limit: int | None = None,
        before: int | None = None,
        namespace: str | None = None,
    ) -> list[VersionEntry]:
        """Return a file's versions, newest first; of a deleted file too.

        Args:
            path: A file; one that never was has no history.
            limit: Most entries; None returns all that are kept.
            before: Only versions below this number.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            One entry a kept version, tombstones included.

        Raises:
            InvalidInputError: A bad option (``INVALID_ARGUMENT``).

        Cost:
            pages

        Example:
            >>> [entry.version for entry in await ws.history("/workspace/notes.md")]
            [1]
        """

        def call(space: Space) -> Awaitable[list[VersionEntry]]:
            where = normalise_file(path)
            space.router.readable(where)
            return revising.history(space, where, limit=limit, before=before)

        return await self._runner.run("history", path, namespace, call)

    async def diff(
        self,
        path: PathLike,
        *,
        from_version: int | None = None,
        to_version: int | None = None,
        context_lines: int = 3,
        namespace: str | None = None,
    ) -> FileDiff:
        r"""Compare two versions of a text or JSON file; by default show the latest change.

        Args:
            path: A file.
            from_version: Version before; None is the one before `to_version`.
            to_version: Version after; None is the newest.
            context_lines: Unchanged lines around each change.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The difference; ``patch`` accepts its `unified`.

        Raises:
            PathNotFoundError: There is no such file (``FILE_NOT_FOUND``).
            VersionNotFoundError: No such version, or not kept (``VERSION_NOT_FOUND``, ``VERSION_EXPIRED``).
            BinaryContentError: The content is binary (``BINARY_CONTENT``).
            UnsupportedError: On a source-backed mount (``SOURCE_UNSUPPORTED``).

        Cost:
            pages

        Example:
            >>> await ws.write("/workspace/a.md", "one\n"); await ws.write("/workspace/a.md", "two\n")
            >>> (await ws.diff("/workspace/a.md")).added
            1
        """

        def call(space: Space) -> Awaitable[FileDiff]:
            where = normalise_file(path)
            space.router.readable(where)
            return revising.diff(
                space,
                where,
                from_version=from_version,
                to_version=to_version,
                context_lines=context_lines,
            )

        return await self._runner.run("diff", path, namespace, call)

    async def undo(
        self,
        path: PathLike,
        *,
        to_version: int | None = None,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceFile:
        """Bring back the content the file had before its latest change, as a new version.

        Nothing is erased. Repeated undo walks further back, `redo` forward, until any other change of the content ends the walk. A
        deleted file comes back. Content kind, MIME type and metadata are restored; status, kind and pin stay.

        Args:
            path: A file, live or deleted.
            to_version: Restore this version instead of the one before.
            if_version: The head must be this version, or this very file and version.
            idempotency_key: A second call with this key returns the first result; kept 24 h.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The file after the undo; `version` is the appended number.

        Raises:
            PathNotFoundError: There never was a file (``FILE_NOT_FOUND``).
            NothingToUndoError: There is no earlier content (``NOTHING_TO_UNDO``).
            VersionNotFoundError: No such version, or it was collected (``VERSION_NOT_FOUND``, ``VERSION_EXPIRED``).
            ConflictError: The head is not the expected one (``VERSION_CONFLICT``).
            UnsupportedError: On a source-backed mount (``SOURCE_UNSUPPORTED``).

        Cost:
            2 reads, 1 commit

        Example:
            >>> await ws.write("/workspace/a.md", "one"); await ws.write("/workspace/a.md", "two")
            >>> (await ws.undo("/workspace/a.md")).version
            3
        """

        def call(space: Space) -> Awaitable[WorkspaceFile]:
            where = normalise_file(path)
            space.router.writable(where)
            options = Options(idempotency_key, if_version)
            return revising.undo(space, where, to_version=to_version, options=options)

        return await self._runner.run("undo", path, namespace, call)

    async def redo(
        self,
        path: PathLike,
        *,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceFile:
        """Take back an undo, as a new version.

        Args:
            path: A file.
            if_version: The head must be this version, or this very file and version.
            idempotency_key: A second call with this key returns the first result; kept 24 h.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The file after the redo.

        Raises:
            PathNotFoundError: There is no such file (``FILE_NOT_FOUND``).
            StateError: There is no undo to take back (``NOTHING_TO_REDO``).
            VersionNotFoundError: The version was collected (``VERSION_EXPIRED``).
            ConflictError: The head is not the expected one (``VERSION_CONFLICT``).
            UnsupportedError: On a source-backed mount (``SOURCE_UNSUPPORTED``).

        Cost:
            pages, 1 commit

        Example:
            >>> await ws.write("/workspace/a.md", "one"); await ws.write("/workspace/a.md", "two")
            >>> await ws.undo("/workspace/a.md"); await ws.redo("/workspace/a.md"); await ws.read_text("/workspace/a.md")
            'two'
        """

        def call(space: Space) -> Awaitable[WorkspaceFile]:
            where = normalise_file(path)
            space.router.writable(where)
            return revising.redo(space, where, options=Options(idempotency_key, if_version))

        return await self._runner.run("redo", path, namespace, call)

    async def resolve(self, uri: str, *, namespace: str | None = None) -> bytes:
        r"""Open the bytes behind an artifact's URI.

        Args:
            uri: The `uri` of an artifact of this workspace and namespace.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The bytes of the version that the URI names.

        Raises:
            InvalidInputError: The URI belongs elsewhere (``INVALID_ARGUMENT``).
            AccessDeniedError: It names a path outside all mounts (``OUTSIDE_MOUNTS``).
            NotFoundError: What it named is not kept any more.

        Cost:
            1 read

        Example:
            >>> artifact = await ws.finalize("/workspace/notes.md"); await ws.resolve(artifact.uri)
            b'# Notes\n'
        """

        def call(space: Space) -> Awaitable[bytes]:
            return publishing.resolve(space, uri)

        return await self._runner.run("resolve", None, namespace, call)

    async def log(
        self,
        *,
        path: PathLike | None = None,
        limit: int = 50,
        cursor: str | None = None,
        namespace: str | None = None,
    ) -> list[CommitEntry]:
        """Return the commits of a namespace, newest first.

        Args:
            path: Only commits that touched this path or something below it; one that ends in ``/`` only the latter.
            limit: Most entries.
            cursor: Go on behind this entry's `cursor`.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The commits with all their changes.

        Raises:
            InvalidInputError: A cursor of another namespace (``INVALID_CURSOR``).
            AccessDeniedError: The path is outside all mounts (``OUTSIDE_MOUNTS``).

        Cost:
            pages

        Example:
            >>> [entry.verb for entry in await ws.log(limit=1)]
            ['write']
        """

        def call(space: Space) -> Awaitable[list[CommitEntry]]:
            where, directory = (None, False) if path is None else normalise_directory_hint(path)
            return commits.log(space, path=where, directory=directory, limit=limit, cursor=cursor)

        return await self._runner.run("log", path, namespace, call)

    async def undo_commit(
        self,
        commit: str | CommitEntry,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> CommitEntry:
        """Reverse all changes of a commit with one new commit.

        Each path gets its file, attributes and pins back as they were; content comes back as a new version.

        Args:
            commit: The commit's string, or its entry.
            idempotency_key: A second call with this key returns the first result; kept 24 h.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The new commit.

        Raises:
            NotFoundError: No such commit is in the log (``COMMIT_NOT_FOUND``).
            ConflictError: A later commit touched one of its paths; details name it (``VERSION_CONFLICT``).
            VersionNotFoundError: What was there is purged or collected (``VERSION_EXPIRED``).

        Cost:
            pages, 1 commit

        Example:
            >>> file = await ws.write("/workspace/a.md", "one")
            >>> (await ws.undo_commit(file.commit)).verb
            'undo_commit'
        """

        def call(space: Space) -> Awaitable[CommitEntry]:
            options = Options(idempotency_key)
            return commits.undo_commit(space, commit, options=options)

        return await self._runner.run("undo_commit", None, namespace, call)
