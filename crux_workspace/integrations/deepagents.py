"""A workspace as the file backend of deepagents; needs the extra ``deepagents``.

Every change that an agent makes is a version: it can be looked at, undone and attributed. The agent's ``/`` is a directory of the
workspace. Permissions of deepagents are judged by its own middleware on the agent's paths; mounts of the workspace hold beneath them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

from crux_workspace.model.extras import need_extra
from crux_workspace.model.streams import at_most

need_extra("deepagents", "deepagents")

from deepagents.backends.protocol import (  # noqa: E402 - after the extra was asked for
    BackendProtocol,
    DeleteResult,
    EditResult,
    FileData,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.backends.utils import (  # noqa: E402
    InvalidGlobPatternError,
    compile_grep_include_glob,
    slice_read_response,
)

from crux_workspace.api.facade import Workspace  # noqa: E402
from crux_workspace.api.sync_facade import SyncWorkspace  # noqa: E402
from crux_workspace.errors import (  # noqa: E402
    AccessDeniedError,
    ConflictError,
    ErrorCode,
    InvalidInputError,
    InvalidPathError,
    NotFoundError,
    WorkspaceError,
)
from crux_workspace.integrations.bridging import Bridge  # noqa: E402
from crux_workspace.model.contents import BinaryContent, Content, JsonContent  # noqa: E402
from crux_workspace.model.files import WorkspaceEntry, WorkspaceFile, known_size  # noqa: E402
from crux_workspace.model.jsontext import dump_compact, pretty  # noqa: E402
from crux_workspace.model.paths import normalise  # noqa: E402

__all__ = ["WorkspaceBackend"]

_T = TypeVar("_T")
_MOST_MATCHES = 10_000
_MOST_FILES = 10_000
_MOST_BYTES = 16 << 20
_PAGE = 256
_ATTEMPTS = 5


class WorkspaceBackend(BackendProtocol):
    """The files below one directory of a workspace, as deepagents reads and writes them; sync and async."""

    def __init__(
        self,
        workspace: Workspace | SyncWorkspace,
        *,
        root: str = "/workspace",
        namespace: str | None = None,
    ) -> None:
        """Make a backend.

        Args:
            workspace: An open workspace; with a blocking one, agents may run synchronously too.
            root: Directory that the agent sees as ``/``; ``/`` shows all mounts.
            namespace: Work in this namespace.

        Raises:
            InvalidInputError: No workspace, or a bad path or namespace (``INVALID_ARGUMENT``, ``INVALID_PATH``).
        """
        self._bridge = Bridge(workspace)
        ws = self._bridge.ws
        self._ws = ws if namespace is None else ws.for_namespace(namespace)
        self._root = normalise(root).rstrip("/")

    def __repr__(self) -> str:
        return f"WorkspaceBackend({self._ws!r}, root={self._root or '/'!r})"

    def _there(self, path: str | None) -> str:
        return normalise(self._root + normalise(path or "/"))

    def _here(self, path: str) -> str:
        return path[len(self._root) :] or "/"

    def _info(self, entry: WorkspaceEntry) -> FileInfo:
        here = self._here(entry.path)
        if not isinstance(entry, WorkspaceFile):
            return FileInfo(path=f"{here}/", is_dir=True)
        info = FileInfo(path=here, is_dir=False, modified_at=_time(entry.updated_at))
        if (size := known_size(entry)) is not None:
            info["size"] = size
        return info

    # -- looking

    async def als(self, path: str) -> LsResult:
        """List a directory."""

        async def call() -> LsResult:
            page = await self._ws.list(self._there(path), glob=False)
            return LsResult(entries=[self._info(entry) for entry in page])

        return await self._done(call, lambda told: LsResult(error=told))

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Read lines of a text, or a binary file whole."""

        async def call() -> ReadResult:
            where = self._there(file_path)
            content = await self._ws.read(where, max_inline_bytes=None)
            file = await self._ws.stat(where)
            data = FileData(content="", encoding="utf-8")
            if file is not None:
                data["created_at"] = _time(file.created_at)
                data["modified_at"] = _time(file.updated_at)
            if isinstance(content, BinaryContent):
                data["content"] = base64.b64encode(await self._bytes(where)).decode()
                data["encoding"] = "base64"
                return ReadResult(file_data=data)
            data["content"] = _text(content)
            return slice_read_response(data, offset, limit)

        return await self._done(call, lambda told: ReadResult(error=told))

    async def _bytes(self, path: str) -> bytes:
        """Gather a binary file that is to be shown, however large it is said to be."""
        found = await at_most(self._ws.stream(path, length=_MOST_BYTES + 1), _MOST_BYTES)
        if found is None:
            raise InvalidInputError(
                f"{path} is binary and has more than {_MOST_BYTES} bytes, too many to be shown.",
                details={"path": path},
            )
        return found

    async def agrep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> GrepResult:
        """Search for literal text; `glob` filters the files by their path below `path`. Without a mount that fails it is truncated."""

        async def call() -> GrepResult:
            included = compile_grep_include_glob(glob) if glob else lambda _: True
            where = self._there(path)
            found = await self._ws.grep(
                pattern, path=where, max_results=_MOST_MATCHES, partial=True
            )
            seen: dict[tuple[str, int], GrepMatch] = {}
            for match in found:
                if included(_relative(match.path, where)):
                    told = GrepMatch(path=self._here(match.path), line=match.line, text=match.text)
                    seen.setdefault((match.path, match.line), told)
            matches = [*seen.values()]
            cut = found.truncated or (max_count is not None and len(matches) > max_count)
            cut = cut or bool(found.failed)
            return GrepResult(matches=matches[:max_count], truncated=cut)

        return await self._done(call, lambda told: GrepResult(error=told))

    async def aglob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Find files by their path below `path`, in deepagents' own meaning of globs."""

        async def call() -> GlobResult:
            matches = compile_grep_include_glob(pattern)
            where = self._there(path)
            found: list[FileInfo] = []
            cursor: str | None = None
            while True:
                page = await self._ws.list(
                    where, recursive=True, limit=_PAGE, cursor=cursor, partial=True
                )
                found += [self._info(f) for f in page if matches(_relative(f.path, where))]
                if len(found) > _MOST_FILES:
                    return GlobResult(
                        matches=found[:_MOST_FILES], truncated=True, truncation_reason="budget"
                    )
                cursor = page.cursor
                if cursor is None and page.failed:
                    return GlobResult(matches=found, truncated=True, truncation_reason="unreadable")
                if cursor is None:
                    return GlobResult(matches=found)

        return await self._done(call, lambda told: GlobResult(error=told))

    # -- changing

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        """Create or replace a file; what it held stays in its history."""

        async def call() -> WriteResult:
            await self._ws.write(self._there(file_path), content)
            return WriteResult(path=file_path)

        return await self._done(call, lambda told: WriteResult(error=told))

    async def aedit(
        self, file_path: str, old_string: str, new_string: str, replace_all: bool = False
    ) -> EditResult:
        """Replace exact text. An edit that meets another's change is made on what is there then."""

        async def call() -> EditResult:
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    return await self._edited(file_path, old_string, new_string, replace_all)
                except ConflictError:
                    if attempt == _ATTEMPTS:
                        raise
            raise AssertionError("unreachable")

        return await self._done(call, lambda told: EditResult(error=told))

    async def _edited(self, path: str, old: str, new: str, replace_all: bool) -> EditResult:
        where = self._there(path)
        content = await self._ws.read(where, max_inline_bytes=None)
        virtual = content.version == 0
        await self._ws.edit(
            where,
            old,
            new,
            replace_all=replace_all,
            if_version=None if virtual else content.version,
        )
        count = _text(content).count(old) if replace_all else 1
        return EditResult(path=path, occurrences=count)

    async def adelete(self, file_path: str) -> DeleteResult:
        """Delete a file, or everything below a directory; `undo` of the workspace brings it back."""

        async def call() -> DeleteResult:
            where = self._there(file_path)
            if not await self._ws.exists(where):
                return DeleteResult(error=f"'{file_path}' not found")
            await self._ws.delete(where, recursive=True)
            return DeleteResult(path=file_path)

        return await self._done(call, lambda told: DeleteResult(error=told))

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write files, each a commit: UTF-8 without NUL as text, everything else binary."""
        return [await self._upload(path, data) for path, data in files]

    async def _upload(self, path: str, data: bytes) -> FileUploadResponse:
        async def call() -> FileUploadResponse:
            await self._ws.write(self._there(path), data, encoding=_encoding(data))
            return FileUploadResponse(path=path)

        return await self._handled(call, lambda told: FileUploadResponse(path=path, error=told))

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read the bytes of files."""
        return [await self._download(path) for path in paths]

    async def _download(self, path: str) -> FileDownloadResponse:
        async def call() -> FileDownloadResponse:
            where = self._there(path)
            if await self._ws.is_dir(where):
                return FileDownloadResponse(path=path, error="is_directory")
            return FileDownloadResponse(path=path, content=await self._ws.read_bytes(where))

        return await self._handled(call, lambda told: FileDownloadResponse(path=path, error=told))

    # -- the same for code that waits

    def ls(self, path: str) -> LsResult:
        """List a directory."""
        return self._bridge.waited(lambda: self.als(path))

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Read lines of a text, or a binary file whole."""
        return self._bridge.waited(lambda: self.aread(file_path, offset, limit))

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> GrepResult:
        """Search for literal text."""
        return self._bridge.waited(lambda: self.agrep(pattern, path, glob, max_count=max_count))

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Find files by their path."""
        return self._bridge.waited(lambda: self.aglob(pattern, path))

    def write(self, file_path: str, content: str) -> WriteResult:
        """Create or replace a file."""
        return self._bridge.waited(lambda: self.awrite(file_path, content))

    def edit(
        self, file_path: str, old_string: str, new_string: str, replace_all: bool = False
    ) -> EditResult:
        """Replace exact text."""
        return self._bridge.waited(
            lambda: self.aedit(file_path, old_string, new_string, replace_all)
        )

    def delete(self, file_path: str) -> DeleteResult:
        """Delete a file, or everything below a directory."""
        return self._bridge.waited(lambda: self.adelete(file_path))

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write files."""
        return self._bridge.waited(lambda: self.aupload_files(files))

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read the bytes of files."""
        return self._bridge.waited(lambda: self.adownload_files(paths))

    # -- errors

    async def _done(
        self, call: Callable[[], Coroutine[Any, Any, _T]], failed: Callable[[str], _T]
    ) -> _T:
        """Do work on the workspace's loop; what goes wrong is a result that says how to go on."""
        try:
            return await self._bridge.awaited(call)
        except WorkspaceError as error:
            hint = _HINTS.get(error.code, error.hint)
            return failed(self._told(f"{error.message} {hint}"))
        except InvalidGlobPatternError as error:
            return failed(str(error))

    def _told(self, text: str) -> str:
        """Return a message with the paths as the agent knows them."""
        return text.replace(f"{self._root}/", "/") if self._root else text

    async def _handled(
        self, call: Callable[[], Coroutine[Any, Any, _T]], failed: Callable[[str], _T]
    ) -> _T:
        """Do work whose failures have names of their own in deepagents."""
        try:
            return await self._bridge.awaited(call)
        except InvalidPathError:
            return failed("invalid_path")
        except NotFoundError:
            return failed("file_not_found")
        except AccessDeniedError:
            return failed("permission_denied")
        except WorkspaceError as error:
            return failed(self._told(error.message))


_HINTS: dict[str, str] = {
    ErrorCode.EDIT_AMBIGUOUS: "Put more of the surrounding text into old_string, or set replace_all.",
    ErrorCode.INVALID_CONTENT: "Read it, change the value, and write all of it.",
    ErrorCode.BINARY_CONTENT: "It cannot be read or edited as text.",
    ErrorCode.SOURCE_UNSUPPORTED: "Write a copy elsewhere and work there.",
}
"""Hints in the words of deepagents' tools, where those for callers in Python would not do."""


def _text(content: Content) -> str:
    if isinstance(content, JsonContent):
        return pretty(dump_compact(content.content))
    return "" if isinstance(content, BinaryContent) else content.content


def _relative(path: str, directory: str) -> str:
    if path == directory:
        return path.rsplit("/", 1)[1]
    return path[len(directory.rstrip("/")) + 1 :]


def _encoding(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    return "utf-8"


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat()
