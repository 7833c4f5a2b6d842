"""Answers of the service that are no result, as the errors that a local workspace raises."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from crux_workspace.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    ApprovalRequiredError,
    BinaryContentError,
    ConflictError,
    EditError,
    ErrorCode,
    InternalError,
    InvalidInputError,
    InvalidPathError,
    LimitExceededError,
    NotFoundError,
    NothingToUndoError,
    PathExistsError,
    PathNotFoundError,
    PermissionDeniedError,
    ResumeError,
    RuntimeRequiredError,
    StateError,
    StorageError,
    UnsupportedError,
    VersionNotFoundError,
    WatchGapError,
    WorkspaceError,
)

__all__ = [
    "KIND_OF",
    "MAX_PROBLEM_BYTES",
    "UNKNOWN_OUTCOME",
    "corrupt",
    "error_of_answer",
    "error_of_problem",
    "parsed",
    "unexpected",
]

MAX_PROBLEM_BYTES = 1 << 20
"""Longest error body that is read."""
UNKNOWN_OUTCOME = (ErrorCode.STORE_TIMEOUT, ErrorCode.STORE_UNAVAILABLE)
"""After these nobody knows whether a change has taken effect."""
_MAX_MESSAGE_CHARACTERS = 4_000
_MAX_KIND_CHARACTERS = 80

KIND_OF: dict[ErrorCode, type[WorkspaceError]] = {
    ErrorCode[code]: kind
    for kind, codes in (
        (InvalidPathError, "INVALID_PATH"),
        (
            InvalidInputError,
            "INVALID_ARGUMENT INVALID_CONTENT INVALID_CURSOR INVALID_REGEX POLICY_INVALID INVALID_RESUME_PAYLOAD",
        ),
        (EditError, "EDIT_NOT_FOUND EDIT_AMBIGUOUS"),
        (BinaryContentError, "BINARY_CONTENT"),
        (PathNotFoundError, "FILE_NOT_FOUND"),
        (VersionNotFoundError, "VERSION_NOT_FOUND VERSION_EXPIRED"),
        (NotFoundError, "COMMIT_NOT_FOUND SUBAGENT_UNKNOWN"),
        (PathExistsError, "ALREADY_EXISTS"),
        (AlreadyExistsError, "PATH_TYPE_CONFLICT"),
        (AccessDeniedError, "OUTSIDE_MOUNTS READ_ONLY_MOUNT"),
        (PermissionDeniedError, "PERMISSION_DENIED DELEGATION_DENIED"),
        (ApprovalRequiredError, "APPROVAL_REQUIRED"),
        (ConflictError, "VERSION_CONFLICT TRANSACTION_CONFLICT"),
        (LimitExceededError, "FILE_TOO_LARGE QUOTA_EXCEEDED COMMIT_TOO_LARGE"),
        (NothingToUndoError, "NOTHING_TO_UNDO"),
        (RuntimeRequiredError, "RUNTIME_REQUIRED"),
        (
            StateError,
            "NOTHING_TO_REDO TRANSACTION_CLOSED WORKSPACE_CLOSED WRONG_THREAD WRONG_LOOP FORKED SCHEMA_OUT_OF_DATE ASSET_STORE_REQUIRED",
        ),
        (
            ResumeError,
            "RESUME_REQUIRED STALE_INTERRUPT INTERRUPT_SET_MISMATCH RESUME_IN_PROGRESS MALFORMED_CHECKPOINT",
        ),
        (UnsupportedError, "CAPABILITY_MISSING SOURCE_UNSUPPORTED"),
        (
            StorageError,
            "STORE_UNAVAILABLE STORE_TIMEOUT RECORD_CORRUPT ASSET_MISSING SOURCE_INVALID",
        ),
        (WatchGapError, "WATCH_GAP"),
        (InternalError, "INTERNAL"),
    )
    for code in codes.split()
}
"""The class that each code is raised as."""

_OF_THE_SERVER = frozenset(
    {
        ErrorCode.WORKSPACE_CLOSED,
        ErrorCode.WRONG_THREAD,
        ErrorCode.WRONG_LOOP,
        ErrorCode.FORKED,
    }
)
"""Codes that say something of the object that was called: here of the server's, which the caller does not hold."""


def corrupt(why: str) -> StorageError:
    """Make the error of an answer that cannot be what it should be."""
    return StorageError(
        f"The HTTP service answered with something unusable: {why}.",
        code=ErrorCode.RECORD_CORRUPT,
        hint="Check that base_url is the address of a crux-workspace service, and that nothing in between changes answers.",
    )


def unexpected(status: int, headers: Mapping[str, str], wanted: str) -> StorageError:
    """Make the error of an answer that is another one than was asked for, as a proxy in between may give; it says which."""
    kind = headers.get("content-type", "")[:_MAX_KIND_CHARACTERS]
    told = kind if kind and kind.isascii() and kind.isprintable() else "no content type"
    return corrupt(f"status {status} with {told} instead of {wanted}")


def parsed(body: bytes) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON value of an answer.

    Raises:
        StorageError: It is none (``RECORD_CORRUPT``).
    """
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise corrupt("it is not JSON") from None


def error_of_answer(status: int, body: bytes) -> WorkspaceError:
    """Return the error that an answer with a status of 300 and more stands for; whatever it holds, it is one of ours."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and isinstance(found.get("code"), str):
        return error_of_problem(found, status)
    return _without_problem(status)


def error_of_problem(problem: dict[str, Any], status: int = 500) -> WorkspaceError:
    """Return the error that a problem describes; class, code, message, details and hint are those of the server's own."""
    try:
        code = ErrorCode(problem["code"])
    except (KeyError, ValueError):
        return _without_problem(status)
    detail, hint, details = (problem.get(name) for name in ("detail", "hint", "details"))
    message = (
        detail[:_MAX_MESSAGE_CHARACTERS]
        if isinstance(detail, str)
        else f"The service refused with {code}."
    )
    if code in _OF_THE_SERVER:
        return StorageError(
            f"The HTTP service cannot serve its workspace now ({code}).",
            code=ErrorCode.STORE_UNAVAILABLE,
            hint="It is closing, or was set up wrongly; try again when it is back.",
        )
    retryable = problem.get("retryable")
    return KIND_OF[code](
        message,
        code=code,
        details=details if isinstance(details, dict) else None,
        hint=hint[:_MAX_MESSAGE_CHARACTERS] if isinstance(hint, str) else None,
        retryable=retryable if isinstance(retryable, bool) else None,
    )


def _without_problem(status: int) -> WorkspaceError:
    """Make the error of an answer that tells nothing but its status: it may come from a proxy in between."""
    if status in (401, 403, 407):
        return PermissionDeniedError(
            f"The HTTP service refused the request ({status}).",
            hint="Give the token of somebody who may do this.",
        )
    if status < 400 and status != 304:  # 304 answers a question that is never asked
        return StorageError(
            f"The HTTP service answered with a redirection ({status}), which is not followed: the token is for base_url alone.",
            hint="Give the final address as base_url.",
            retryable=False,
        )
    if status in (408, 504):
        return StorageError(
            f"The HTTP service did not answer in time ({status}).", code=ErrorCode.STORE_TIMEOUT
        )
    if status == 413:
        return LimitExceededError(
            "The HTTP service refuses a request of this size.", code=ErrorCode.FILE_TOO_LARGE
        )
    if status == 429 or status >= 500:
        return StorageError(f"The HTTP service failed ({status}); try again when it is back.")
    return corrupt(f"status {status} without a problem that says why")
