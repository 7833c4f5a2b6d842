"""What stores throw, turned into the errors that users know, and the refusals that stores with connections share."""

from __future__ import annotations

from crux_workspace.errors import ErrorCode, StateError, StorageError

__all__ = ["closed_error", "forked_error", "unavailable", "wrong_loop_error"]


def unavailable(what: str, error: BaseException) -> StorageError:
    """Make the error of a store that failed in its own way; chain `error` to it."""
    return StorageError(
        f"The {what} failed ({type(error).__name__}); try again when it is back.",
        code=ErrorCode.STORE_UNAVAILABLE,
    )


def closed_error() -> StateError:
    """Make the error of a call on a storage that is closed."""
    return StateError("the storage is closed", code=ErrorCode.WORKSPACE_CLOSED)


def forked_error() -> StateError:
    """Make the error of a call in a forked child."""
    return StateError(
        "the storage was opened before this process was forked; open it again in the child",
        code=ErrorCode.FORKED,
    )


def wrong_loop_error() -> StateError:
    """Make the error of a call on another loop than the one that opened the storage."""
    return StateError(
        "the storage belongs to another event loop; use it there, or open one for this loop",
        code=ErrorCode.WRONG_LOOP,
    )
