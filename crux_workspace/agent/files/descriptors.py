"""Finding one object of the local file system by directory descriptors, step by step and without following links unseen.

Every folder on the way is opened relative to the one before, never through a link; links are read and walked by hand. What is found
is held by the descriptor of its folder, so nobody can put something else under the path that was judged.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import sys
import threading
from collections import deque
from collections.abc import Iterator

from crux_workspace.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    ConflictError,
    ErrorCode,
    InvalidPathError,
    PathNotFoundError,
    PermissionDeniedError,
    StorageError,
    WorkspaceError,
)

__all__ = ["LocalPin", "locate", "os_errors"]

_HOLD = getattr(os, "O_PATH", os.O_RDONLY)
_FOLDER = _HOLD | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_LINKS = 40
_MAX_PATH_BYTES = 4095
_MAX_RACES = 64
_F_GETPATH = 50


class LocalPin:
    """One object: its folder's descriptor, its name there, and what it was when it was found."""

    def __init__(
        self, folder: int, folder_path: str, name: str | None, tail: tuple[str, ...]
    ) -> None:
        self.folder = folder
        """Descriptor of the folder that holds the object; of the object itself when it is a folder."""
        self.name = name
        """Name in the folder; None when the object is the folder."""
        self.tail = tail
        """What is missing below the folder, the last one included; empty when the object exists."""
        self.found: os.stat_result | None = None
        self._guard = threading.Lock()
        self._users = 0
        self._is_done = False
        self.path = "/".join([folder_path.rstrip("/"), *((name,) if name else ()), *tail]) or "/"

    @property
    def base(self) -> str | None:
        """See `Pin.base`: changes whenever the file's content or place changes."""
        if self.found is None:
            return None
        f = self.found
        return f"{f.st_dev}:{f.st_ino}:{f.st_size}:{f.st_mtime_ns}:{f.st_ctime_ns}"

    @property
    def is_shared(self) -> bool:
        """See `Pin.is_shared`."""
        return (
            self.found is not None and stat.S_ISREG(self.found.st_mode) and self.found.st_nlink > 1
        )

    @property
    def is_folder(self) -> bool:
        """Whether the object is a folder that is there."""
        return self.name is None and not self.tail

    def close(self) -> None:
        """See `Pin.close`; waits for nobody: whoever still works with the object lets it go at the end."""
        with self._guard:
            self._is_done = True
            self._let_go()

    def __del__(self) -> None:
        self.close()

    @contextlib.contextmanager
    def using(self) -> Iterator[None]:
        """Keep the descriptors for the time of one operation, though its caller be cancelled meanwhile."""
        with self._guard:
            if self._is_done:
                raise changed(self.path)
            self._users += 1
        try:
            yield
        finally:
            with self._guard:
                self._users -= 1
                self._let_go()

    def _let_go(self) -> None:
        if self._is_done and self._users == 0 and self.folder >= 0:
            os.close(self.folder)
            self.folder = -1

    def open(self, flags: int = os.O_RDONLY) -> int:
        """Open the file for what was found, and nothing else.

        Raises:
            PathNotFoundError: It is not there, or is a folder.
            PermissionDeniedError: It is a device, a FIFO or a socket.
            ConflictError: Something else has taken its place.
        """
        if self.found is None or self.name is None:
            raise missing(self.path, is_folder=self.is_folder)
        refuse_special(self.found, self.path)
        with os_errors(self.path):
            descriptor = os.open(
                self.name,
                flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY,
                dir_fd=self.folder,
            )
        now = os.fstat(descriptor)
        if (now.st_dev, now.st_ino) != (self.found.st_dev, self.found.st_ino):
            os.close(descriptor)
            raise changed(self.path)
        return descriptor


def locate(path: str) -> LocalPin:
    """Find what an absolute path names, existing or not, and hold it.

    Args:
        path: Absolute; ``..`` and links are resolved as the kernel would, and ``..`` behind something missing is folded.

    Returns:
        The pin; the caller closes it.

    Raises:
        InvalidPathError: No absolute path, or too many links (``INVALID_PATH``).
        PathNotFoundError: A file stands where a folder is needed (``FILE_NOT_FOUND``).
        AccessDeniedError: The system does not let us look.
    """
    if not path.startswith("/") or "\x00" in path or not _is_short_text(path):
        raise InvalidPathError(
            "A local path must be absolute, at most 4,095 bytes, without NUL and lone surrogates.",
            details={"option": "path"},
        )
    walk = _Walk(path)
    try:
        return walk.run()
    except OSError as error:
        raise translated(error, path) from error
    finally:
        walk.close()


def _is_short_text(path: str) -> bool:
    try:
        return len(os.fsencode(path)) <= _MAX_PATH_BYTES
    except UnicodeEncodeError:
        return False


class _Walk:
    def __init__(self, path: str) -> None:
        self.path = path
        self.todo = deque(path.split("/"))
        self.held: list[int] = [os.open("/", _FOLDER)]
        self.names: list[str] = []
        self.links = 0
        self.races = 0

    def close(self) -> None:
        while self.held:
            os.close(self.held.pop())

    def run(self) -> LocalPin:
        while self.todo:
            segment = self.todo.popleft()
            if segment in ("", "."):
                continue
            if segment == "..":
                self._up()
                continue
            try:
                found = os.stat(segment, dir_fd=self.held[-1], follow_symlinks=False)
            except FileNotFoundError:
                tail = self._missing(segment)
                if tail:
                    return self._pin(None, tail)
                continue
            if stat.S_ISLNK(found.st_mode):
                self._follow(segment)
            elif stat.S_ISDIR(found.st_mode):
                self._into(segment)
            else:
                return self._leaf(segment, found)
        pin = self._pin(None, ())
        pin.found = os.stat(pin.folder)
        return pin

    def _up(self) -> None:
        if self.names:
            self.names.pop()
            os.close(self.held.pop())

    def _follow(self, segment: str) -> None:
        self.links += 1
        if self.links > _MAX_LINKS:
            raise InvalidPathError(
                "The path leads through too many links.", details={"path": self.path}
            )
        try:
            target = os.readlink(segment, dir_fd=self.held[-1])
        except OSError as error:
            self._raced(error, segment)
            return
        if target.startswith("/"):
            while self.names:
                self._up()
        self.todo.extendleft(reversed(target.split("/")))

    def _into(self, segment: str) -> None:
        try:
            self.held.append(os.open(segment, _FOLDER, dir_fd=self.held[-1]))
        except OSError as error:
            self._raced(error, segment)
        else:
            self.names.append(segment)

    def _raced(self, error: OSError, segment: str) -> None:
        """Look at a segment again that turned into something else meanwhile."""
        self.races += 1
        if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.ENOENT, errno.EINVAL):
            raise error
        if self.races > _MAX_RACES:
            raise changed(self.path)
        self.todo.appendleft(segment)

    def _missing(self, segment: str) -> tuple[str, ...]:
        """Return what is missing from here on; empty when the path goes up again to what is there."""
        tail = [segment]
        while self.todo and tail:
            rest = self.todo.popleft()
            if rest == "..":
                tail.pop()
            elif rest not in ("", "."):
                tail.append(rest)
        return tuple(tail)

    def _leaf(self, segment: str, found: os.stat_result) -> LocalPin:
        if self.todo:
            raise PathNotFoundError(
                "A file stands where the path needs a folder.", details={"path": self.path}
            )
        pin = self._pin(segment, ())
        pin.found = found
        return pin

    def _pin(self, name: str | None, tail: tuple[str, ...]) -> LocalPin:
        folder = self.held.pop()
        tracked = "/" + "/".join(self.names)
        return LocalPin(folder, kernel_path(folder) or tracked, name, tail)


def kernel_path(descriptor: int) -> str | None:
    """Return where the system says that an open folder is: its real name, also on file systems that fold case."""
    try:
        if sys.platform == "darwin":
            raw = fcntl.fcntl(descriptor, _F_GETPATH, b"\0" * 1024)
            return raw.rstrip(b"\0").decode("utf-8", "surrogateescape")
        found = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None
    return found if found.startswith("/") and not found.endswith(" (deleted)") else None


def refuse_special(found: os.stat_result, path: str) -> None:
    """Refuse what is no regular file.

    Raises:
        PathNotFoundError: A folder.
        PermissionDeniedError: A device, a FIFO, a socket.
    """
    if stat.S_ISREG(found.st_mode):
        return
    if stat.S_ISDIR(found.st_mode):
        raise missing(path, is_folder=True)
    raise PermissionDeniedError(
        "The path is a device, a FIFO or a socket, and only regular files are opened.",
        details={"path": path},
    )


def missing(path: str, *, is_folder: bool = False) -> PathNotFoundError:
    """Return the error for a file that is not there (ENOENT)."""
    if is_folder:
        return PathNotFoundError(
            "The path is a folder, not a file.", details={"path": path}, hint="List it instead."
        )
    return PathNotFoundError(
        f"ENOENT: there is no file at {path}.", details={"path": path}, hint="List its folder."
    )


def changed(path: str) -> ConflictError:
    """Return the error for an object that another one took the place of."""
    return ConflictError(
        "The path was changed by somebody else at this very moment; nothing was done.",
        details={"path": path},
    )


def translated(error: OSError, path: str) -> Exception:
    """Turn an error of the system into the one that users know."""
    if isinstance(error, WorkspaceError):
        return error
    details = {"path": path, "errno": error.errno}
    if error.errno == errno.ENOENT:
        return missing(path)
    if error.errno in (errno.ENOTDIR, errno.EISDIR):
        return AlreadyExistsError(
            "A file and a folder cannot share a path.",
            code=ErrorCode.PATH_TYPE_CONFLICT,
            details=details,
        )
    if error.errno == errno.ELOOP:
        return changed(path)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return AccessDeniedError(
            "The system does not allow this here.",
            code=ErrorCode.PERMISSION_DENIED,
            details=details,
        )
    if error.errno in (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL):
        return InvalidPathError("The system cannot have such a path.", details=details)
    return StorageError(
        f"The file system failed ({os.strerror(error.errno or 0)}).", details=details
    )


class os_errors(contextlib.AbstractContextManager["os_errors"]):  # noqa: N801 - reads as a statement
    """Turns errors of the system inside it into those that users know."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, WorkspaceError):
            raise translated(error, self._path) from error
