"""What a transaction answers besides the callback's result."""

from __future__ import annotations

from dataclasses import dataclass, field

from crux_workspace.model.values import Value

__all__ = ["Replayed"]


@dataclass(frozen=True, slots=True)
class Replayed(Value):
    """The commit that a transaction made, or, for a known idempotency key, had made before."""

    sequence: int
    commit: str
    at: int
    """ms since the epoch."""
    fresh: bool = field(default=False, repr=False, compare=False)
    """True when it was made by this very transaction."""
