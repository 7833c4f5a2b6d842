"""What listens may fail; the operation must not."""

from __future__ import annotations

import logging

__all__ = ["note_failure"]

_logger = logging.getLogger("crux_workspace")


def note_failure(what: str, error: Exception) -> None:
    """Log that telemetry failed, by the error's class only: its text may hold paths or content."""
    _logger.debug("telemetry: %s failed with %s", what, type(error).__name__)
