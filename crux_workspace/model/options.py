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
    "whole_number",
]

MOST = (1 << 63) - 1
"""Largest number of a version, a line or an occurrence: what every store and every wire can hold."""
_MOST_SHOWN_BITS = 64


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


def whole_number(name: str, value: object, *, least: int = 0) -> None:
    """Refuse an option that is no whole number of at least `least`, however large; None passes."""
    if value is not None:
        needed_number(name, value, least=least)


def needed_number(name: str, value: object, *, least: int = 1) -> None:
    """Refuse an option that is no whole number of at least `least`, however large; None does not pass."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return
    raise InvalidInputError(
        f"{name} must be a whole number of at least {least}, got {_shown(value)}.",
        details={"option": name},
    )


def ordinal(name: str, value: object) -> None:
    """Refuse an option that is no number of a version or a line, from 1 to `MOST`; None passes."""
    whole_number(name, value, least=1)
    if isinstance(value, int) and value > MOST:
        raise InvalidInputError(
            f"{name} must be a whole number from 1 to {MOST}, got {_shown(value)}.",
            details={"option": name},
        )


def _shown(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > _MOST_SHOWN_BITS:
        return f"one of {value.bit_length()} bits"
    return reprlib.repr(value)
