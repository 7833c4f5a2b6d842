"""Every error a user can meet, cut by what the caller does next.

The class says how to react (correct the input, look elsewhere, ask again, report a bug); ``code`` says exactly what happened and
never changes its meaning. Messages name what failed, on what, why and what to do; ``details`` holds data and never file content.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

__all__ = [
    "AccessDeniedError",
    "AlreadyExistsError",
    "ApprovalRequiredError",
    "BinaryContentError",
    "ConflictError",
    "EditError",
    "ErrorCode",
    "InternalError",
    "InvalidInputError",
    "InvalidPathError",
    "LimitExceededError",
    "NotFoundError",
    "NothingToUndoError",
    "PathExistsError",
    "PathNotFoundError",
    "PermissionDeniedError",
    "ResumeError",
    "RuntimeRequiredError",
    "StateError",
    "StorageError",
    "UnsupportedError",
    "VersionNotFoundError",
    "WatchGapError",
    "WorkspaceError",
]


class ErrorCode(StrEnum):
    """Stable error codes; the list only grows."""

    INVALID_PATH = "INVALID_PATH"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    INVALID_CONTENT = "INVALID_CONTENT"
    EDIT_NOT_FOUND = "EDIT_NOT_FOUND"
    EDIT_AMBIGUOUS = "EDIT_AMBIGUOUS"
    BINARY_CONTENT = "BINARY_CONTENT"
    INVALID_CURSOR = "INVALID_CURSOR"
    INVALID_REGEX = "INVALID_REGEX"
    FILE_NOT_FOUND = "FILE_NOT_FOUND"
    VERSION_NOT_FOUND = "VERSION_NOT_FOUND"
    VERSION_EXPIRED = "VERSION_EXPIRED"
    COMMIT_NOT_FOUND = "COMMIT_NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    PATH_TYPE_CONFLICT = "PATH_TYPE_CONFLICT"
    OUTSIDE_MOUNTS = "OUTSIDE_MOUNTS"
    READ_ONLY_MOUNT = "READ_ONLY_MOUNT"
    VERSION_CONFLICT = "VERSION_CONFLICT"
    TRANSACTION_CONFLICT = "TRANSACTION_CONFLICT"
    FILE_TOO_LARGE = "FILE_TOO_LARGE"
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    COMMIT_TOO_LARGE = "COMMIT_TOO_LARGE"
    NOTHING_TO_UNDO = "NOTHING_TO_UNDO"
    NOTHING_TO_REDO = "NOTHING_TO_REDO"
    TRANSACTION_CLOSED = "TRANSACTION_CLOSED"
    WORKSPACE_CLOSED = "WORKSPACE_CLOSED"
    WRONG_THREAD = "WRONG_THREAD"
    WRONG_LOOP = "WRONG_LOOP"
    FORKED = "FORKED"
    SCHEMA_OUT_OF_DATE = "SCHEMA_OUT_OF_DATE"
    ASSET_STORE_REQUIRED = "ASSET_STORE_REQUIRED"
    CAPABILITY_MISSING = "CAPABILITY_MISSING"
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE"
    STORE_TIMEOUT = "STORE_TIMEOUT"
    RECORD_CORRUPT = "RECORD_CORRUPT"
    ASSET_MISSING = "ASSET_MISSING"
    INTERNAL = "INTERNAL"
    WATCH_GAP = "WATCH_GAP"
    RUNTIME_REQUIRED = "RUNTIME_REQUIRED"
    SOURCE_UNSUPPORTED = "SOURCE_UNSUPPORTED"
    SOURCE_INVALID = "SOURCE_INVALID"
    POLICY_INVALID = "POLICY_INVALID"
    INVALID_RESUME_PAYLOAD = "INVALID_RESUME_PAYLOAD"
    SUBAGENT_UNKNOWN = "SUBAGENT_UNKNOWN"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    APPROVAL_REQUIRED = "APPROVAL_REQUIRED"
    DELEGATION_DENIED = "DELEGATION_DENIED"
    RESUME_REQUIRED = "RESUME_REQUIRED"
    STALE_INTERRUPT = "STALE_INTERRUPT"
    INTERRUPT_SET_MISMATCH = "INTERRUPT_SET_MISMATCH"
    RESUME_IN_PROGRESS = "RESUME_IN_PROGRESS"
    MALFORMED_CHECKPOINT = "MALFORMED_CHECKPOINT"

    @property
    def hint(self) -> str:
        """What to do, in one sentence, where an error of this code gives no better hint."""
        return _HINTS[self]


_HINTS: dict[ErrorCode, str] = {
    ErrorCode.INVALID_PATH: "Name an absolute path below a mount, such as '/workspace/notes.md'.",
    ErrorCode.INVALID_ARGUMENT: "Correct that argument, then call again.",
    ErrorCode.INVALID_CONTENT: "Send text that UTF-8 has, a JSON value, or bytes.",
    ErrorCode.EDIT_NOT_FOUND: "Read the file, and copy what is to be replaced from it exactly.",
    ErrorCode.EDIT_AMBIGUOUS: "Read the lines around the hits to tell them apart.",
    ErrorCode.BINARY_CONTENT: "Take its bytes, by read_bytes or stream.",
    ErrorCode.INVALID_CURSOR: "Begin anew: a cursor continues only what gave it.",
    ErrorCode.INVALID_REGEX: "Correct the expression, or search for the literal text.",
    ErrorCode.FILE_NOT_FOUND: "List its directory to see what is there.",
    ErrorCode.VERSION_NOT_FOUND: "Take a version from the file's history.",
    ErrorCode.VERSION_EXPIRED: "It is gone for good; take a later version from the file's history.",
    ErrorCode.COMMIT_NOT_FOUND: "Take a commit that the log still lists.",
    ErrorCode.ALREADY_EXISTS: "Choose a name that is free.",
    ErrorCode.PATH_TYPE_CONFLICT: "Choose another path: at each there is a file or a directory, never both.",
    ErrorCode.OUTSIDE_MOUNTS: "Name a path below one of the mounts; they are what listing '/' shows.",
    ErrorCode.READ_ONLY_MOUNT: "Write below a mount whose access is readwrite.",
    ErrorCode.VERSION_CONFLICT: "Read it again and decide again.",
    ErrorCode.TRANSACTION_CONFLICT: "Begin another transaction and read everything anew.",
    ErrorCode.FILE_TOO_LARGE: "Split the content into several files, or have the limit raised.",
    ErrorCode.QUOTA_EXCEEDED: "Remove what is not needed any more, or have the limit raised.",
    ErrorCode.COMMIT_TOO_LARGE: "Split the work into several calls.",
    ErrorCode.NOTHING_TO_UNDO: "See the history for what there is to go back to.",
    ErrorCode.NOTHING_TO_REDO: "Only what the latest undo took back can be redone.",
    ErrorCode.TRANSACTION_CLOSED: "Make all calls of a transaction before its end.",
    ErrorCode.WORKSPACE_CLOSED: "Open a new one, and close it only behind the last call.",
    ErrorCode.WRONG_THREAD: "Await the asynchronous form here, or call from another thread.",
    ErrorCode.WRONG_LOOP: "Each belongs to the event loop that it was made on: call it there.",
    ErrorCode.FORKED: "Open everything anew in the child; connections do not outlive a fork.",
    ErrorCode.SCHEMA_OUT_OF_DATE: "Migrate it with the newest library that uses it.",
    ErrorCode.ASSET_STORE_REQUIRED: "Give the storage an asset store: binary and large content needs one.",
    ErrorCode.CAPABILITY_MISSING: "Do without it, or choose a store or a mount that offers it.",
    ErrorCode.STORE_UNAVAILABLE: "Call again later; when it goes on, whoever runs the store has to look.",
    ErrorCode.STORE_TIMEOUT: "It may have taken effect: call again with the same idempotency_key, or look first.",
    ErrorCode.RECORD_CORRUPT: "Whoever runs the store has to check it before anything more is written.",
    ErrorCode.ASSET_MISSING: "Write the file again, or restore the assets from a backup.",
    ErrorCode.INTERNAL: "This is a defect of the library: please report it.",
    ErrorCode.WATCH_GAP: "Read the state anew: events before the oldest that is left are gone.",
    ErrorCode.RUNTIME_REQUIRED: "Pass runtime=..., or call configure(runtime=local_runtime()) first.",
    ErrorCode.SOURCE_UNSUPPORTED: "Copy the file to a mount that the workspace keeps itself and work there.",
    ErrorCode.SOURCE_INVALID: "Whoever runs this workspace has to correct the source.",
    ErrorCode.POLICY_INVALID: "Correct the rules; none of them holds before.",
    ErrorCode.INVALID_RESUME_PAYLOAD: "Send one answer for each pending interrupt, with its id.",
    ErrorCode.SUBAGENT_UNKNOWN: "Choose a subagent that there is.",
    ErrorCode.PERMISSION_DENIED: "Do without it, or ask whoever sets the permissions.",
    ErrorCode.APPROVAL_REQUIRED: "Repeat the very same call when a person has answered.",
    ErrorCode.DELEGATION_DENIED: "Do the work without that subagent.",
    ErrorCode.RESUME_REQUIRED: "Answer what is pending before anything else.",
    ErrorCode.STALE_INTERRUPT: "Ask what is pending now, and answer that.",
    ErrorCode.INTERRUPT_SET_MISMATCH: "Answer all interrupts that are pending, and no others.",
    ErrorCode.RESUME_IN_PROGRESS: "Wait: somebody else's answer is being taken.",
    ErrorCode.MALFORMED_CHECKPOINT: "Make the call again that asked; what was kept of it is of no use.",
}


_RETRYABLE = frozenset(
    {
        ErrorCode.VERSION_CONFLICT,
        ErrorCode.TRANSACTION_CONFLICT,
        ErrorCode.STORE_UNAVAILABLE,
        ErrorCode.STORE_TIMEOUT,
    }
)


class WorkspaceError(Exception):
    """Root of every error this library raises on purpose.

    Attributes:
        code: Stable upper-snake code.
        message: One sentence: what failed, on what, why, what to do.
        details: Data about the failure; never file content.
        hint: What to do next, fit for a model to read; the code's own where the raiser knows no better.
        retryable: Whether repeating the same call later can succeed.
    """

    default_code = ErrorCode.INTERNAL

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode | str | None = None,
        details: dict[str, Any] | None = None,
        hint: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.code = ErrorCode(code) if code is not None else self.default_code
        self.message = message
        self.details = dict(details) if details else {}
        self.hint: str = hint or self.code.hint
        self.retryable = self.code in _RETRYABLE if retryable is None else retryable

    def __str__(self) -> str:
        return self.message

    def to_dict(self) -> dict[str, Any]:
        """Return the error as plain JSON data."""
        return {
            "code": str(self.code),
            "message": self.message,
            "details": self.details,
            "hint": self.hint,
            "retryable": self.retryable,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        state = (self.message, str(self.code), self.details, self.hint, self.retryable)
        return (_rebuild, (type(self), *state))


def _rebuild(
    cls: type[WorkspaceError],
    message: str,
    code: str,
    details: dict[str, Any],
    hint: str,
    retryable: bool,
) -> WorkspaceError:
    return cls(message, code=code, details=details, hint=hint, retryable=retryable)


class InvalidInputError(WorkspaceError, ValueError):
    """The call itself is wrong: correct the arguments."""

    default_code = ErrorCode.INVALID_ARGUMENT


class InvalidPathError(InvalidInputError):
    """The path can never name a file (``INVALID_PATH``)."""

    default_code = ErrorCode.INVALID_PATH


class EditError(InvalidInputError):
    """The text to replace is not there, or there more than once (``EDIT_NOT_FOUND``, ``EDIT_AMBIGUOUS``)."""

    default_code = ErrorCode.EDIT_NOT_FOUND


class BinaryContentError(InvalidInputError):
    """A text operation met binary content (``BINARY_CONTENT``)."""

    default_code = ErrorCode.BINARY_CONTENT


class NotFoundError(WorkspaceError, LookupError):
    """What the call names does not exist (any more)."""

    default_code = ErrorCode.FILE_NOT_FOUND


class PathNotFoundError(NotFoundError, FileNotFoundError):
    """There is no live file at the path (``FILE_NOT_FOUND``)."""

    default_code = ErrorCode.FILE_NOT_FOUND


class VersionNotFoundError(NotFoundError):
    """The version never existed, or was collected or purged (``VERSION_NOT_FOUND``, ``VERSION_EXPIRED``)."""

    default_code = ErrorCode.VERSION_NOT_FOUND


class AlreadyExistsError(WorkspaceError):
    """Something is already there."""

    default_code = ErrorCode.ALREADY_EXISTS


class PathExistsError(AlreadyExistsError, FileExistsError):
    """There is already a file at the destination (``ALREADY_EXISTS``)."""

    default_code = ErrorCode.ALREADY_EXISTS


class AccessDeniedError(WorkspaceError, PermissionError):
    """The workspace does not allow this here."""

    default_code = ErrorCode.OUTSIDE_MOUNTS


class PermissionDeniedError(AccessDeniedError):
    """A rule, a person or the lack of one refuses the operation (``PERMISSION_DENIED``, ``DELEGATION_DENIED``)."""

    default_code = ErrorCode.PERMISSION_DENIED


class ApprovalRequiredError(AccessDeniedError):
    """The operation waits for a person (``APPROVAL_REQUIRED``): answer the interrupt, then repeat the same call.

    Attributes:
        interrupt: The `crux_workspace.agent.Interrupt` to answer, or None.
    """

    default_code = ErrorCode.APPROVAL_REQUIRED

    interrupt: Any = None

    def waiting_for(self, interrupt: object) -> ApprovalRequiredError:
        """Return this error with the interrupt to answer."""
        self.interrupt = interrupt
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (*super().__reduce__(), {"interrupt": self.interrupt})


class ConflictError(WorkspaceError):
    """Somebody else changed it: read again and decide again."""

    default_code = ErrorCode.VERSION_CONFLICT


class LimitExceededError(WorkspaceError):
    """A configured limit refuses the change (``FILE_TOO_LARGE``, ``QUOTA_EXCEEDED``, ``COMMIT_TOO_LARGE``)."""

    default_code = ErrorCode.QUOTA_EXCEEDED


class StateError(WorkspaceError, RuntimeError):
    """The call does not fit the state the object or the file is in."""

    default_code = ErrorCode.WORKSPACE_CLOSED


class NothingToUndoError(StateError):
    """The file has no earlier content (``NOTHING_TO_UNDO``)."""

    default_code = ErrorCode.NOTHING_TO_UNDO


class RuntimeRequiredError(StateError):
    """The call needs a runtime, and none was configured (``RUNTIME_REQUIRED``)."""

    default_code = ErrorCode.RUNTIME_REQUIRED


class ResumeError(StateError):
    """A resume that does not fit what is pending.

    One of ``RESUME_REQUIRED``, ``STALE_INTERRUPT``, ``INTERRUPT_SET_MISMATCH``, ``RESUME_IN_PROGRESS``, ``MALFORMED_CHECKPOINT``.
    """

    default_code = ErrorCode.STALE_INTERRUPT


class UnsupportedError(WorkspaceError):
    """This store or mount cannot do that."""

    default_code = ErrorCode.CAPABILITY_MISSING


class StorageError(WorkspaceError):
    """The store failed; the driver's own error is chained as ``__cause__``."""

    default_code = ErrorCode.STORE_UNAVAILABLE


class WatchGapError(StorageError):
    """Events between a cursor and the oldest one that is left cannot be delivered any more (``WATCH_GAP``).

    Read the state again; delivery goes on at the oldest event that the log still has.
    """

    default_code = ErrorCode.WATCH_GAP


class InternalError(WorkspaceError):
    """A broken invariant of this library: please report it."""

    default_code = ErrorCode.INTERNAL
