"""Options of calls and constructors: what a bad one is refused with."""

from __future__ import annotations

import reprlib

from crux_workspace.errors import InvalidInputError

__all__ = [
    "MOST",
    "check_callable",
    "check_flags",
    "needed_number",
    "ordinal",
    "refused_option",
    "seconds",
    "shown",
    "whole_number",
]

MOST = (1 << 63) - 1
"""Largest number of a version, a line or an occurrence: what every store and every wire can hold."""
_MOST_SHOWN_BITS = 64
_MOST_SECONDS = 1_000_000_000
_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 80


def refused_option(name: str, wanted: str, value: object) -> InvalidInputError:
    """Make the error of an option that is none (``INVALID_ARGUMENT``); it names the type of what was given, never the value."""
    return InvalidInputError(
        f"{name} must be {wanted}, got {type(value).__name__}.", details={"option": name}
    )


def check_flags(**flags: object) -> None:
    """Refuse options that are neither True nor False: what is merely truthy, ``"no"`` say, would do what nobody asked for."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise refused_option(name, "True or False", value)


def check_callable(name: str, value: object) -> None:
    """Refuse an option that cannot be called."""
    if not callable(value):
        raise refused_option(name, "callable", value)


def whole_number(name: str, value: object, *, least: int = 0, most: int | None = None) -> None:
    """Refuse an option that is no whole number of at least `least`, and at most `most` if that is given; None passes."""
    if value is not None:
        needed_number(name, value, least=least, most=most)


def needed_number(name: str, value: object, *, least: int = 1, most: int | None = None) -> int:
    """Return a whole number, or refuse one that is none, or below `least` or above `most`; None does not pass."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        wanted = f"of at least {least}"
    elif most is not None and value > most:
        wanted = f"from {least} to {most}"
    else:
        return value
    raise InvalidInputError(
        f"{name} must be a whole number {wanted}, got {shown(value)}.", details={"option": name}
    )


def ordinal(name: str, value: object) -> None:
    """Refuse an option that is no number of a version or a line, from 1 to `MOST`; None passes."""
    whole_number(name, value, least=1, most=MOST)


def seconds(name: str, value: object) -> None:
    """Refuse an option that is no number of seconds above 0 that a clock can wait for."""
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 < value <= _MOST_SECONDS
    ):
        return
    raise InvalidInputError(
        f"{name} must be a number of seconds above 0 and at most {_MOST_SECONDS:,}, got {shown(value)}.",
        details={"option": name},
    )


def shown(value: object) -> str:
    """Return any value in a few characters for a message, whatever it is: its own ``repr`` may be long, or fail."""
    if isinstance(value, int) and value.bit_length() > _MOST_SHOWN_BITS:
        return f"one of {value.bit_length()} bits"
    try:
        return _REPR.repr(value)
    except Exception:  # a number of 4,301 digits in a list, or an object whose repr raises
        return f"one of type {type(value).__name__}"
