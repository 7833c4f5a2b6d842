"""Options of calls and constructors: what a bad one is refused with."""

from __future__ import annotations

import reprlib

from crux_workspace.errors import InvalidInputError

__all__ = ["MOST", "needed_function", "needed_number", "refused_option", "whole_number"]

MOST = (1 << 63) - 1
"""Largest number that an option can be: what every store and every wire can hold."""


def refused_option(name: str, wanted: str, value: object) -> InvalidInputError:
    """Make the error of an option that is none (``INVALID_ARGUMENT``); it names the type of what was given, never the value."""
    return InvalidInputError(
        f"{name} must be {wanted}, got {type(value).__name__}.", details={"option": name}
    )


def needed_function(name: str, value: object) -> None:
    """Refuse an option that cannot be called."""
    if not callable(value):
        raise refused_option(name, "a function", value)


def whole_number(name: str, value: object, *, least: int = 0, bounded: bool = True) -> None:
    """Refuse an option that is no whole number of at least `least` and, if `bounded`, at most `MOST`; None passes."""
    if value is not None:
        needed_number(name, value, least=least, bounded=bounded)


def needed_number(name: str, value: object, *, least: int = 1, bounded: bool = True) -> None:
    """Refuse an option that is no whole number of at least `least` and, if `bounded`, at most `MOST`; None does not pass."""
    if isinstance(value, int) and not isinstance(value, bool):
        if least <= value and (value <= MOST or not bounded):
            return
        if not -MOST <= value <= MOST:
            raise InvalidInputError(
                f"{name} must be a whole number from {least} to {MOST}, got one of {value.bit_length()} bits.",
                details={"option": name},
            )
    raise InvalidInputError(
        f"{name} must be a whole number of at least {least}, got {reprlib.repr(value)}.",
        details={"option": name},
    )
