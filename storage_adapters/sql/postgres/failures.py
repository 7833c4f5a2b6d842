"""What an error of the server or of the way to it means to the caller. Messages are our own: the driver's stay in the chain."""

from __future__ import annotations

import ssl

import asyncpg

from crux_workspace.errors import ErrorCode, StateError, StorageError, WorkspaceError
from crux_workspace.storage.records import BatchTooLarge, StoreError

__all__ = [
    "LOST",
    "breaks",
    "connection_error",
    "is_contended",
    "is_lost",
    "is_read_only",
    "pool_error",
    "queue_error",
    "translated",
]

LOST = (OSError, TimeoutError, asyncpg.InterfaceError, asyncpg.InternalClientError, EOFError)
"""What breaks a connection, besides what the server itself says."""

_UNAVAILABLE = ErrorCode.STORE_UNAVAILABLE
_TIMEOUT = ErrorCode.STORE_TIMEOUT

_READ_ONLY = "25006"

_MESSAGES: dict[str, tuple[ErrorCode, bool | None, str]] = {
    _READ_ONLY: (
        _UNAVAILABLE,
        None,
        "the server is a read-only replica; nothing was written, send writes to the primary "
        "(target_session_attrs=read-write chooses it among several hosts)",
    ),
    "25P03": (
        _TIMEOUT,
        None,
        "the server ended a transaction that stood still for too long; nothing was written, try again",
    ),
    "28000": (
        _UNAVAILABLE,
        False,
        "the server refused this user; check the URL and the server's rules",
    ),
    "28P01": (_UNAVAILABLE, False, "the server refused the password of this user; check the URL"),
    "3D000": (
        _UNAVAILABLE,
        False,
        "the server has no database of this name; create it or check the URL",
    ),
    "42501": (_UNAVAILABLE, False, "the user has no right to do this in the database; grant it"),
    "53100": (
        _UNAVAILABLE,
        None,
        "the server's disk is full; nothing was written, make room and try again",
    ),
    "53200": (
        _UNAVAILABLE,
        None,
        "the server is out of memory; nothing was written, try again later",
    ),
    "53300": (
        _UNAVAILABLE,
        None,
        "the server takes no more connections; use smaller pools (pool_size) or a pooling proxy",
    ),
    "55P03": (
        _TIMEOUT,
        None,
        "somebody else kept the namespace locked for longer than lock_timeout_ms; nothing was written, try again",
    ),
    "57014": (
        _TIMEOUT,
        None,
        "the server worked longer than statement_timeout_ms on one statement; nothing was written",
    ),
    "XX001": (ErrorCode.RECORD_CORRUPT, None, "the database is damaged; restore it from a backup"),
    "XX002": (ErrorCode.RECORD_CORRUPT, None, "an index of the database is damaged; reindex it"),
}

_OUT_OF_DATE = frozenset({"3F000", "42P01", "42883", "42703"})
_CONTENDED = frozenset({"40001", "40P01"})
_LOST_CLASSES = ("08", "57P")
_TOO_LARGE = frozenset({"54000", "54001", "22001", "53400"})


def _state(error: BaseException) -> str:
    return getattr(error, "sqlstate", None) or ""


def is_contended(error: BaseException) -> bool:
    """Tell whether the server gave up a transaction for another one's sake; repeating helps."""
    return _state(error) in _CONTENDED


def is_read_only(error: BaseException) -> bool:
    """Tell whether the server takes no writes: it is a replica, or became one."""
    return _READ_ONLY in (_state(error), _state(error.__cause__ or error))


def is_lost(error: BaseException) -> bool:
    """Tell whether the connection is gone, so that nobody knows what became of what was sent."""
    if isinstance(error, asyncpg.DataError):
        return False  # the driver could not write a parameter; nothing was sent
    return isinstance(error, LOST) or _state(error).startswith(_LOST_CLASSES)


def breaks(error: BaseException) -> bool:
    """Tell whether a connection may be in the middle of something after this error."""
    return not isinstance(error, Exception) or isinstance(error.__cause__ or error, LOST)


def translated(error: Exception) -> WorkspaceError | StoreError:
    """Return the error to raise for one of the driver's, which becomes its ``__cause__``."""
    state = _state(error)
    ours: WorkspaceError | StoreError
    if state in _MESSAGES:
        code, retryable, message = _MESSAGES[state]
        ours = StorageError(message, code=code, retryable=retryable)
    elif state in _OUT_OF_DATE:
        ours = StateError(
            "the database has no tables of this library, or not those of this version; "
            "run: crux-workspace migrate URL",
            code=ErrorCode.SCHEMA_OUT_OF_DATE,
        )
    elif state in _TOO_LARGE:
        ours = BatchTooLarge("key or value", 0, 0)
    elif isinstance(error, TimeoutError):
        ours = StorageError("the server did not answer in time; try again", code=_TIMEOUT)
    elif is_lost(error):
        ours = StorageError("the connection to the database server is lost; try again")
    else:
        ours = StorageError("the database refused the statement; nothing was written")
    ours.__cause__ = error
    return ours


def connection_error(error: Exception) -> WorkspaceError:
    """Return the error of a connection that could not be made; nothing was sent."""
    if _state(error) in _MESSAGES:
        ours = translated(error)
        assert isinstance(ours, WorkspaceError)
        return ours
    if isinstance(error, ssl.SSLCertVerificationError):
        untrusted = StorageError(
            "the database server's certificate is not trusted for its host; check sslrootcert and the host of the URL",
            retryable=False,
        )
        untrusted.__cause__ = error
        return untrusted
    unreachable = StorageError(
        "the database server cannot be reached; check the host and port of the URL, or try again when it is back"
    )
    unreachable.__cause__ = error
    return unreachable


def pool_error() -> StorageError:
    """Return the error of a call that found no connection free for too long; nothing was sent."""
    return StorageError(
        "all connections of the pool stayed in use for longer than connect_timeout_ms; nothing was sent, "
        "try again or raise pool_size",
        code=_TIMEOUT,
    )


def queue_error() -> StorageError:
    """Return the error of a commit that waited too long for earlier ones of this process in its namespace."""
    return StorageError(
        "earlier commits of this process kept the namespace busy for longer than lock_timeout_ms; "
        "nothing was written, try again",
        code=_TIMEOUT,
    )
