"""The form of a bearer token: what can stand in an ``Authorization`` header as it is, and is too long to be guessed."""

from __future__ import annotations

from crux_workspace.errors import InvalidInputError

__all__ = ["check_secret", "is_bearer"]

_LEAST_CHARACTERS = 16
_MOST_CHARACTERS = 8_192


def is_bearer(token: object) -> bool:
    """Tell whether something can be sent as a bearer token: visible ASCII characters."""
    return (
        isinstance(token, str)
        and 0 < len(token) <= _MOST_CHARACTERS
        and token.isascii()
        and token.isprintable()
        and " " not in token
    )


def check_secret(token: str) -> str:
    """Return a token that is to let somebody in.

    Raises:
        InvalidInputError: It is too short to keep anybody out, or could not stand in a header (``INVALID_ARGUMENT``).
    """
    if not is_bearer(token) or len(token) < _LEAST_CHARACTERS:
        raise InvalidInputError(
            f"A token needs at least {_LEAST_CHARACTERS} printable ASCII characters without spaces.",
            details={"option": "token"},
            hint="crux-workspace token makes one.",
        )
    return token
