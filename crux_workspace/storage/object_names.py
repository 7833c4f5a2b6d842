"""How an asset is named in an object store: its key, a dot, and the time of the put in ms.

The time in the name makes names unique per put whatever happens to a key, and a listing tells an asset's age by the clock that the
put went by, however far the server's clock is off. Objects named otherwise are not ours: they are neither listed nor swept.
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote

from crux_workspace.errors import InvalidInputError

__all__ = ["created_at_of", "name_of", "readable", "stem_of"]

LONGEST_SEGMENT_BYTES = 200
_NAMED = re.compile(r"(?s).*[^/.]\.(\d{13,15})")
_HASHED = re.compile(r"\+[0-9a-f]{64}")


def name_of(key: str, created_at: int) -> str:
    """Return the ref of an asset: what its object is called below the store's prefix.

    Raises:
        InvalidInputError: The key is absolute, or has an empty, ``.`` or ``..`` segment, or a NUL.
    """
    segments = key.split("/")
    if "\0" in key or not {"", ".", ".."}.isdisjoint(segments):
        raise InvalidInputError(
            "an asset key has segments separated by '/', without NUL, none of them empty, '.' or '..'"
        )
    return f"{'/'.join(map(_segment, segments))}.{created_at:013d}"


def stem_of(prefix: str) -> str:
    """Return what the refs of the keys that start with `prefix` start with.

    A segment that is too long for a name is hashed, so it matches only when it is whole.
    """
    *whole, last = prefix.split("/")
    return "/".join([*map(_segment, whole), last])


def readable(prefix: str) -> str:
    """Write a store's prefix as it stands in URIs: encoded only where a URI cannot have it; a ref stands behind it as it is."""
    return quote(prefix, safe="/!$&'()*+,;=:@%~")


def created_at_of(ref: str) -> int | None:
    """Return the time of the put, ms since the epoch; None when no put of ours made that name."""
    found = _NAMED.fullmatch(ref)
    return None if found is None else int(found[1])


def _segment(segment: str) -> str:
    if _HASHED.fullmatch(segment) or len(segment.encode()) <= LONGEST_SEGMENT_BYTES:
        return segment
    return "+" + hashlib.sha256(segment.encode()).hexdigest()
