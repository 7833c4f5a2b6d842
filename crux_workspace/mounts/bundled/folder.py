"""A folder of this machine as a source: what is below it, never what a link leads to."""

from __future__ import annotations

import asyncio
import builtins
import os
import stat
import unicodedata
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from crux_workspace.errors import InvalidInputError, InvalidPathError
from crux_workspace.model.contents import Content
from crux_workspace.model.files import (
    ContentKind,
    ListResult,
    WorkspaceDirectory,
    WorkspaceEntry,
    WorkspaceFile,
)
from crux_workspace.model.mime import guess
from crux_workspace.model.options import refused_option
from crux_workspace.model.paths import normalise
from crux_workspace.model.sources import MountListOptions, MountPathOptions, MountReadOptions
from crux_workspace.mounts.bundled.pages import content_of_window, kind_of, page_of

__all__ = ["FolderSource"]

_FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_DIRECTORY = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY
_CHUNK = 1 << 20
_LOOKED_AT = 4_096
_SPARE = 4
"""Bytes read around a window so that it can begin and end between characters."""


class FolderSource:
    """Files below a folder of this machine, read-only.

    Every step of a path is opened without following links, so nothing outside the folder can be reached. Links, devices and names that
    no path may hold are not shown. UTF-8 without NUL is text, everything else binary. The revision of a file is its time and size.
    """

    kind = "folder"

    def __init__(self, root: str | os.PathLike[str]) -> None:
        given: object = root
        if not isinstance(given, str | os.PathLike) or isinstance(given, bytes):
            raise refused_option("root", "the path of a folder", given)
        is_folder = False
        # A loop of links, a NUL, half a character.
        with suppress(OSError, RuntimeError, ValueError):
            self._root = Path(root).resolve()
            is_folder = self._root.is_dir()
        if not is_folder:
            raise InvalidInputError(
                "The root of a FolderSource must be a folder that exists.",
                details={"option": "root"},
            )

    def list(self, path: str, options: MountListOptions) -> ListResult:
        """List a directory, or the file at the path."""
        where = self._steps(path, options.mount_path)
        entries: list[WorkspaceEntry] = []
        with (
            suppress(FileNotFoundError, NotADirectoryError),
            self._open(where, _DIRECTORY) as folder,
        ):
            for entry in os.scandir(folder):
                found = self._entry(entry, path)
                if found is not None:
                    entries.append(found)
        return page_of(entries, options)

    def _entry(self, entry: os.DirEntry[str], directory: str) -> WorkspaceEntry | None:
        try:
            path = normalise(f"{directory}/{entry.name}")
            if entry.is_dir(follow_symlinks=False):
                return WorkspaceDirectory(path)
            if not entry.is_file(follow_symlinks=False):
                return None
            return _described(path, entry.stat(follow_symlinks=False))
        except (InvalidPathError, OSError):
            return None

    def read(self, path: str, options: MountReadOptions) -> Content | None:
        """Return a window of a file; only that part of it is read."""
        with self._file(path, options.mount_path) as (handle, status):
            start = min(max(options.offset - _SPARE, 0), status.st_size)
            most = -1 if options.max_inline_bytes is None else options.max_inline_bytes + 3 * _SPARE
            handle.seek(start)
            data = handle.read(most)
            return content_of_window(path, data, start, status.st_size, options, _revision(status))

    async def read_bytes(self, path: str, options: MountPathOptions) -> AsyncIterator[bytes] | None:
        """Return a file's bytes in chunks."""
        if await asyncio.to_thread(self._is_missing, path, options.mount_path):
            return None
        return self._chunks(path, options.mount_path)

    def _is_missing(self, path: str, mount_path: str) -> bool:
        try:
            with self._file(path, mount_path):
                return False
        except FileNotFoundError:
            return True

    async def _chunks(self, path: str, mount_path: str) -> AsyncIterator[bytes]:
        with self._file(path, mount_path) as (handle, _):
            while chunk := await asyncio.to_thread(handle.read, _CHUNK):
                yield chunk

    def stat(self, path: str, options: MountPathOptions) -> WorkspaceFile | None:
        """Return what is known of a file; its first bytes tell whether it is text."""
        with self._file(path, options.mount_path) as (handle, status):
            return _described(path, status, kind_of(handle.read(_LOOKED_AT)))

    # -- opening

    def _steps(self, path: str, mount_path: str) -> builtins.list[str]:
        return [step for step in path[len(mount_path) :].split("/") if step]

    @contextmanager
    def _open(self, steps: builtins.list[str], flags: int) -> Iterator[int]:
        """Open what the steps lead to, each without following a link; what is no such thing is not found."""
        opened = os.open(self._root, _DIRECTORY)
        try:
            for number, step in enumerate(steps, 1):
                following = _step(opened, step, flags if number == len(steps) else _DIRECTORY)
                os.close(opened)
                opened = following
            yield opened
        finally:
            os.close(opened)

    @contextmanager
    def _file(self, path: str, mount_path: str) -> Iterator[tuple[FileIO, os.stat_result]]:
        with self._open(self._steps(path, mount_path), _FILE) as opened:
            status = os.fstat(opened)
            if not stat.S_ISREG(status.st_mode):
                raise FileNotFoundError
            with os.fdopen(os.dup(opened), "rb", buffering=0) as handle:
                yield handle, status


def _step(folder: int, step: str, flags: int) -> int:
    """Open one step of a path; the folder may hold the name in its composed or decomposed form."""
    for name in dict.fromkeys((step, unicodedata.normalize("NFD", step))):
        try:
            return os.open(name, flags, dir_fd=folder)
        except FileNotFoundError:
            continue
        except OSError as error:  # a link, or a file in the middle of a path
            raise FileNotFoundError from error
    raise FileNotFoundError


def _described(path: str, status: os.stat_result, kind: ContentKind = "text") -> WorkspaceFile:
    at = status.st_mtime_ns // 1_000_000
    return WorkspaceFile(
        path=path,
        content_kind=kind,
        mime_type=guess(path, kind),
        size=status.st_size,
        created_at=max(at, 0),
        updated_at=max(at, 0),
        metadata={"revision": _revision(status)},
    )


def _revision(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns}-{status.st_size}"
