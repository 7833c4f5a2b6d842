"""What is done with a pinned object of the local file system: capped reads, line windows, atomic writes."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator

from crux_workspace.agent.files.contract import FileStat, LineWindow, WalkedEntry
from crux_workspace.agent.files.descriptors import (
    LocalPin,
    changed,
    missing,
    os_errors,
    refuse_special,
)
from crux_workspace.errors import (
    AlreadyExistsError,
    ConflictError,
    ErrorCode,
    LimitExceededError,
)
from crux_workspace.model.options import needed_number

__all__ = [
    "list_names",
    "make_folders",
    "read_bytes",
    "read_window",
    "remove",
    "replace_bytes",
    "stat_of",
    "touch",
    "walk",
    "write_bytes",
]

_CHUNK = 65_536
_LOCK_WAIT_S = 5.0


def too_large(path: str, size: int | None, limit: int) -> LimitExceededError:
    """Return the error for a file above the cap."""
    told = f"{size:,} bytes" if size is not None else f"more than {limit:,} bytes"
    return LimitExceededError(
        f"The file at {path} has {told}, and a read returns at most {limit:,}.",
        code=ErrorCode.FILE_TOO_LARGE,
        details={"path": path, "size": size, "limit": limit},
        hint="Read it in ranges with startLine and endLine.",
    )


def read_bytes(pin: LocalPin, limit: int | None) -> bytes:
    """Return the whole file, never more than `limit` bytes, also when it grows meanwhile."""
    descriptor = pin.open()
    try:
        with os_errors(pin.path):
            size = os.fstat(descriptor).st_size
            if limit is not None and size > limit:
                raise too_large(pin.path, size, limit)
            parts: list[bytes] = []
            length = 0
            while True:
                wanted = _CHUNK if limit is None else min(_CHUNK, limit - length + 1)
                part = os.read(descriptor, wanted)
                if not part:
                    return b"".join(parts)
                parts.append(part)
                length += len(part)
                if limit is not None and length > limit:
                    raise too_large(pin.path, None, limit)
    finally:
        os.close(descriptor)


def read_window(pin: LocalPin, first: int, last: int | None, limit: int | None) -> LineWindow:
    """Return the lines `first` to `last`; the file is read once, in constant memory beside the window."""
    descriptor = pin.open()
    try:
        with os_errors(pin.path):
            return _window(pin.path, _chunks(descriptor), first, last, limit)
    finally:
        os.close(descriptor)


def _chunks(descriptor: int) -> Iterator[bytes]:
    while part := os.read(descriptor, 1 << 20):
        yield part


def _window(
    path: str, chunks: Iterator[bytes], first: int, last: int | None, limit: int | None
) -> LineWindow:
    line = 1
    kept = bytearray()
    ended = True
    for chunk in chunks:
        start, stop = _bounds(chunk, line, first, last)
        if start < stop:
            kept += chunk[start:stop]
            if limit is not None and len(kept) > limit + 1:
                raise too_large(path, None, limit)
        line += chunk.count(b"\n")
        ended = chunk.endswith(b"\n")
    total = line - 1 if ended else line
    return LineWindow(_text(kept, limit, path), first, min(last or total, total), total)


def _bounds(chunk: bytes, line: int, first: int, last: int | None) -> tuple[int, int]:
    """Return which part of a chunk, which begins in `line`, lies in the window."""
    start = 0 if line >= first else _after_line_ends(chunk, first - line)
    if last is None:
        return start, len(chunk)
    return start, 0 if line > last else _after_line_ends(chunk, last - line + 1)


def _after_line_ends(chunk: bytes, count: int) -> int:
    at = 0
    for _ in range(count):
        found = chunk.find(b"\n", at)
        if found < 0:
            return len(chunk)
        at = found + 1
    return at


def _text(kept: bytearray, limit: int | None, path: str) -> str:
    text = bytes(kept)
    if text.endswith(b"\n"):
        text = text[:-1]
    if limit is not None and len(text) > limit:
        raise too_large(path, None, limit)
    return text.decode("utf-8", "replace")


# -- writing


def write_bytes(pin: LocalPin, data: bytes) -> int:
    """Write the whole file: a new one beside it takes its place at once. Missing folders are made."""
    with os_errors(pin.path):
        folder, name = _target(pin)
        try:
            _put(pin, folder, name, data)
        finally:
            if folder != pin.folder:
                os.close(folder)
    return len(data)


def replace_bytes(pin: LocalPin, old: bytes, new: bytes) -> int:
    """Write only if the file still holds `old`; writers of this library wait for each other.

    Raises:
        ConflictError: It holds something else.
    """
    with os_errors(pin.path), _folder_lock(pin):
        if pin.name is None or pin.found is None:
            raise missing(pin.path, is_folder=pin.is_folder)
        now = os.stat(pin.name, dir_fd=pin.folder, follow_symlinks=False)
        if (now.st_dev, now.st_ino) != (pin.found.st_dev, pin.found.st_ino):
            raise _stale(pin.path)
        try:
            is_same = read_bytes(pin, len(old) + 1) == old
        except LimitExceededError:
            is_same = False
        if not is_same:
            raise _stale(pin.path)
        return write_bytes(pin, new)


def _stale(path: str) -> ConflictError:
    return ConflictError(
        "The file was changed by somebody else since it was read; nothing was written.",
        details={"path": path},
        hint="Read it again and repeat the edit on what is there now.",
    )


@contextlib.contextmanager
def _folder_lock(pin: LocalPin) -> Iterator[None]:
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=pin.folder)
    try:
        until = time.monotonic() + _LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise changed(pin.path) from None
                time.sleep(0.002)
        yield
    finally:
        os.close(descriptor)


def _target(pin: LocalPin) -> tuple[int, str]:
    """Return the folder to write into, missing ones made, and the name there."""
    if pin.name is not None:
        return pin.folder, pin.name
    if not pin.tail:
        raise AlreadyExistsError(
            "The path is a folder.", code=ErrorCode.PATH_TYPE_CONFLICT, details={"path": pin.path}
        )
    return _made_folders(pin, pin.tail[:-1]), pin.tail[-1]


def _made_folders(pin: LocalPin, names: tuple[str, ...]) -> int:
    folder = pin.folder
    for name in names:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            inner = os.open(name, flags, dir_fd=folder)
        finally:
            if folder != pin.folder:
                os.close(folder)
        folder = inner
    return folder


def _put(pin: LocalPin, folder: int, name: str, data: bytes) -> None:
    mode = _mode_of_writable(pin)
    temporary = f".{name[:64]}.{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            if mode is not None:
                os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _mode_of_writable(pin: LocalPin) -> int | None:
    """Return the mode to keep; a file that may not be written, and what is none, is refused."""
    if pin.found is None or pin.name is None:
        return None
    refuse_special(pin.found, pin.path)
    descriptor = pin.open(os.O_WRONLY)
    try:
        return stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o777
    finally:
        os.close(descriptor)


# -- the rest


def list_names(pin: LocalPin) -> list[str]:
    """Return the names in a folder."""
    with os_errors(pin.path):
        if pin.name is not None:
            raise NotADirectoryError(errno.ENOTDIR, "not a folder")
        if pin.tail:
            raise missing(pin.path)
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=pin.folder)
        try:
            return os.listdir(descriptor)
        finally:
            os.close(descriptor)


def stat_of(found: os.stat_result, target: str | None = None) -> FileStat:
    """Return what is known of an object."""
    mode = found.st_mode
    if stat.S_ISLNK(mode):
        return FileStat("symlink", found.st_size, False, target, found.st_mtime_ns // 1_000_000)
    executable = stat.S_ISREG(mode) and bool(mode & 0o111)
    kind = "file" if stat.S_ISREG(mode) else "directory" if stat.S_ISDIR(mode) else "other"
    return FileStat(kind, found.st_size, executable, None, found.st_mtime_ns // 1_000_000)  # type: ignore[arg-type]


def remove(pin: LocalPin) -> None:
    """Remove a file; a missing one is fine."""
    with os_errors(pin.path):
        if pin.is_folder:
            raise IsADirectoryError(errno.EISDIR, "a folder")
        if pin.name is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(pin.name, dir_fd=pin.folder)


def touch(pin: LocalPin) -> None:
    """Set a file's times to now."""
    descriptor = pin.open()
    try:
        with os_errors(pin.path):
            os.utime(descriptor)
    finally:
        os.close(descriptor)


def make_folders(pin: LocalPin) -> None:
    """Make a folder and those above it; one that is there is fine."""
    with os_errors(pin.path):
        if pin.name is not None:
            raise NotADirectoryError(errno.ENOTDIR, "a file is there")
        folder = _made_folders(pin, pin.tail)
        if folder != pin.folder:
            os.close(folder)


def walk(pin: LocalPin, max_entries: int, prune: frozenset[str]) -> list[WalkedEntry]:
    """Return everything below a folder; links are told, not followed.

    Raises:
        LimitExceededError: There are more than `max_entries`.
    """
    needed_number("max_entries", max_entries, least=0)
    entries: list[WalkedEntry] = []
    names = list_names(pin)
    with os_errors(pin.path):
        _walk(pin.folder, "", names, entries, max_entries, prune)
    return entries


def _walk(
    folder: int,
    prefix: str,
    names: list[str],
    entries: list[WalkedEntry],
    limit: int,
    prune: frozenset[str],
) -> None:
    for name in sorted(names):
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            continue
        target = os.readlink(name, dir_fd=folder) if stat.S_ISLNK(found.st_mode) else None
        told = stat_of(found, target)
        entries.append(WalkedEntry(prefix + name, told.kind, told.size, told.executable, target))
        if len(entries) > limit:
            raise LimitExceededError(
                f"The folder holds more than {limit:,} entries.",
                code=ErrorCode.QUOTA_EXCEEDED,
                details={"limit": limit},
                hint="Name a folder that holds fewer.",
            )
        if stat.S_ISDIR(found.st_mode) and not (not prefix and name in prune):
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            inner = os.open(name, flags, dir_fd=folder)
            try:
                _walk(inner, f"{prefix}{name}/", os.listdir(inner), entries, limit, prune)
            finally:
                os.close(inner)
