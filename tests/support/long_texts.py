"""A text that changes a little with every version, and looks at what a store keeps of its history."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from crux_workspace.engine.entry import PastState
from crux_workspace.engine.keys import STATE_PREFIX
from crux_workspace.engine.tree import scan_range
from crux_workspace.storage.planning import PartitionReader
from crux_workspace.storage.records import RecordStore

__all__ = ["GrowingText", "kept_states", "long_text"]

_WORDS = [
    "".join(random.Random(number).choices("abcdefghijklmnopqrstuvwxyz", k=3 + number % 7))
    for number in range(2_000)
]


def _line(chance: random.Random) -> str:
    return " ".join(chance.choices(_WORDS, k=12))


@dataclass
class GrowingText:
    """Versions of a text of about `size` bytes; each has a share of its lines written anew."""

    size: int
    share: float = 0.01
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        length = 0
        while length < self.size:
            self.lines.append(_line(self.chance))
            length += len(self.lines[-1]) + 1

    def next(self) -> str:
        """Return the text as it is, and change it."""
        text = "\n".join(self.lines)
        for _ in range(max(1, round(len(self.lines) * self.share))):
            self.lines[self.chance.randrange(len(self.lines))] = _line(self.chance)
        return text


def long_text(number: int, size: int = 4_200) -> str:
    """Return text that is written smaller when it is history; two of them differ in a line."""
    lines = GrowingText(size, chance=random.Random(2)).lines
    lines[number % len(lines)] = f"changed by version {number}"
    return "\n".join(lines)


async def kept_states(records: RecordStore, partition: str) -> list[PastState]:
    """Return all ended states of a namespace, with their bodies as they are kept."""
    reader = PartitionReader(records, partition)
    return [PastState.of(record) async for record in scan_range(reader, STATE_PREFIX, bodies=True)]
