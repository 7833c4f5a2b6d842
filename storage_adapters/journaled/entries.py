"""What the journal, the checkpoints and the tree's nodes hold, as JSON objects."""

from __future__ import annotations

import base64
from typing import Any, TypeVar

import msgspec

from crux_workspace.errors import ErrorCode, StorageError
from crux_workspace.storage.minimal import JsonObject

__all__ = [
    "Body",
    "Checkpoint",
    "Entry",
    "Node",
    "Packed",
    "Row",
    "pack",
    "read",
    "size_of",
    "unpack",
    "write",
]

Packed = str | dict[str, str]
"""Bytes in JSON: their text, or ``{"b64": …}`` when they are none or hold a NUL."""

T = TypeVar("T", bound=msgspec.Struct)


def pack(data: bytes) -> Packed:
    """Write bytes as JSON."""
    if b"\0" not in data:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    return {"b64": base64.b64encode(data).decode()}


def unpack(packed: Packed) -> bytes:
    """Read bytes back."""
    return packed.encode() if isinstance(packed, str) else base64.b64decode(packed["b64"])


class Row(msgspec.Struct, array_like=True, frozen=True):
    """One record, its body apart."""

    key: str
    value: Packed
    revision: int
    at: int
    body: str | None = None
    """``<position>.<index>``: the body at that index of the entry at that position, wherever its bytes are by now."""

    @property
    def weight(self) -> int:
        """About its bytes."""
        value = self.value if isinstance(self.value, str) else self.value["b64"]
        return len(self.key) + len(value) + 64


class Entry(msgspec.Struct, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """The journal's entry at one position: a commit, or the end of a partition."""

    id: str
    """Tells this attempt to write the entry from every other."""
    sequence: int
    """Sequence of the commit; 0 for the end of a partition."""
    at: int = 0
    base: int = 0
    """Position of the last boundary before this entry, 0 when there is none."""
    boundary: bool = False
    """Whether a checkpoint is to be made of everything up to here."""
    weight: int = 0
    """About the bytes of the entries since the last boundary, this one included."""
    meta: str = ""
    rows: list[Row] = []
    gone: list[str] = []
    bodies: list[Packed] = []
    spent: bool = False
    """Whether only the entry's place is left; checkpoints hold what it did."""

    @property
    def ends(self) -> bool:
        """Whether the partition ends here."""
        return self.sequence == 0

    def used_up(self) -> Entry:
        """Return what is left of the entry once no reader needs it."""
        return Entry(
            id=self.id,
            sequence=self.sequence,
            base=self.base,
            boundary=self.boundary,
            spent=True,
        )


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """The bytes of one body."""

    data: Packed


class Node(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A node of a tree: a leaf has rows, an inner one children as (first key, node)."""

    rows: list[Row]
    children: list[tuple[str, str]]


class Checkpoint(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """All of a partition as of one position."""

    position: int
    previous: int
    """Position of the checkpoint before."""
    root: str | None
    meta: str
    """Empty when the partition does not exist."""
    old_nodes: list[str]
    """Nodes that only the tree of the checkpoint before has."""
    old_bodies: list[str]

    @classmethod
    def nothing(cls, position: int = 0, previous: int = 0) -> Checkpoint:
        """Return the checkpoint of a partition that does not exist."""
        return cls(
            position=position, previous=previous, root=None, meta="", old_nodes=[], old_bodies=[]
        )


def size_of(item: msgspec.Struct) -> int:
    """Return how many bytes of JSON an item takes."""
    return len(msgspec.json.encode(item))


def write(item: msgspec.Struct) -> JsonObject:
    """Return an item as a JSON object."""
    plain: JsonObject = msgspec.to_builtins(item)
    return plain


def read(kind: type[T], value: Any, key: str) -> T:  # noqa: ANN401 - what a foreign store returned
    """Return the item a JSON object is.

    Raises:
        StorageError: It is none (``RECORD_CORRUPT``).
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise StorageError(
            f"The store returned something else than what was stored at {key}; restore it from a backup.",
            code=ErrorCode.RECORD_CORRUPT,
        ) from error
