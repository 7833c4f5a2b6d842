"""Every refusal as ``application/problem+json`` with our codes, and which status each code has."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.responses import Response

from crux_workspace.errors import ErrorCode, WorkspaceError

__all__ = [
    "MEDIA_TYPE",
    "STATUS",
    "Refusal",
    "busy",
    "failed_precondition",
    "problem",
    "status_of",
    "too_large",
    "too_slow",
]

MEDIA_TYPE = "application/problem+json"

_BY_STATUS = {
    400: (
        "INVALID_PATH INVALID_ARGUMENT INVALID_CONTENT INVALID_CURSOR INVALID_REGEX INVALID_RESUME_PAYLOAD POLICY_INVALID"
    ),
    403: "OUTSIDE_MOUNTS READ_ONLY_MOUNT PERMISSION_DENIED APPROVAL_REQUIRED DELEGATION_DENIED",
    404: "FILE_NOT_FOUND VERSION_NOT_FOUND COMMIT_NOT_FOUND SUBAGENT_UNKNOWN",
    409: (
        "ALREADY_EXISTS PATH_TYPE_CONFLICT VERSION_CONFLICT TRANSACTION_CONFLICT NOTHING_TO_UNDO NOTHING_TO_REDO TRANSACTION_CLOSED "
        "RESUME_REQUIRED STALE_INTERRUPT INTERRUPT_SET_MISMATCH RESUME_IN_PROGRESS MALFORMED_CHECKPOINT"
    ),
    410: "VERSION_EXPIRED WATCH_GAP",
    413: "FILE_TOO_LARGE COMMIT_TOO_LARGE",
    422: "EDIT_NOT_FOUND EDIT_AMBIGUOUS BINARY_CONTENT",
    500: "INTERNAL RECORD_CORRUPT ASSET_MISSING WRONG_THREAD WRONG_LOOP FORKED",
    501: "SOURCE_UNSUPPORTED CAPABILITY_MISSING ASSET_STORE_REQUIRED RUNTIME_REQUIRED",
    502: "SOURCE_INVALID",
    503: "STORE_UNAVAILABLE SCHEMA_OUT_OF_DATE WORKSPACE_CLOSED",
    504: "STORE_TIMEOUT",
    507: "QUOTA_EXCEEDED",
}
STATUS: dict[str, int] = {
    code: status for status, codes in _BY_STATUS.items() for code in codes.split()
}
"""The status of each error code of the library."""


class Refusal(Exception):
    """A request that the service itself refuses, before or instead of calling the workspace."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        code: ErrorCode = ErrorCode.INVALID_ARGUMENT,
        hint: str | None = None,
        details: dict[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        retryable: bool = False,
        close: bool = False,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.code = code
        self.hint = hint or code.hint
        self.details = details or {}
        self.headers = dict(headers or {})
        self.retryable = retryable
        if close:
            self.headers["connection"] = "close"


def status_of(error: WorkspaceError) -> int:
    """Return the status that an error of the library is answered with."""
    return STATUS.get(error.code, 500)


def problem(error: Refusal | WorkspaceError) -> Response:
    """Make the answer to a refused request."""
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    if isinstance(error, Refusal):
        found, detail = error.status, error.detail
        headers |= error.headers
    else:
        found, detail = status_of(error), error.message
        if found in (503, 504):
            headers["retry-after"] = "1"
    body = {
        "type": f"urn:crux-workspace:error:{str(error.code).lower()}",
        "title": HTTPStatus(found).phrase,
        "status": found,
        "detail": detail,
        "code": str(error.code),
        "hint": error.hint,
        "details": error.details,
        "retryable": error.retryable,
    }
    return Response(msgspec.json.encode(body), found, headers, MEDIA_TYPE)


def busy(what: str) -> Refusal:
    """Make the error of a service that has enough to do."""
    return Refusal(
        503,
        f"The service is busy: too many {what} at once.",
        code=ErrorCode.STORE_UNAVAILABLE,
        retryable=True,
        headers={"retry-after": "1"},
    )


def too_slow() -> Refusal:
    """Make the error of a request that ran out of time."""
    return Refusal(
        504,
        "The request took too long; whether it took effect is not known.",
        code=ErrorCode.STORE_TIMEOUT,
        hint="Repeat it with the same Idempotency-Key.",
        retryable=True,
        headers={"retry-after": "1"},
    )


def failed_precondition(path: str, details: dict[str, Any]) -> Refusal:
    """Make the error of a file that is not the one that a header names."""
    return Refusal(
        412,
        f"{path} is not what If-Match or If-None-Match demands.",
        code=ErrorCode.VERSION_CONFLICT,
        details={"path": path, **details},
        retryable=True,
    )


def too_large(limit: int) -> Refusal:
    """Make the error of a body above its limit."""
    return Refusal(
        413,
        f"The body has more than {limit} bytes.",
        code=ErrorCode.FILE_TOO_LARGE,
        details={"limit": limit},
        close=True,
    )
