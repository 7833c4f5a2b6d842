"""The cursor of the event log: a place between two events of one namespace.

40 bytes, base64url without padding: format (1), 7 bytes of the partition's name hash, 8 of its incarnation's, sequence (8), index in
the commit (8, all ones = after its last event), 8 of the commit id's hash. The hashes let a resume tell a foreign cursor from a log
that was replaced.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from dataclasses import dataclass

from crux_workspace.errors import ErrorCode, InvalidInputError

__all__ = ["AFTER_COMMIT", "EventCursor", "decode_event_cursor", "encode_event_cursor", "mark"]

AFTER_COMMIT = 2**64 - 1
"""Index that lies behind the last event of a commit."""

_LAYOUT = struct.Struct(">B7s8sQQ8s")
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class EventCursor:
    """A decoded cursor; the marks are hashes to compare, not names."""

    partition: bytes
    incarnation: bytes
    sequence: int
    index: int
    commit: bytes


def mark(text: str, size: int = 8) -> bytes:
    """Return the short hash by which a cursor remembers a name or an id."""
    return hashlib.blake2b(text.encode(), digest_size=size).digest()


def encode_event_cursor(
    partition: str, incarnation: str, sequence: int, commit_id: str, index: int = AFTER_COMMIT
) -> str:
    """Make the cursor right after event `index` of a commit (default: after the whole commit)."""
    data = _LAYOUT.pack(
        _FORMAT, mark(partition, 7), mark(incarnation), sequence, index, mark(commit_id)
    )
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode_event_cursor(cursor: str, partition: str) -> EventCursor:
    """Read a cursor of this partition.

    Raises:
        InvalidInputError: The cursor is malformed, or of another namespace (``INVALID_CURSOR``).
    """
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        format_, owner, incarnation, sequence, index, commit = _LAYOUT.unpack(data)
    except (binascii.Error, struct.error, ValueError, TypeError, AttributeError):
        format_ = None
    if format_ != _FORMAT or owner != mark(partition, 7):
        raise InvalidInputError(
            "The cursor is malformed or belongs to another namespace; start without a cursor.",
            code=ErrorCode.INVALID_CURSOR,
        )
    return EventCursor(owner, incarnation, sequence, index, commit)
