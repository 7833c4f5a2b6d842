"""Options of calls and constructors: what a bad one is refused with."""

from __future__ import annotations

from typing import TypeGuard

from crux_workspace.errors import InvalidInputError

__all__ = [
    "check_callable",
    "check_flags",
    "is_number",
    "needed_number",
    "refused_option",
    "whole_number",
]

_BITS = 10_000


def refused_option(name: str, wanted: str, value: object) -> InvalidInputError:
    """Make the error of an option that is none (``INVALID_ARGUMENT``); it names the type of what was given, never the value."""
    return InvalidInputError(
        f"{name} must be {wanted}, got {type(value).__name__}.", details={"option": name}
    )


def is_number(value: object) -> TypeGuard[int]:
    """Tell whether a value is a whole number that a message can show; Python refuses to write decimals of 4,300 digits and more."""
    return isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= _BITS


def whole_number(name: str, value: object, *, least: int = 0) -> None:
    """Refuse an option that is no whole number of at least `least`; None passes."""
    if value is None:
        return
    if not is_number(value):
        raise refused_option(name, f"a whole number of at least {least}", value)
    if value < least:
        raise InvalidInputError(
            f"{name} must be a whole number of at least {least}, got {value}.",
            details={"option": name},
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


def needed_number(name: str, value: object, *, least: int = 1) -> None:
    """Refuse an option that is no whole number of at least `least`; None does not pass."""
    if value is None:
        raise refused_option(name, f"a whole number of at least {least}", value)
    whole_number(name, value, least=least)
