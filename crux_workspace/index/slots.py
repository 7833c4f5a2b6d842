"""What names may ever be, and who has looked: whoever did is walked again when it becomes more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from crux_workspace.index.values import EMPTY, Values, joined

__all__ = ["EVERYTHING", "Readers", "Slots"]

EVERYTHING = "*"
"""Whoever reads this wants to know of new names too."""


@dataclass(slots=True)
class Readers:
    """Which scope is walked now, and which are to be walked again."""

    current: int = -1
    dirty: set[int] = field(default_factory=set)


class Slots:
    """Names with what they may be. They only ever grow, so the analysis comes to an end."""

    __slots__ = ("_readers", "_seen_by", "_values")

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._values: dict[str, Values] = {}
        self._seen_by: dict[str, set[int]] = {}

    def get(self, name: str) -> Values:
        """Return what a name may be, nothing when it is not there (yet)."""
        self._seen_by.setdefault(name, set()).add(self._readers.current)
        return self._values.get(name, EMPTY)

    def __contains__(self, name: str) -> bool:
        self._seen_by.setdefault(name, set()).add(self._readers.current)
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        self._seen_by.setdefault(EVERYTHING, set()).add(self._readers.current)
        return iter(list(self._values))

    def join(self, name: str, values: Values) -> None:
        """Let a name be these values too."""
        before = self._values.get(name)
        after = values if before is None else joined(before, values)
        if after == before:
            return
        self._values[name] = after
        self._readers.dirty.update(self._seen_by.get(name, ()))
        if before is None:
            self._readers.dirty.update(self._seen_by.get(EVERYTHING, ()))
