"""What a transfer of many files did: counted, reported, and a failure at the end when a file was refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from crux_workspace.cli.output import Output
from crux_workspace.cli.reporting import host_failure
from crux_workspace.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    ConflictError,
    InvalidInputError,
    LimitExceededError,
    NotFoundError,
    WorkspaceError,
)

__all__ = ["ONE_FILE_FAILED", "Tally"]

ONE_FILE_FAILED = (
    AccessDeniedError,
    AlreadyExistsError,
    ConflictError,
    InvalidInputError,
    LimitExceededError,
    NotFoundError,
    OSError,
)
"""Failures that concern one file; the others may go on."""


@dataclass(slots=True)
class Tally:
    """The books of one import or export."""

    done_word: str
    """Past participle of the verb: "imported", "exported"."""
    files: int = 0
    bytes: int = 0
    skipped: list[dict[str, str]] = field(default_factory=list)
    failed: list[dict[str, Any]] = field(default_factory=list)

    def done(self, size: int) -> None:
        """Count one file."""
        self.files += 1
        self.bytes += size

    def skip(self, path: object, reason: str) -> None:
        """Note an entry that is left out by rule."""
        self.skipped.append({"path": str(path), "reason": reason})

    def fail(self, path: object, error: WorkspaceError | OSError) -> None:
        """Note a file that was refused."""
        known = error if isinstance(error, WorkspaceError) else host_failure(error)
        self.failed.append(
            {
                "path": str(path),
                "code": str(known.code),
                "message": known.message,
                "hint": known.hint,
            }
        )

    def show(self, out: Output) -> None:
        """Print the books: the sum on stdout, what was left out or refused on stderr."""
        if out.as_json:
            out.json(
                {
                    self.done_word: self.files,
                    "bytes": self.bytes,
                    "skipped": self.skipped,
                    "failed": self.failed,
                }
            )
            return
        for each in self.skipped:
            out.note(f"skipped {each['path']}: {each['reason']}")
        for each in self.failed:
            out.note(f"refused {each['path']}: {each['code']} {each['message']}")
        out.line(
            f"{self.done_word} {self.files} files, {self.bytes} bytes; "
            f"{len(self.skipped)} skipped, {len(self.failed)} refused"
        )

    def raise_failures(self) -> None:
        """Fail if a file was refused.

        Raises:
            WorkspaceError: With the code of the first refusal.
        """
        if not self.failed:
            return
        first = self.failed[0]
        count = len(self.failed)
        raise WorkspaceError(
            f"{count} {'file was' if count == 1 else 'files were'} not {self.done_word}; "
            f"the first: {first['path']}: {first['message']}",
            code=first["code"],
            details={"failed": count, self.done_word: self.files},
            hint=first["hint"],
            retryable=False,
        )
