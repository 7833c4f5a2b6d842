"""Wall clock and identities, injected wherever time or randomness matters."""

from __future__ import annotations

import time
from collections.abc import Callable
from os import urandom

__all__ = ["Clock", "IdSource", "random_id", "wall_clock_ms"]

Clock = Callable[[], int]
"""Returns ms since the epoch."""

IdSource = Callable[[], str]
"""Returns 32 fresh hex digits."""


def wall_clock_ms() -> int:
    """Return the time, ms since the epoch."""
    return time.time_ns() // 1_000_000


def random_id() -> str:
    """Return 32 random hex digits."""
    return urandom(16).hex()
