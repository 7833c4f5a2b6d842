"""One change of one path, as the log keeps it and as subscribers see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from crux_workspace.model.values import Value

__all__ = ["PURGED_PATH", "Change", "ChangeType"]

PURGED_PATH = "<purged>"
"""Stands in the log and in events for the paths of a file that was purged since. No path can be spelt like it: paths are absolute."""

ChangeType = Literal["create", "update", "delete", "rename"]


@dataclass(frozen=True, slots=True)
class Change(Value):
    """What one commit did to one path."""

    type: ChangeType
    path: str
    """Where the file is afterwards; for a delete, where it was. `PURGED_PATH` when the file was purged by a later commit."""
    from_path: str | None = None
    """For a rename, where the file was, or `PURGED_PATH` likewise."""
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
