"""A versioned workspace as a backend: no links, no races; a change is a commit, compare-and-set is by version."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from crux_workspace.agent.files.contract import (
    DEFAULT_MAX_FILE_BYTES,
    FileStat,
    FsContext,
    LineWindow,
    WalkedEntry,
    checked_cap,
)
from crux_workspace.agent.files.descriptors import missing
from crux_workspace.agent.files.local_io import too_large
from crux_workspace.agent.permissions.requests import canonical, covers
from crux_workspace.errors import (
    BinaryContentError,
    ConflictError,
    ErrorCode,
    InvalidInputError,
    LimitExceededError,
)
from crux_workspace.model.files import WorkspaceDirectory, WorkspaceEntry, WorkspaceFile
from crux_workspace.model.lines import split_lines
from crux_workspace.model.paths import normalise
from crux_workspace.model.streams import at_most

__all__ = ["WorkspaceFilesystem", "WorkspacePin", "workspace_filesystem"]


@dataclass(slots=True)
class WorkspacePin:
    """A path and the version that was there."""

    path: str
    file: WorkspaceFile | None
    is_shared: bool = False

    @property
    def base(self) -> str | None:
        """See `Pin.base`."""
        return None if self.file is None else f"{self.file.id}:{self.file.version}"

    def close(self) -> None:
        """Nothing is held open."""


class WorkspaceFilesystem:
    """The files of a workspace; relative paths start from `root`."""

    def __init__(self, ws: Any, root: str, *, max_file_bytes: int | None) -> None:  # noqa: ANN401
        self.ws = ws
        self.root = normalise(root)
        self.max_file_bytes = checked_cap(max_file_bytes)

    def __repr__(self) -> str:
        return f"WorkspaceFilesystem({self.root!r})"

    async def pin(self, path: str, ctx: FsContext) -> WorkspacePin:
        """See `FilesystemBackend`: notes which version is there."""
        where = _where(path)
        if not _is_under(where, self.root):
            return WorkspacePin(where, None)
        return WorkspacePin(where, await self.ws.stat(where) if where != "/" else None)

    async def real_path(self, path: str, ctx: FsContext) -> str:
        """See `FilesystemBackend.real_path`: there are no links, so only the spelling is folded."""
        return _where(path)

    async def read_file(self, path: str, ctx: FsContext, *, max_bytes: int | None = None) -> str:
        """See `FilesystemBackend.read_file`; JSON reads in its pretty form."""
        limit = self._cap(max_bytes)
        is_told = await self._check_size(path, limit)
        text: str = await self.ws.read_text(_where(path))
        if limit is not None and not is_told and len(text.encode()) > limit:
            raise too_large(_where(path), None, limit)
        return text

    async def read_binary_file(
        self, path: str, ctx: FsContext, *, max_bytes: int | None = None
    ) -> bytes:
        """Return a file's bytes, capped like `read_file`."""
        limit = self._cap(max_bytes)
        if limit is None or await self._check_size(path, limit):
            data: bytes = await self.ws.read_bytes(_where(path))
            return data
        found = await at_most(self.ws.stream(_where(path), length=limit + 1), limit)
        if found is None:
            raise too_large(_where(path), None, limit)
        return found

    async def read_for_edit(self, path: str, ctx: FsContext) -> bytes:
        """Return a text as bytes whatever its size; JSON in its pretty form."""
        text: str = await self.ws.read_text(_where(path))
        return text.encode()

    async def read_lines(
        self,
        path: str,
        first: int,
        last: int | None,
        ctx: FsContext,
        *,
        max_bytes: int | None = None,
    ) -> LineWindow:
        """Return some lines; the cap is for what is returned."""
        limit = self._cap(max_bytes)
        where = _where(path)
        try:
            found = await self.ws.read(
                where, start_line=first, end_line=last, max_inline_bytes=None
            )
        except InvalidInputError as error:
            if isinstance(error, BinaryContentError) or error.code != ErrorCode.INVALID_ARGUMENT:
                raise
            total = len(split_lines(await self.ws.read_text(where)))
            return LineWindow("", first, total, total)
        text = found.content
        if limit is not None and len(text.encode()) > limit + 1:
            raise too_large(where, None, limit)
        total = found.total_lines
        return LineWindow(text.removesuffix("\n"), first, min(last or total, total), total)

    async def write_file(self, path: str, content: str, ctx: FsContext) -> int:
        """See `FilesystemBackend.write_file`; one commit."""
        await self.ws.write(_where(path), content)
        return len(content.encode("utf-8"))

    async def replace(self, path: str, old: bytes, new: bytes, ctx: FsContext) -> int:
        """Write `new` only if the file is still at the version that was pinned; JSON stays JSON."""
        where = _where(path)
        pinned = ctx.pin.file if isinstance(ctx.pin, WorkspacePin) else None
        if pinned is None:
            pinned = await self.ws.stat(where)
            if pinned is None:
                raise missing(where)
            if await self.read_for_edit(where, ctx) != old:
                raise ConflictError(
                    "The file was changed since it was read; nothing was written.",
                    details={"path": where},
                    hint="Read it again and repeat the edit on what is there now.",
                )
        text = new.decode()
        content: Any = _json_value(text, where) if pinned.content_kind == "json" else text
        await self.ws.update(where, lambda _: content, if_version=pinned)
        return len(new)

    async def list_dir(self, path: str, ctx: FsContext) -> list[str]:
        """See `FilesystemBackend.list_dir`; a missing folder is not found, the root always exists."""
        where = _where(path)
        if where not in (self.root, "/") and not await self.ws.is_dir(where):
            raise missing(where)
        entries: list[WorkspaceEntry] = []
        cursor: str | None = None
        while True:
            page = await self.ws.list(where, glob=False, cursor=cursor)
            entries += page.entries
            cursor = page.cursor
            if cursor is None:
                return [entry.path.rpartition("/")[2] for entry in entries]

    async def lstat(self, path: str, ctx: FsContext) -> FileStat:
        """Tell what is at a path."""
        where = _where(path)
        file = await self.ws.stat(where) if where != "/" else None
        if file is not None:
            return FileStat("file", file.size, False, None, file.updated_at)
        if where in (self.root, "/") or await self.ws.is_dir(where):
            return FileStat("directory", 0)
        raise missing(where)

    async def stat_file(self, path: str, ctx: FsContext) -> FileStat:
        """Tell what is at a path; there are no links to follow."""
        return await self.lstat(path, ctx)

    async def remove_file(self, path: str, ctx: FsContext) -> None:
        """Delete a file; a missing one is fine. It can be undone."""
        await self.ws.delete(_where(path))

    async def touch_file(self, path: str, ctx: FsContext) -> None:
        """Note the time as an attribute's change: a commit, no version."""
        file = await self.ws.stat(_where(path))
        if file is None:
            raise missing(path)
        await self.ws.set(_where(path), metadata=file.metadata)

    async def mkdir(self, path: str, ctx: FsContext) -> None:
        """Do nothing: a folder is there as soon as a file is below it."""

    async def walk_tree(
        self, path: str, ctx: FsContext, *, max_entries: int, prune: Iterable[str] = ()
    ) -> list[WalkedEntry]:
        """Return everything below a folder, or raise when it is more than `max_entries`."""
        where = _where(path)
        stem = where.rstrip("/") + "/"
        left_out = tuple(f"{name}/" for name in prune)
        found: dict[str, WalkedEntry] = {}
        async for file in self.ws.walk(where):
            if isinstance(file, WorkspaceDirectory):
                continue
            relative = file.path[len(stem) :]
            segments = relative.split("/")
            for at in range(1, len(segments)):
                folder = "/".join(segments[:at])
                found.setdefault(folder, WalkedEntry(folder, "directory", 0))
                if relative.startswith(left_out):
                    break
            if not relative.startswith(left_out):
                found[relative] = WalkedEntry(relative, "file", file.size)
            if len(found) > max_entries:
                raise LimitExceededError(
                    f"The folder holds more than {max_entries:,} entries.",
                    details={"limit": max_entries},
                    hint="Name a folder that holds fewer.",
                )
        return list(found.values())

    async def read_binary_files(
        self, requests: Sequence[tuple[str, int | None]], ctx: FsContext
    ) -> list[bytes]:
        """Return the bytes of several files, in order."""
        return [await self.read_binary_file(path, ctx, max_bytes=cap) for path, cap in requests]

    def _cap(self, max_bytes: int | None) -> int | None:
        return self.max_file_bytes if max_bytes is None else checked_cap(max_bytes)

    async def _check_size(self, path: str, limit: int | None) -> bool:
        """Refuse a file that is too large; tell whether its size is known for sure, and not only what a source says."""
        if limit is None:
            return True
        where = _where(path)
        file = await self.ws.stat(where)
        if file is not None and file.size > limit:
            raise too_large(where, file.size, limit)
        return file is None or file.storage != "virtual"


def _where(path: str) -> str:
    """Return the workspace's own spelling of a path; ``..`` is folded first."""
    return normalise(canonical(path))


def _is_under(path: str, root: str) -> bool:
    return covers(root, path)


def _json_value(text: str, path: str) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(text)
    except ValueError:
        raise InvalidInputError(
            "The edit would leave no valid JSON, and the file holds JSON; nothing was written.",
            code=ErrorCode.INVALID_CONTENT,
            details={"path": path},
            hint="Correct the edit, or write the whole file as text.",
        ) from None


def workspace_filesystem(
    ws: Any,  # noqa: ANN401 - a Workspace, or a view of one
    root: str = "/workspace",
    *,
    max_file_bytes: int | None = DEFAULT_MAX_FILE_BYTES,
) -> WorkspaceFilesystem:
    """Return a backend over a versioned workspace.

    Args:
        ws: The workspace, bound to a namespace; it is not closed by the backend.
        root: Where relative paths start: a mount, or a folder in one.
        max_file_bytes: Most bytes that one read returns; None for no cap.

    Returns:
        The backend.

    Raises:
        InvalidInputError: A negative cap (``INVALID_ARGUMENT``) or no absolute root (``INVALID_PATH``).
    """
    return WorkspaceFilesystem(ws, root, max_file_bytes=max_file_bytes)
