"""Moments of a namespace's log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from crux_workspace.errors import InvalidInputError
from crux_workspace.model.options import MOST

__all__ = ["Moment", "at_ms", "check_moment"]

Moment: TypeAlias = int | datetime
"""The sequence of a commit, or a time: the last commit at or before it."""


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at_ms(moment: datetime) -> int:
    """Return an aware time as whole milliseconds since the epoch, rounded down."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def check_moment(moment: object) -> Moment:
    """Refuse what is no moment (``INVALID_ARGUMENT``)."""
    if isinstance(moment, datetime):
        if moment.utcoffset() is None:
            raise InvalidInputError(
                "A datetime needs a time zone, e.g. datetime.now(timezone.utc)."
            )
        return moment
    if isinstance(moment, int) and not isinstance(moment, bool) and 0 <= moment <= MOST:
        return moment
    raise InvalidInputError(
        f"A moment is a commit's sequence or an aware datetime, got {type(moment).__name__}."
    )
