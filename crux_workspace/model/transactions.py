"""What a transaction answers besides the callback's result."""

from __future__ import annotations

from dataclasses import dataclass

from crux_workspace.model.values import Value

__all__ = ["Replayed"]


@dataclass(frozen=True, slots=True)
class Replayed(Value):
    """The commit that a transaction made, or, for a known idempotency key, had made before."""

    sequence: int
    commit: str
    at: int
    """ms since the epoch."""
