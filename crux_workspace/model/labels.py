"""Short strings that callers name things with: actors, keys, kinds, MIME types."""

from __future__ import annotations

from crux_workspace.errors import InvalidInputError

__all__ = ["MAX_LABEL_BYTES", "check_label"]

MAX_LABEL_BYTES = 512


def check_label(option: str, value: object) -> str:
    """Return a label as a plain string, or refuse what could not be stored or shown on one line.

    Args:
        option: Name of the option, for the message.
        value: What was given.

    Returns:
        The label.

    Raises:
        InvalidInputError: It is no string, blank, above 512 bytes of UTF-8, or holds control characters or lone surrogates
            (``INVALID_ARGUMENT``).
    """
    if isinstance(value, str) and value.strip() and value.isprintable():
        plain = str.__str__(value)
        if len(plain.encode()) <= MAX_LABEL_BYTES:
            return plain
    raise InvalidInputError(
        f"{option} must be a non-blank string of printable characters and at most {MAX_LABEL_BYTES} bytes.",
        details={"option": option},
    )
