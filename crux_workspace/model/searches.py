"""What `grep` returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from crux_workspace.model.matching import GrepMatch
from crux_workspace.model.values import Value

__all__ = ["GrepResult"]


@dataclass(frozen=True, slots=True)
class GrepResult(Value):
    """Matches in order of path, line and column."""

    matches: list[GrepMatch]
    truncated: bool = False
    """True only when a match was left out."""
    expired: int = 0
    """In a view of the past: files left out because their content was collected or purged since."""
    failed: dict[str, str] = field(default_factory=dict)
    """With ``partial=True``: mounts whose source failed, with the code of the error; their matches may be left out."""

    def __iter__(self) -> Iterator[GrepMatch]:
        return iter(self.matches)

    def __len__(self) -> int:
        return len(self.matches)
