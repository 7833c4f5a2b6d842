"""Where the parts of a partition lie in a minimal store."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from crux_workspace.storage.layout import number

__all__ = ["PartitionKeys"]


@dataclass(frozen=True, slots=True)
class PartitionKeys:
    """The fixed keys of one partition; its name is hashed, so that any name gives a short plain key."""

    root: str
    mark: str

    @classmethod
    def of(cls, root: str, partition: str) -> PartitionKeys:
        """Return the keys of a partition below the store's own prefix."""
        return cls(root, hashlib.sha256(partition.encode()).hexdigest())

    def log(self, position: int) -> str:
        """Key of a journal entry."""
        return f"{self.root}log/{self.mark}/{number(position)}"

    def checkpoint(self, position: int) -> str:
        """Key of the checkpoint that stands for all entries up to a position."""
        return f"{self.root}checkpoint/{self.mark}/{number(position)}"

    def node(self, node: str) -> str:
        """Key of a node of a checkpoint's tree."""
        return f"{self.root}node/{self.mark}/{node}"

    def body(self, ref: str) -> str:
        """Key of a body that a checkpoint's tree refers to."""
        return f"{self.root}body/{self.mark}/{ref}"

    def tip(self) -> str:
        """Key of the hint where the journal's end is to be looked for."""
        return f"{self.root}tip/{self.mark}"

    def name(self) -> str:
        """Key under which the partition's name stands."""
        return f"{self.root}name/{self.mark}"
