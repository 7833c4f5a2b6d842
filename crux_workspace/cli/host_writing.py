"""A folder of this machine on its way out: nothing is written outside it, through a link, or half."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from crux_workspace.errors import InvalidPathError, PathExistsError

__all__ = ["OutFolder"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_BELOW = _FOLDER | os.O_NOFOLLOW
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class OutFolder:
    """Writes files below one folder, each of them whole or not at all.

    Every name is resolved from the descriptor of the folder above it and links are never followed, so no name and no link that
    somebody put there, even meanwhile, leads outside.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder
        self._root = os.open(folder, _FOLDER)

    def close(self) -> None:
        """Let the folder go."""
        os.close(self._root)

    async def write(
        self, relative: str, chunks: AsyncIterator[bytes], *, overwrite: bool = False
    ) -> int:
        """Write one file.

        Args:
            relative: Its path below the folder, with `/` between the names.
            chunks: Its bytes.
            overwrite: Replace a file (or a link, itself) that is there.

        Returns:
            The number of bytes.

        Raises:
            InvalidPathError: The path would lead outside.
            PathExistsError: Something is there, or a folder on the way is a link or a file (``ALREADY_EXISTS``).
            OSError: The machine refuses.
        """
        *folders, name = _segments(relative)
        with self._parent(folders, relative) as parent:
            if not overwrite and _exists(name, parent):
                raise self._taken(relative)
            temporary = f".crux-{secrets.token_hex(8)}.part"
            try:
                size = await _fill(os.open(temporary, _NEW_FILE, 0o666, dir_fd=parent), chunks)
                if overwrite:
                    os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
                elif not _publish(temporary, name, parent):
                    raise self._taken(relative)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=parent)
        return size

    @contextmanager
    def _parent(self, folders: list[str], relative: str) -> Iterator[int]:
        """Give the descriptor of the folder that a file goes to, making those that are missing."""
        current = os.dup(self._root)
        try:
            for name in folders:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=current)
                try:
                    below = os.open(name, _BELOW, dir_fd=current)
                except OSError as error:
                    if error.errno in (errno.ELOOP, errno.ENOTDIR):
                        raise self._blocked(relative, name) from error
                    raise
                os.close(current)
                current = below
            yield current
        finally:
            os.close(current)

    def _taken(self, relative: str) -> PathExistsError:
        return PathExistsError(
            f"{self._path / relative} already exists.",
            details={"path": relative},
            hint="Use --overwrite to replace it, or export to another folder.",
        )

    def _blocked(self, relative: str, name: str) -> PathExistsError:
        return PathExistsError(
            f"{self._path / relative} was not written: {name!r} on the way is a link or a file, not a folder.",
            details={"path": relative},
            hint="Links are never followed; remove it, or export to another folder.",
        )


def _segments(relative: str) -> list[str]:
    segments = relative.split("/")
    if any(each in ("", ".", "..") or "\0" in each for each in segments):
        raise InvalidPathError(
            f"The path {relative!r} was not exported because it would lead outside the folder.",
            details={"path": relative},
        )
    return segments


def _exists(name: str, parent: int) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


async def _fill(descriptor: int, chunks: AsyncIterator[bytes]) -> int:
    size = 0
    with open(descriptor, "wb") as file:  # noqa: ASYNC230 - a descriptor; buffered writes of one chunk
        async for chunk in chunks:
            size += file.write(chunk)
    return size


def _publish(temporary: str, name: str, parent: int) -> bool:
    """Give a finished file its name unless that is taken meanwhile; return whether it was free."""
    try:
        os.link(temporary, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        return _publish_by_reserving(temporary, name, parent)
    return True


def _publish_by_reserving(temporary: str, name: str, parent: int) -> bool:
    """Do the same where there are no hard links: take the name first, then replace what took it."""
    try:
        os.close(os.open(name, _NEW_FILE, 0o666, dir_fd=parent))
    except FileExistsError:
        return False
    os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    return True
