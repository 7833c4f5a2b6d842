"""What callers learn about files and directories; never their content."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from crux_workspace.errors import InvalidInputError
from crux_workspace.model.options import MOST
from crux_workspace.model.values import Value

__all__ = [
    "ContentKind",
    "GcReport",
    "IfVersion",
    "ListResult",
    "NamespacePage",
    "Operation",
    "Status",
    "StorageKind",
    "Usage",
    "WorkspaceDirectory",
    "WorkspaceEntry",
    "WorkspaceFile",
    "check_expected",
    "known_size",
]

ContentKind: TypeAlias = Literal["text", "json", "binary"]
StorageKind: TypeAlias = Literal["inline", "asset", "virtual"]
Status: TypeAlias = Literal["draft", "final"]
Operation: TypeAlias = Literal[
    "write", "edit", "append", "copy", "undo", "redo", "restore", "merge", "delete"
]


@dataclass(frozen=True, slots=True)
class WorkspaceFile(Value):
    """A live file as its last commit left it."""

    path: str
    id: str = ""
    """Identity of the file, 32 hex digits; it survives renames and deletion."""
    content_kind: ContentKind = "text"
    mime_type: str = "text/plain"
    size: int = 0
    """UTF-8 bytes (of JSON: in its compact form)."""
    version: int = 0
    sha256: str | None = None
    mount: str = ""
    """Path of the mount the file lies on."""
    storage: StorageKind = "virtual"
    uri: str | None = None
    """Where the bytes of an asset-backed file are; None for inline content."""
    preview: str | None = field(default=None, repr=False)
    """The first characters, at most 240; None for binary."""
    metadata: dict[str, Any] | None = field(default=None, repr=False)
    status: Status | None = None
    artifact_kind: str | None = None
    pinned_version: int | None = None
    produced_by: dict[str, Any] | None = field(default=None, repr=False)
    created_at: int = 0
    """ms since the epoch: first version."""
    updated_at: int = 0
    """ms since the epoch: last change of content, attributes or path."""
    sequence: int = 0
    """The commit of that last change."""
    commit: str | None = None
    """The same commit as an opaque string."""
    kind: Literal["file"] = "file"


def known_size(file: WorkspaceFile) -> int | None:
    """Return the size of a file; None where its source does not tell."""
    return None if file.storage == "virtual" and file.size == 0 else file.size


@dataclass(frozen=True, slots=True)
class WorkspaceDirectory(Value):
    """A directory: it exists while a live file is below it (mount roots always)."""

    path: str
    mount: str = ""
    kind: Literal["directory"] = "directory"


WorkspaceEntry: TypeAlias = WorkspaceFile | WorkspaceDirectory
IfVersion: TypeAlias = int | WorkspaceFile | None
"""What a change expects: a version number, 0 for no file, or the very file and version; None expects nothing."""


@dataclass(frozen=True, slots=True)
class ListResult(Value):
    """One page of a listing, in code point order, segment by segment."""

    entries: list[WorkspaceEntry]
    cursor: str | None = None
    """Pass it back for the next page; None on the last."""
    expired: int = 0
    """In a view of the past: files left out because their content was collected or purged since."""
    failed: dict[str, str] = field(default_factory=dict)
    """With ``partial=True``: mounts whose source failed, with the code of the error; what they hold may be left out."""

    def __iter__(self) -> Iterator[WorkspaceEntry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


@dataclass(frozen=True, slots=True)
class Usage(Value):
    """What a namespace holds."""

    live_bytes: int
    """Sizes of live files; what `max_namespace_bytes` limits."""
    live_files: int
    versions: int
    """All kept versions, heads and tombstones included."""
    history_bytes: int
    """Sizes of kept versions that are not heads."""
    max_namespace_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class NamespacePage(Value):
    """One page of namespace names, in code point order."""

    names: list[str]
    cursor: str | None = None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True)
class GcReport(Value):
    """What a collection did, or with `dry_run` would do."""

    dry_run: bool
    expired: int = 0
    """Files whose time to live had passed."""
    versions: int = 0
    """Versions collected beyond the configured history."""
    assets: int = 0
    """Assets deleted: released ones and orphans."""
    log_entries: int = 0
    """Commits trimmed from the log, and forgotten idempotency keys."""
    bytes: int = 0
    """Bytes of deleted assets and collected versions."""


def check_expected(given: object) -> None:
    """Refuse what cannot be an `IfVersion` (``INVALID_ARGUMENT``)."""
    if given is None or isinstance(given, WorkspaceFile):
        return
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= MOST:
        raise InvalidInputError(
            "if_version must be a version number, 0 for 'must not exist', or a WorkspaceFile.",
            details={"option": "if_version"},
        )
