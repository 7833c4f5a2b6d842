"""Another workspace as a source: its files below one path, as they are now."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Protocol

from crux_workspace.errors import InvalidInputError, NotFoundError
from crux_workspace.model.contents import Content
from crux_workspace.model.files import ListResult, WorkspaceFile
from crux_workspace.model.paths import check_namespace, normalise
from crux_workspace.model.searches import GrepResult
from crux_workspace.model.sources import (
    MountGrepOptions,
    MountListOptions,
    MountPathOptions,
    MountReadOptions,
)

__all__ = ["WorkspaceSource"]


class Readable(Protocol):
    """What of a workspace, or of a view of its past, is asked."""

    @property
    def list(self) -> Any: ...  # noqa: ANN401 - methods, each with its own options
    @property
    def read(self) -> Any: ...  # noqa: ANN401
    @property
    def stream(self) -> Any: ...  # noqa: ANN401
    @property
    def stat(self) -> Any: ...  # noqa: ANN401
    @property
    def exists(self) -> Any: ...  # noqa: ANN401
    @property
    def grep(self) -> Any: ...  # noqa: ANN401


class WorkspaceSource:
    """The files below a path of another workspace, or of ``ws.at(...)``; read-only.

    The other workspace has to belong to the same event loop. A file's revision is its version there and the start of its hash.
    """

    kind = "workspace"

    def __init__(
        self, workspace: Readable, path: str = "/workspace", *, namespace: str | None = None
    ) -> None:
        for name in ("list", "read", "stream", "stat", "exists", "grep"):
            if not callable(getattr(workspace, name, None)):
                raise InvalidInputError(
                    f"{type(workspace).__name__} is no workspace.", details={"option": "workspace"}
                )
        self._ws = workspace
        self._path = normalise(path).rstrip("/")
        if namespace is not None:
            check_namespace(namespace)
        self._options = {} if namespace is None else {"namespace": namespace}

    def _there(self, path: str, mount_path: str) -> str:
        return self._path + path[len(mount_path) :] or "/"

    def _here(self, path: str, mount_path: str) -> str:
        return mount_path + path[len(self._path) :]

    async def list(self, path: str, options: MountListOptions) -> ListResult:
        """List a directory, a file or a glob of the other workspace."""
        page: ListResult = await self._ws.list(
            self._there(path, options.mount_path),
            limit=options.limit,
            cursor=options.cursor,
            **self._options,
        )
        entries = [
            replace(entry, path=self._here(entry.path, options.mount_path)) for entry in page
        ]
        return ListResult(
            [_told(e) if isinstance(e, WorkspaceFile) else e for e in entries], page.cursor
        )

    async def read(self, path: str, options: MountReadOptions) -> Content | None:
        """Read a window of a file of the other workspace."""
        try:
            content: Content = await self._ws.read(
                self._there(path, options.mount_path),
                offset=options.offset,
                max_inline_bytes=options.max_inline_bytes,
                **self._options,
            )
        except NotFoundError:
            return None
        return replace(content, path=path, metadata=_with_revision(content))

    async def read_bytes(self, path: str, options: MountPathOptions) -> AsyncIterator[bytes] | None:
        """Stream a file of the other workspace."""
        where = self._there(path, options.mount_path)
        if await self._ws.stat(where, **self._options) is None:
            return None
        chunks: AsyncIterator[bytes] = self._ws.stream(where, **self._options)
        return chunks

    async def stat(self, path: str, options: MountPathOptions) -> WorkspaceFile | None:
        """Return what the other workspace knows of a file."""
        file: WorkspaceFile | None = await self._ws.stat(
            self._there(path, options.mount_path), **self._options
        )
        return None if file is None else _told(replace(file, path=path))

    async def exists(self, path: str, options: MountPathOptions) -> bool:
        """Tell whether the other workspace has a file or directory there."""
        there: bool = await self._ws.exists(self._there(path, options.mount_path), **self._options)
        return there

    async def grep(self, query: str, options: MountGrepOptions) -> GrepResult:
        """Search in the other workspace."""
        path = options.mount_path if options.path is None else options.path
        result: GrepResult = await self._ws.grep(
            query,
            path=self._there(path, options.mount_path),
            ignore_case=options.ignore_case,
            regex=options.regex,
            max_results=options.max_results,
            **self._options,
        )
        matches = [
            replace(match, path=self._here(match.path, options.mount_path)) for match in result
        ]
        return GrepResult(matches, result.truncated)


def _with_revision(of: Content | WorkspaceFile) -> dict[str, Any]:
    return {**(of.metadata or {}), "revision": f"v{of.version}-{(of.sha256 or '')[:12]}"}


def _told(file: WorkspaceFile) -> WorkspaceFile:
    return replace(file, metadata=_with_revision(file))
