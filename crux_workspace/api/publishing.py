"""The methods that publish files."""

from __future__ import annotations

from collections.abc import Awaitable

from crux_workspace.api.writing import WriteMethods, writable_file
from crux_workspace.model.artifacts import Artifact
from crux_workspace.model.files import IfVersion, WorkspaceFile
from crux_workspace.model.paths import PathLike
from crux_workspace.operations import publishing
from crux_workspace.operations.space import Options, Space

__all__ = ["PublishMethods"]


class PublishMethods(WriteMethods):
    """Finalizing and withdrawing files."""

    async def finalize(
        self,
        path: PathLike,
        *,
        kind: str | None = None,
        version: int | None = None,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> Artifact:
        """Publish a file: pin its current, or a given, version.

        Later edits make drafts; the artifact keeps showing the pinned version until `finalize` runs again. Only `withdraw` and
        `delete` unpublish.

        Args:
            path: A file.
            kind: What sort of artifact it is; None keeps it.
            version: Pin this version; None pins the current one.
            if_version: The head must be this version, or this very file and version.
            idempotency_key: A second call with this key returns the first result; kept 24 h.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The artifact.

        Raises:
            PathNotFoundError: There is no such file (``FILE_NOT_FOUND``).
            VersionNotFoundError: No such version, or not kept (``VERSION_NOT_FOUND``, ``VERSION_EXPIRED``).
            ConflictError: The head is not the expected one (``VERSION_CONFLICT``).
            UnsupportedError: On a source-backed mount (``SOURCE_UNSUPPORTED``).

        Cost:
            1 read, 1 commit

        Example:
            >>> (await ws.finalize("/workspace/notes.md", kind="notes")).status
            'final'
        """

        def call(space: Space) -> Awaitable[Artifact]:
            return publishing.finalize(
                space,
                writable_file(space, path),
                kind=kind,
                version=version,
                options=Options(idempotency_key, if_version),
            )

        return await self._runner.run("finalize", path, namespace, call)

    async def withdraw(
        self,
        path: PathLike,
        *,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceFile:
        """Unpublish a file: it becomes a draft and nothing stays pinned. No change to a file that is not published.

        Args:
            path: A file.
            if_version: The head must be this version, or this very file and version.
            idempotency_key: A second call with this key returns the first result; kept 24 h.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The file.

        Raises:
            PathNotFoundError: There is no such file (``FILE_NOT_FOUND``).
            ConflictError: The head is not the expected one (``VERSION_CONFLICT``).
            UnsupportedError: On a source-backed mount (``SOURCE_UNSUPPORTED``).

        Cost:
            1 read, 1 commit

        Example:
            >>> await ws.finalize("/workspace/notes.md"); (await ws.withdraw("/workspace/notes.md")).status
            'draft'
        """

        def call(space: Space) -> Awaitable[WorkspaceFile]:
            where = writable_file(space, path)
            options = Options(idempotency_key, if_version)
            return publishing.withdraw(space, where, options=options)

        return await self._runner.run("withdraw", path, namespace, call)
