"""The checks of the record store contract, by topic; `RECORD_CHECKS` holds them all."""

from __future__ import annotations

from crux_workspace.testing.record_checks import (
    bodies,
    ceilings,
    concurrency,
    expectations,
    filtering,
    folding,
    lifecycle,
    log,
    partitions,
    planned,
    quiet,
    reading,
    scanning,
    writing,
)
from crux_workspace.testing.record_checks.bench import RECORD_CHECKS

__all__ = [
    "RECORD_CHECKS",
    "bodies",
    "ceilings",
    "concurrency",
    "expectations",
    "filtering",
    "folding",
    "lifecycle",
    "log",
    "partitions",
    "planned",
    "quiet",
    "reading",
    "scanning",
    "writing",
]
