"""What the builder hands over: a batch, and what it will have made."""

from __future__ import annotations

from msgspec import Struct, field

from crux_workspace.engine.codec import ArtifactRecord, Head
from crux_workspace.engine.entry import Entry
from crux_workspace.engine.ports import AppendedVersion
from crux_workspace.storage.records import Batch

__all__ = ["Built"]


class Built(Struct, gc=False):
    """A batch, and what it will have made."""

    batch: Batch
    heads: dict[str, Head] = field(default_factory=dict)
    """New heads by path."""
    artifacts: dict[str, ArtifactRecord] = field(default_factory=dict)
    """New artifact records by path."""
    versions: list[AppendedVersion] = field(default_factory=list)
    turns: list[Entry] = field(default_factory=list)
    """Ended versions whose commit is to write earlier ones smaller."""

    def entry(self, path: str, sequence: int, at: int) -> Entry:
        """Return the head at a path as it is once the batch is commit `sequence`."""
        return Entry(path, self.heads[path], sequence, at)
