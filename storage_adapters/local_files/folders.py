"""Blocking work on the folder tree, run in threads.

Folders are walked by descriptor, and no link below the root is followed: a link that somebody planted leads nowhere.
"""

from __future__ import annotations

import fcntl
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from storage_adapters.local_files.names import TEMPORARY

__all__ = ["FolderTree"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ATTEMPTS = 60
_STALE_S = 24 * 3600


class FolderTree:
    """Files below one folder, named by lists of names; the folder is created by the first write."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def create_temporary(self) -> tuple[int, str]:
        """Open a fresh file to write to; return its descriptor and name."""
        self.root.mkdir(parents=True, exist_ok=True)
        with self._folder([TEMPORARY], create=True) as folder:
            self._remove_stale(folder, _STALE_S)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            while True:
                name = token_hex(16)
                file = os.open(name, flags, 0o666, dir_fd=folder)
                # A file system without locks: age alone tells what is stale.
                with suppress(OSError):
                    fcntl.flock(file, fcntl.LOCK_EX)
                if os.fstat(file).st_nlink:
                    return file, name
                os.close(file)  # a sweep was faster than the lock

    def publish(self, temporary: str, names: list[str]) -> None:
        """Give a finished file its name, durably. Its folder may be pruned meanwhile, then it is made again."""
        for attempt in range(_ATTEMPTS):
            try:
                with (
                    self._folder([TEMPORARY]) as source,
                    self._folder(names[:-1], create=True) as folder,
                ):
                    os.rename(temporary, names[-1], src_dir_fd=source, dst_dir_fd=folder)
                    self._sync(folder, names[-1])
                    return
            except FileNotFoundError:
                if attempt == _ATTEMPTS - 1:
                    raise
                time.sleep(random.uniform(0, 0.001 * attempt))  # noqa: S311 - jitter

    def discard_temporary(self, name: str) -> None:
        """Remove a file that will not be finished."""
        with suppress(FileNotFoundError), self._folder([TEMPORARY]) as folder:
            os.unlink(name, dir_fd=folder)

    def remove_stale(self, older_than_s: float) -> int:
        """Remove files that nobody finishes any more; return how many.

        Who writes one holds a lock on it until it has its name: a file without its lock is a dead process's, whatever its age.
        Where the file system knows no locks, one that was not written to for so long is stale.
        """
        with suppress(FileNotFoundError), self._folder([TEMPORARY]) as folder:
            return self._remove_stale(folder, older_than_s, dead=True)
        return 0

    def open(self, names: list[str]) -> int:
        """Open a file to read; raises `FileNotFoundError`."""
        with self._folder(names[:-1]) as folder:
            return os.open(names[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)

    def remove(self, names: list[str]) -> None:
        """Remove a file, and the folders that are empty without it."""
        with suppress(FileNotFoundError), self._folder(names[:-1]) as folder:
            os.unlink(names[-1], dir_fd=folder)
            os.fsync(folder)
        for depth in range(len(names) - 1, 0, -1):
            try:
                with self._folder(names[: depth - 1]) as parent:
                    os.rmdir(names[depth - 1], dir_fd=parent)
            except OSError:  # not empty, or gone already
                return

    def walk(
        self, names: list[str], label: Callable[[list[str]], str], keep: Callable[[str], bool]
    ) -> Iterator[tuple[str, os.stat_result]]:
        """Yield (label, stat) of the files below a folder, ordered by label; skip what `keep` refuses.

        A folder's label ends with ``/``, which makes this order the one of the whole labels.
        """
        entries: list[tuple[str, str, bool]] = []
        try:
            with self._folder(names) as folder, os.scandir(folder) as found:
                for entry in found:
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if entry.is_symlink() or (not names and entry.name == TEMPORARY):
                        continue
                    text = label([*names, entry.name]) + ("/" if is_folder else "")
                    entries.append((text, entry.name, is_folder))
        except FileNotFoundError:
            return
        for text, name, is_folder in sorted(entries):
            if not keep(text):
                continue
            if is_folder:
                yield from self.walk([*names, name], label, keep)
                continue
            with suppress(FileNotFoundError), self._folder(names) as folder:
                yield text, os.stat(name, dir_fd=folder, follow_symlinks=False)

    @contextmanager
    def _folder(self, names: list[str], *, create: bool = False) -> Iterator[int]:
        """Open a folder below the root, step by step."""
        current = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in names:
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=current)
                        os.fsync(current)
                step = os.open(name, _FOLDER, dir_fd=current)
                os.close(current)
                current = step
            yield current
        finally:
            os.close(current)

    @staticmethod
    def _sync(folder: int, name: str) -> None:
        """Make a new name durable, or take it back."""
        try:
            os.fsync(folder)
        except OSError:
            os.unlink(name, dir_fd=folder)
            raise

    @staticmethod
    def _remove_stale(folder: int, older_than_s: float, *, dead: bool = False) -> int:
        """Remove what a process that died left half written, of a certain age, or with `dead` at once."""
        removed = 0
        with os.scandir(folder) as found:
            for entry in found:
                with suppress(FileNotFoundError):
                    # Not the modification time: that is set to the injected clock before the file is named.
                    age = time.time() - entry.stat(follow_symlinks=False).st_ctime
                    if age > older_than_s or dead:
                        removed += _remove_left(entry.name, folder, old=age > older_than_s)
        return removed


def _remove_left(name: str, folder: int, *, old: bool) -> bool:
    """Remove a half-written file whose lock nobody holds; without locks, an old one. Returns whether it is gone.

    The lock is held until then: whoever has made the file just now, and waits for it, sees that the file is gone.
    """
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            if not old:
                return False
        os.unlink(name, dir_fd=folder)
        return True
    finally:
        os.close(file)
