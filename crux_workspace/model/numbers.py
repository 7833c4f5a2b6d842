"""Numbers that callers give as options."""

from __future__ import annotations

from crux_workspace.errors import InvalidInputError

__all__ = ["needed_number", "whole_number"]


def whole_number(name: str, value: object, *, least: int = 0) -> None:
    """Refuse an option that is no whole number of at least `least`; None passes."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= least):
        return
    raise InvalidInputError(
        f"{name} must be a whole number of at least {least}, got {value!r}.",
        details={"option": name},
    )


def needed_number(name: str, value: object, *, least: int = 1) -> None:
    """Refuse an option that is no whole number of at least `least`; None does not pass."""
    whole_number(name, least - 1 if value is None else value, least=least)
