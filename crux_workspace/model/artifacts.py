"""A published, or about to be published, file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from crux_workspace.model.files import Status
from crux_workspace.model.values import Value

__all__ = ["Artifact"]


@dataclass(frozen=True, slots=True)
class Artifact(Value):
    """A file with a status, a kind or provenance; while pinned it shows the pinned version's content."""

    path: str
    kind: str | None
    status: Status
    version: int
    """The pinned version, or the head's while nothing is pinned."""
    head_version: int
    mime_type: str
    size: int
    uri: str
    """What `resolve` opens."""
    preview: str | None = field(repr=False)
    produced_by: dict[str, Any] | None = field(repr=False)
    metadata: dict[str, Any] | None = field(repr=False)
    created_at: int
    updated_at: int
    sha256: str | None
