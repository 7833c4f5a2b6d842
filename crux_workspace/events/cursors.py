"""The cursor of the event log: a place between two events of one namespace.

40 bytes, base64url without padding: format (1), 7 bytes of the partition's name hash, 8 of its incarnation's, sequence (8), how many
of that commit's events lie before the place (8, all ones = all of them), 8 of the commit id's hash. The hashes let a resume tell a
foreign cursor from a log that was replaced. Before the first commit (sequence 0) both later hashes are zeros: there may be no
partition yet, and whichever comes into being is the right one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from dataclasses import dataclass

from crux_workspace.errors import ErrorCode, InvalidInputError

__all__ = [
    "AFTER_COMMIT",
    "NO_MARK",
    "EventCursor",
    "decode_event_cursor",
    "encode_event_cursor",
    "invalid_cursor",
    "mark",
    "parse_event_cursor",
    "partition_mark",
    "start_cursor",
]

AFTER_COMMIT = 2**64 - 1
"""Index that lies behind the last event of a commit."""
NO_MARK = bytes(8)
"""Stands for a name or an id that there is none of, or that is not known."""

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

    @property
    def is_inside(self) -> bool:
        """Whether events of the commit itself may come after it."""
        return self.index != AFTER_COMMIT

    def encode(self) -> str:
        """Write it as users get it."""
        data = _LAYOUT.pack(
            _FORMAT, self.partition, self.incarnation, self.sequence, self.index, self.commit
        )
        return base64.urlsafe_b64encode(data).decode().rstrip("=")


def mark(text: str, size: int = 8) -> bytes:
    """Return the short hash by which a cursor remembers a name or an id."""
    return hashlib.blake2b(text.encode(), digest_size=size).digest()


def partition_mark(partition: str) -> bytes:
    """Return the hash by which a cursor knows its partition."""
    return mark(partition, 7)


def start_cursor(partition: bytes) -> EventCursor:
    """Return the place before the first commit of a partition, given its mark."""
    return EventCursor(partition, NO_MARK, 0, AFTER_COMMIT, NO_MARK)


def encode_event_cursor(
    partition: str, incarnation: str, sequence: int, commit_id: str, index: int = AFTER_COMMIT
) -> str:
    """Make the cursor after the first `index` events of a commit (default: after the whole commit)."""
    return EventCursor(
        partition_mark(partition), mark(incarnation), sequence, index, mark(commit_id)
    ).encode()


def parse_event_cursor(cursor: object) -> EventCursor:
    """Read a cursor of whichever namespace.

    Raises:
        InvalidInputError: The cursor is malformed (``INVALID_CURSOR``).
    """
    try:
        text = cursor + "=" * (-len(cursor) % 4)  # type: ignore[arg-type]
        data = base64.b64decode(text, altchars=b"-_", validate=True)
        format_, owner, incarnation, sequence, index, commit = _LAYOUT.unpack(data)
    except (binascii.Error, struct.error, ValueError, TypeError):
        raise invalid_cursor() from None
    if format_ != _FORMAT:
        raise invalid_cursor()
    return EventCursor(owner, incarnation, sequence, index, commit)


def decode_event_cursor(cursor: str, partition: str) -> EventCursor:
    """Read a cursor of this partition.

    Raises:
        InvalidInputError: The cursor is malformed, or of another namespace (``INVALID_CURSOR``).
    """
    found = parse_event_cursor(cursor)
    if found.partition != partition_mark(partition):
        raise invalid_cursor()
    return found


def invalid_cursor() -> InvalidInputError:
    """Make the error of a cursor that cannot be used here."""
    return InvalidInputError(
        "The cursor is malformed or belongs to another namespace; start without a cursor.",
        code=ErrorCode.INVALID_CURSOR,
    )
