"""A file lock beside the database, so that processes that write take turns.

SQLite's own lock is what keeps the data right; its waiters sleep and retry, and a busy writer can starve them for seconds. This one
is only for fairness: whoever cannot have it in time goes on to SQLite's lock.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import TracebackType

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: SQLite's own lock alone
    fcntl = None  # type: ignore[assignment]

__all__ = ["WriteLock"]

_PATIENCE_S = 5.0
_FIRST_PAUSE_S = 0.0002
_LONGEST_PAUSE_S = 0.002


class WriteLock:
    """An advisory lock on ``<database>.lock``; a context manager for one thread, not reentrant."""

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(database.name + ".lock")
        self._fd = -1
        if fcntl is not None:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def acquire(self, patience_s: float | None = None) -> bool:
        """Take the lock; False when it could not be had in time."""
        if self._fd < 0:
            return False
        if self._try():
            return True
        pause = _FIRST_PAUSE_S
        give_up = time.monotonic() + (_PATIENCE_S if patience_s is None else patience_s)
        while time.monotonic() < give_up:
            time.sleep(pause)
            if self._try():
                return True
            pause = min(pause * 2, _LONGEST_PAUSE_S)
        return False

    def release(self) -> None:
        """Give the lock back, held or not."""
        if self._fd >= 0:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file; it stays where it is, because another process may be about to lock it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _try(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def __enter__(self) -> WriteLock:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
