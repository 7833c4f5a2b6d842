"""What third-party stores throw, turned into the errors that users know."""

from __future__ import annotations

from crux_workspace.errors import ErrorCode, StorageError

__all__ = ["unavailable"]


def unavailable(what: str, error: BaseException) -> StorageError:
    """Make the error of a store that failed in its own way; chain `error` to it."""
    return StorageError(
        f"The {what} failed ({type(error).__name__}); try again when it is back.",
        code=ErrorCode.STORE_UNAVAILABLE,
    )
