"""How far a feed was printed, kept in a file that is replaced whole: the place in the log and the size of the output there."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from crux_workspace.errors import ErrorCode, InvalidInputError, StorageError

__all__ = ["CursorFile", "OutputMark", "Place"]

_FORMAT = 1
_PATIENCE_S = 2.0
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


class OutputMark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An output that is a regular file, as it was when its last line was written."""

    file: int
    """Its number in its file system, by which another file is told from it."""
    size: int


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything up to here is printed."""

    format: int = _FORMAT
    cursor: str
    output: OutputMark | None = None
    """None when the output is no regular file."""


@dataclass(slots=True)
class CursorFile:
    """One cursor file; while it is open no other process can open it."""

    path: Path
    _folder: int
    _lock: int

    @classmethod
    def open(cls, path: Path) -> CursorFile:
        """Take hold of a cursor file, which need not be there.

        Raises:
            StorageError: Another process follows a feed with it (``STORE_UNAVAILABLE``).
            OSError: The machine refuses.
        """
        where = path.resolve()
        folder = os.open(where.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            lock = _locked(where.with_name(f"{where.name}.lock"))
        except BaseException:
            os.close(folder)
            raise
        return cls(where, folder, lock)

    def close(self) -> None:
        """Let go of it."""
        os.close(self._lock)
        os.close(self._folder)

    def load(self) -> Place | None:
        """Return what was saved last; None when nothing was.

        Raises:
            InvalidInputError: The file holds something else (``INVALID_CURSOR``).
        """
        try:
            place = msgspec.json.decode(self.path.read_bytes(), type=Place)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise _foreign(self.path, str(error)) from None
        if place.format != _FORMAT:
            raise _foreign(self.path, f"its format is {place.format}")
        return place

    def save(self, place: Place) -> None:
        """Replace the file; after a crash, of the machine too, it is the old or the new one, whole."""
        temporary = self.path.with_name(f"{self.path.name}.tmp")
        descriptor = os.open(temporary, _NEW_FILE, 0o666)
        try:
            os.write(descriptor, msgspec.json.encode(place) + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(self.path)
        os.fsync(self._folder)


def _locked(path: Path) -> int:
    """Open a file that only one process has locked; who was killed just now gets a moment to let go."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    patience = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES) and time.monotonic() < patience:
                time.sleep(0.02)
                continue
            os.close(lock)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            raise StorageError(
                f"Another process follows a feed with {path.with_suffix('')}.",
                hint="Give each watcher a cursor file of its own.",
            ) from None
        else:
            return lock


def _foreign(path: Path, problem: str) -> InvalidInputError:
    return InvalidInputError(
        f"{path} is no cursor file: {problem}.",
        code=ErrorCode.INVALID_CURSOR,
        hint="Name another file, or remove it to begin anew.",
    )
