"""Opaque cursors of listings: where a page ended, bound to the listing that gave it."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence

from crux_workspace.errors import ErrorCode, InvalidInputError

__all__ = ["decode_page_cursor", "encode_page_cursor"]

_FORMAT = b"\x01"
_CHECK_BYTES = 12


def _check(listing: Sequence[str]) -> bytes:
    digest = hashlib.blake2b(digest_size=_CHECK_BYTES)
    for part in listing:
        data = part.encode()
        digest.update(len(data).to_bytes(4, "big") + data)
    return digest.digest()


def encode_page_cursor(listing: Sequence[str], position: str) -> str:
    """Make the cursor of `position` in the listing that the strings name (verb, namespace, arguments)."""
    data = _FORMAT + _check((*listing, position)) + position.encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode_page_cursor(listing: Sequence[str], cursor: str) -> str:
    """Return the position of a cursor of this very listing.

    Raises:
        InvalidInputError: The cursor is malformed or belongs to another listing (``INVALID_CURSOR``).
    """
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        position = data[1 + _CHECK_BYTES :].decode()
        if data[: 1 + _CHECK_BYTES] == _FORMAT + _check((*listing, position)):
            return position
    except (binascii.Error, ValueError, TypeError, AttributeError):
        pass
    raise InvalidInputError(
        "The cursor is malformed or belongs to another listing; start again without a cursor.",
        code=ErrorCode.INVALID_CURSOR,
    )
