"""A folder of this machine on its way in: which of its entries are files, and which are left out and why."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

__all__ = ["FoundFile", "LeftOut", "SpecialFileError", "open_file", "walk_folder"]

_LINK = "symbolic link"
_SPECIAL = "special file"
# A FIFO put in a file's place must not make the open wait for a writer.
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A regular file."""

    relative: str
    """Its path below the folder, with `/` between the names."""
    path: Path
    size: int
    """Bytes, when it was found."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An entry that is no file to take."""

    path: Path
    reason: str
    error: OSError | None = None
    """What kept us from looking; None when leaving it out is the rule."""


Found: TypeAlias = FoundFile | LeftOut


class SpecialFileError(OSError):
    """What was a regular file when it was found is none any more."""


def walk_folder(folder: Path, is_own: Callable[[Path], bool]) -> Iterator[Found]:
    """Find the files below a folder, by name, without following a link.

    Args:
        folder: Where to start; it may itself be a link.
        is_own: Says which entries are the workspace's own store, which must not be taken into itself.
    """
    waiting: list[tuple[str, Path]] = [("", folder)]
    while waiting:
        relative, path = waiting.pop()
        try:
            entries = sorted(os.scandir(path), key=lambda entry: entry.name)
        except OSError as error:
            yield LeftOut(path, error.strerror or "unreadable", error)
            continue
        below = []
        for entry in entries:
            inside = f"{relative}{entry.name}"
            if entry.is_dir(follow_symlinks=False) and not is_own(path / entry.name):
                below.append((f"{inside}/", path / entry.name))
            else:
                yield _judged(entry, inside, path / entry.name, is_own)
        waiting += reversed(below)


def _judged(
    entry: os.DirEntry[str], relative: str, path: Path, is_own: Callable[[Path], bool]
) -> Found:
    if entry.is_symlink():
        return LeftOut(path, _LINK)
    if is_own(path):
        return LeftOut(path, "the workspace's own store")
    if not entry.is_file(follow_symlinks=False):
        return LeftOut(path, _SPECIAL)
    try:
        return FoundFile(relative, path, entry.stat(follow_symlinks=False).st_size)
    except OSError as error:
        return LeftOut(path, error.strerror or "unreadable", error)


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading, never through a link.

    Raises:
        SpecialFileError: It is no regular file any more.
        OSError: It cannot be opened.
    """
    descriptor = os.open(path, _OPEN_FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SpecialFileError(_SPECIAL)
    return open(descriptor, "rb")  # noqa: PTH123 - a descriptor, not a path
