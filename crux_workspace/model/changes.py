"""One change of one path, as the log keeps it and as subscribers see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from crux_workspace.model.values import Value

__all__ = ["Change", "ChangeType"]

ChangeType = Literal["create", "update", "delete", "rename"]


@dataclass(frozen=True, slots=True)
class Change(Value):
    """What one commit did to one path."""

    type: ChangeType
    path: str
    """Where the file is afterwards; for a delete, where it was."""
    from_path: str | None = None
    """For a rename, where the file was."""
    file_id: str = ""
    """Identity of the file (32 hex)."""
    replaced: str | None = None
    """Identity of a file that this change overwrote."""
    version: int | None = None
    """Version after the change."""
    previous_version: int | None = None
    """Version before it; None when there was no live file."""
    attributes: bool = False
    """True when only attributes changed (no new version)."""
