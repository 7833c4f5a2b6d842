"""Entries of a file's history and of a namespace's log."""

from __future__ import annotations

from dataclasses import dataclass, field

from crux_workspace.model.changes import Change
from crux_workspace.model.files import ContentKind, Operation, StorageKind
from crux_workspace.model.values import Value

__all__ = ["CommitEntry", "VersionEntry"]


@dataclass(frozen=True, slots=True)
class VersionEntry(Value):
    """One immutable version of a file."""

    version: int
    path: str
    """Where the file was when the version was appended."""
    operation: Operation
    content_kind: ContentKind
    mime_type: str
    size: int
    storage: StorageKind
    preview: str | None = field(repr=False)
    created_at: int
    sha256: str | None
    restored_from: int | None
    """For undo and redo: the version whose content this one holds."""
    sequence: int
    commit: str


@dataclass(frozen=True, slots=True)
class CommitEntry(Value):
    """One commit of a namespace's log."""

    sequence: int
    commit: str
    """Opaque; `undo_commit` takes it."""
    at: int
    verb: str
    actor: str | None
    changes: list[Change]
    """By path."""
    cursor: str
    """The place in the log right after this commit."""
