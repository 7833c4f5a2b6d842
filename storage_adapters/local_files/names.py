"""How asset keys become names of files, and back.

A segment that is already percent-encoded is its own name. Any other is encoded behind ``=``, dots that would lead elsewhere too, and
one that is too long for a file system becomes ``+`` and its hash: then the ref has the hash too. Percent-encoding leaves neither
sign, so no two segments meet.
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote, unquote

from crux_workspace.errors import InvalidInputError

__all__ = ["TEMPORARY", "key_segment", "names_of", "ref_of"]

TEMPORARY = "+tmp"
"""Folder of files that are being written; no segment has this name."""

LONGEST_NAME_BYTES = 200

_HASHED = re.compile(r"\+[0-9a-f]{64}")


def names_of(key: str) -> list[str]:
    """Return the names of the folders and the file of a key or ref.

    Raises:
        InvalidInputError: The key is absolute, or has an empty segment or a NUL.
    """
    segments = key.split("/")
    if "\0" in key or "" in segments:
        raise InvalidInputError("an asset key has non-empty segments separated by '/', without NUL")
    return [_name(segment) for segment in segments]


def key_segment(name: str) -> str:
    """Return the segment of a ref that a name stands for."""
    return unquote(name[1:]) if name.startswith("=") else name


def ref_of(names: list[str]) -> str:
    """Return the ref of a file."""
    return "/".join(map(key_segment, names))


def _name(segment: str) -> str:
    if _HASHED.fullmatch(segment):
        return segment
    if segment in (".", ".."):
        return "=" + segment.replace(".", "%2E")
    name = segment
    if quote(unquote(segment), safe="") != segment:
        name = "=" + quote(segment, safe="")
    if len(name) > LONGEST_NAME_BYTES:
        return "+" + hashlib.sha256(segment.encode()).hexdigest()
    return name
