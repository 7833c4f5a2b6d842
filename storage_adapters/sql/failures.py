"""What an error of the database means to the caller. Messages are our own: the driver's stay in the chain."""

from __future__ import annotations

import sqlite3

from crux_workspace.errors import ErrorCode, StorageError, WorkspaceError
from crux_workspace.storage.records import BatchTooLarge, StoreError

__all__ = ["is_busy", "is_refused", "translated"]

_MESSAGES: dict[int, tuple[ErrorCode, str]] = {
    sqlite3.SQLITE_BUSY: (
        ErrorCode.STORE_TIMEOUT,
        "another process kept the database locked; nothing was written, try again",
    ),
    sqlite3.SQLITE_LOCKED: (
        ErrorCode.STORE_TIMEOUT,
        "another connection kept the database locked; nothing was written, try again",
    ),
    sqlite3.SQLITE_FULL: (
        ErrorCode.STORE_UNAVAILABLE,
        "the disk or the database is full; nothing was written, make room and try again",
    ),
    sqlite3.SQLITE_READONLY: (
        ErrorCode.STORE_UNAVAILABLE,
        "the database cannot be written; check the rights of the file and its folder",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        ErrorCode.STORE_UNAVAILABLE,
        "the database cannot be opened; check that it exists and the rights of its folder",
    ),
    sqlite3.SQLITE_IOERR: (
        ErrorCode.STORE_UNAVAILABLE,
        "reading or writing the database failed; check the disk",
    ),
    sqlite3.SQLITE_NOTADB: (
        ErrorCode.RECORD_CORRUPT,
        "the file is not a database; check the path",
    ),
    sqlite3.SQLITE_CORRUPT: (
        ErrorCode.RECORD_CORRUPT,
        "the database is damaged; restore it from a backup",
    ),
}


def _primary(error: BaseException | None) -> int:
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else 0


def is_busy(error: BaseException | None) -> bool:
    """Tell whether somebody else holds a lock; repeating helps."""
    return _primary(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_refused(error: BaseException) -> bool:
    """Tell whether a COMMIT that failed so was certainly not made; after a failure of the disk nobody knows."""
    return is_busy(error) or _primary(error) == sqlite3.SQLITE_FULL


def translated(error: Exception) -> WorkspaceError | StoreError:
    """Return the error to raise for one of the driver's, which becomes its ``__cause__``."""
    ours: WorkspaceError | StoreError
    code = _primary(error)
    if code == sqlite3.SQLITE_TOOBIG or isinstance(error, OverflowError):
        ours = BatchTooLarge("value or body", 0, 1_000_000_000)
    elif code in _MESSAGES:
        kind, message = _MESSAGES[code]
        ours = StorageError(message, code=kind)
    else:
        ours = StorageError("the database refused the statement; nothing was written")
    ours.__cause__ = error
    return ours
