"""A local folder as a backend."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from crux_workspace.agent.files import local_io
from crux_workspace.agent.files.contract import (
    DEFAULT_MAX_FILE_BYTES,
    FileStat,
    FsContext,
    LineWindow,
    WalkedEntry,
    checked_cap,
)
from crux_workspace.agent.files.descriptors import LocalPin, locate, missing
from crux_workspace.errors import InvalidPathError
from crux_workspace.model.options import refused_option, shown

__all__ = ["LocalFilesystem", "local_filesystem"]

_T = TypeVar("_T")


class LocalFilesystem:
    """The files of this machine, relative ones from `root`.

    Reads open regular files only; writes take the place of the old file at once. With a pinned context an operation works on the
    object that was judged, whatever has happened to the path since.
    """

    is_local_folder = True

    def __init__(self, root: str | Path, *, max_file_bytes: int | None) -> None:
        given: object = root
        if not isinstance(given, str | os.PathLike):
            raise refused_option("root", "a str or a path", given)
        text = os.fsdecode(given)
        if not text.startswith("/"):
            raise InvalidPathError(
                f"The root of a local filesystem must be an absolute path, not {shown(text)}.",
                details={"option": "root"},
            )
        self.root = os.path.normpath(text).replace("//", "/")
        self.max_file_bytes = checked_cap(max_file_bytes)

    def __repr__(self) -> str:
        return f"LocalFilesystem({self.root!r})"

    async def pin(self, path: str, ctx: FsContext) -> LocalPin:
        """See `FilesystemBackend`: find and hold what the path names."""
        return await asyncio.to_thread(locate, path)

    async def real_path(self, path: str, ctx: FsContext) -> str:
        """See `FilesystemBackend.real_path`; a dangling link leads to where it points."""
        return await self._with(path, ctx, lambda pin: pin.path)

    async def read_file(self, path: str, ctx: FsContext, *, max_bytes: int | None = None) -> str:
        """See `FilesystemBackend.read_file`."""
        return (await self.read_binary_file(path, ctx, max_bytes=max_bytes)).decode(
            "utf-8", "replace"
        )

    async def read_binary_file(
        self, path: str, ctx: FsContext, *, max_bytes: int | None = None
    ) -> bytes:
        """Return a file's bytes, capped like `read_file`."""
        limit = self._cap(max_bytes)
        return await self._with(path, ctx, lambda pin: local_io.read_bytes(pin, limit))

    async def read_lines(
        self,
        path: str,
        first: int,
        last: int | None,
        ctx: FsContext,
        *,
        max_bytes: int | None = None,
    ) -> LineWindow:
        """Return some lines of a file of any size; the cap is for what is returned."""
        limit = self._cap(max_bytes)
        return await self._with(
            path, ctx, lambda pin: local_io.read_window(pin, first, last, limit)
        )

    async def write_file(self, path: str, content: str, ctx: FsContext) -> int:
        """See `FilesystemBackend.write_file`; readers see the old file or the new one."""
        data = content.encode("utf-8")
        return await self._with(path, ctx, lambda pin: local_io.write_bytes(pin, data))

    async def replace(self, path: str, old: bytes, new: bytes, ctx: FsContext) -> int:
        """Write `new` only if the file still holds `old`; writers of this library take turns."""
        return await self._with(path, ctx, lambda pin: local_io.replace_bytes(pin, old, new))

    async def list_dir(self, path: str, ctx: FsContext) -> list[str]:
        """See `FilesystemBackend.list_dir`."""
        return await self._with(path, ctx, local_io.list_names)

    async def lstat(self, path: str, ctx: FsContext) -> FileStat:
        """Tell what is at a path; a link is not followed, its own text is told."""

        def told() -> FileStat:
            folder, _, name = path.rstrip("/").rpartition("/")
            pin = locate(folder or "/")
            try:
                if not name:
                    return local_io.stat_of(os.stat(pin.folder))
                found = os.stat(name, dir_fd=pin.folder, follow_symlinks=False)
                link = os.readlink(name, dir_fd=pin.folder) if _is_link(found) else None
                return local_io.stat_of(found, link)
            except (FileNotFoundError, NotADirectoryError):
                raise missing(path) from None
            finally:
                pin.close()

        return await asyncio.to_thread(told)

    async def stat_file(self, path: str, ctx: FsContext) -> FileStat:
        """Tell what is at a path, links followed."""

        def told(pin: LocalPin) -> FileStat:
            if pin.found is None:
                raise missing(path)
            return local_io.stat_of(pin.found)

        return await self._with(path, ctx, told)

    async def remove_file(self, path: str, ctx: FsContext) -> None:
        """Remove a file; a missing one is fine."""
        await self._with(path, ctx, local_io.remove)

    async def touch_file(self, path: str, ctx: FsContext) -> None:
        """Set a file's times to now."""
        await self._with(path, ctx, local_io.touch)

    async def mkdir(self, path: str, ctx: FsContext) -> None:
        """Make a folder and those above it."""
        await self._with(path, ctx, local_io.make_folders)

    async def walk_tree(
        self, path: str, ctx: FsContext, *, max_entries: int, prune: Iterable[str] = ()
    ) -> list[WalkedEntry]:
        """Return everything below a folder, or raise when it is more than `max_entries`."""
        left_out = frozenset(prune)
        return await self._with(path, ctx, lambda pin: local_io.walk(pin, max_entries, left_out))

    async def read_binary_files(
        self, requests: Sequence[tuple[str, int | None]], ctx: FsContext
    ) -> list[bytes]:
        """Return the bytes of several files, in order."""
        return [await self.read_binary_file(path, ctx, max_bytes=cap) for path, cap in requests]

    def _cap(self, max_bytes: int | None) -> int | None:
        return self.max_file_bytes if max_bytes is None else checked_cap(max_bytes)

    async def _with(self, path: str, ctx: FsContext, work: Callable[[LocalPin], _T]) -> _T:
        """Do something with the pinned object, or with what the path names now."""
        held = ctx.pin if isinstance(ctx.pin, LocalPin) and ctx.pin.path == path else None

        def done() -> _T:
            if held is not None:
                with held.using():
                    return work(held)
            pin = locate(path)
            try:
                return work(pin)
            finally:
                pin.close()

        return await asyncio.to_thread(done)


def _is_link(found: os.stat_result) -> bool:
    return stat.S_ISLNK(found.st_mode)


def local_filesystem(
    root: str | Path, *, max_file_bytes: int | None = DEFAULT_MAX_FILE_BYTES
) -> LocalFilesystem:
    """Return a backend over the files of this machine.

    Args:
        root: Absolute path that relative paths start from; it need not exist yet.
        max_file_bytes: Most bytes that one read returns; None for no cap.

    Returns:
        The backend.

    Raises:
        InvalidInputError: A negative cap (``INVALID_ARGUMENT``) or a relative root (``INVALID_PATH``).
    """
    return LocalFilesystem(root, max_file_bytes=max_file_bytes)
