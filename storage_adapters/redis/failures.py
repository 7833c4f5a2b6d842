"""What a refusal of the server, or its silence, means to the caller. Messages are our own: the driver's stay in the chain."""

from __future__ import annotations

from crux_workspace.errors import (
    ErrorCode,
    StorageError,
    UnsupportedError,
    WorkspaceError,
)
from storage_adapters.redis.driver import exceptions
from storage_adapters.redis.wire import Lost, Silent

__all__ = [
    "TRANSIENT",
    "code_of",
    "connecting_failed",
    "evicting",
    "is_loading",
    "lost",
    "refused",
]

TRANSIENT = frozenset(
    {"BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MOVED", "NOREPLICAS", "READONLY", "TRYAGAIN"}
)
"""Refusals that pass by themselves. The server answers with them before a script has written anything."""

_FORBIDDEN_IN_SCRIPT = "ACL failure in script"

_CLASSES: dict[type[Exception], str] = {
    exceptions.BusyLoadingError: "LOADING",
    exceptions.ReadOnlyError: "READONLY",
    exceptions.NoScriptError: "NOSCRIPT",
    exceptions.OutOfMemoryError: "OOM",
    exceptions.NoPermissionError: "NOPERM",
    exceptions.AuthenticationError: "NOAUTH",
    exceptions.AuthenticationWrongNumberOfArgsError: "NOAUTH",
}

_MESSAGES: dict[str, tuple[ErrorCode, str]] = {
    "OOM": (
        ErrorCode.STORE_UNAVAILABLE,
        "the Redis server is out of memory; nothing was written, raise maxmemory or delete namespaces",
    ),
    "READONLY": (
        ErrorCode.STORE_UNAVAILABLE,
        "the Redis server is a replica and takes no writes; nothing was written, connect to the primary",
    ),
    "NOREPLICAS": (
        ErrorCode.STORE_UNAVAILABLE,
        "too few replicas follow the Redis server (min-replicas-to-write); nothing was written, try again",
    ),
    "MISCONF": (
        ErrorCode.STORE_UNAVAILABLE,
        "the Redis server cannot save to its disk and takes no writes; see to its disk",
    ),
    "LOADING": (
        ErrorCode.STORE_UNAVAILABLE,
        "the Redis server is still loading its data; try again later, or give it longer by timeout_ms",
    ),
    "BUSY": (
        ErrorCode.STORE_TIMEOUT,
        "the Redis server is busy with a script of somebody else; nothing was written, try again",
    ),
    "CLUSTERDOWN": (
        ErrorCode.STORE_UNAVAILABLE,
        "the Redis Cluster is down or failing over; nothing was written, try again",
    ),
    "TRYAGAIN": (
        ErrorCode.STORE_UNAVAILABLE,
        "the Redis Cluster is moving the namespace to another node; nothing was written, try again",
    ),
    "MASTERDOWN": (
        ErrorCode.STORE_UNAVAILABLE,
        "the Redis server lost its primary; try again",
    ),
    "MOVED": (
        ErrorCode.STORE_UNAVAILABLE,
        "the nodes of the Redis Cluster disagree on who holds the namespace; try again",
    ),
    "WRONGTYPE": (
        ErrorCode.RECORD_CORRUPT,
        "a key under the prefix is used by another program; choose another prefix",
    ),
}


def code_of(refusal: Exception) -> str:
    """Return the word that a refusal begins with, such as ``MOVED``."""
    for kind, code in _CLASSES.items():
        if isinstance(refusal, kind):
            return code
    if _FORBIDDEN_IN_SCRIPT in str(refusal):
        return "NOPERM"
    word = str(refusal).partition(" ")[0]
    return word if word.isupper() else "ERR"


def is_loading(error: StorageError) -> bool:
    """Whether an error says that the server still reads its file."""
    return isinstance(error.__cause__, Exception) and code_of(error.__cause__) == "LOADING"


def refused(refusal: Exception) -> WorkspaceError:
    """Return the error to raise for a command that the server refused; the refusal becomes its ``__cause__``."""
    code = code_of(refusal)
    error: WorkspaceError
    if code in ("NOAUTH", "NOPERM", "WRONGPASS"):
        error = StorageError(
            "the Redis server refuses the user or its rights; check the credentials and the ACL",
            retryable=False,
        )
    elif code in _MESSAGES:
        kind, message = _MESSAGES[code]
        error = StorageError(message, code=kind)
    else:
        error = StorageError("the Redis server refused a command; see the cause")
    error.__cause__ = refusal
    return error


def lost(error: Lost) -> StorageError:
    """Return the error of a call whose connection ended, and for which waiting did not help."""
    if isinstance(error.__cause__, Silent):
        ours = StorageError(
            "the Redis server did not answer in time; try again", code=ErrorCode.STORE_TIMEOUT
        )
    else:
        ours = StorageError("the connection to the Redis server was lost; try again")
    ours.__cause__ = error.__cause__ or error
    return ours


def connecting_failed(error: Exception, place: str) -> WorkspaceError:
    """Return the error of a connection that was not made; `place` carries no credentials."""
    if isinstance(error, WorkspaceError):
        return error
    if isinstance(error, exceptions.ResponseError) or code_of(error) != "ERR":
        return refused(error)
    ours: StorageError
    if isinstance(error, exceptions.TimeoutError | TimeoutError):
        ours = StorageError(
            f"the Redis server at {place} did not answer in time; check the address",
            code=ErrorCode.STORE_TIMEOUT,
        )
    else:
        ours = StorageError(
            f"the Redis server at {place} cannot be reached; check the address and that it runs"
        )
    ours.__cause__ = error
    return ours


def evicting(policy: str) -> UnsupportedError:
    """Return the refusal of a server that throws keys away when its memory is full."""
    return UnsupportedError(
        f"The Redis server evicts keys (maxmemory-policy {policy}), which would lose files; "
        "set maxmemory-policy to noeviction.",
        details={"maxmemory_policy": policy},
    )
