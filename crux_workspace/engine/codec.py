"""The values of the engine's records: their JSON names, and how they are read back.

A field that is absent where the comment says *stamp* equals the sequence or time of the commit that wrote the record. Names are short
because a head is rewritten by every change; `docs/format.md` lists them and a test holds them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import msgspec

from crux_workspace.engine.compression import DIFFERENCE, WHOLE
from crux_workspace.errors import ErrorCode, StorageError

__all__ = [
    "IN_PARTS",
    "KIND_NAMES",
    "ArtifactRecord",
    "AssetCount",
    "Attributes",
    "Expiry",
    "FilePlace",
    "Gone",
    "Head",
    "Job",
    "LineIndex",
    "Op",
    "Part",
    "State",
    "Trash",
    "Was",
    "decode",
    "encode",
]

KIND_NAMES: dict[str, Literal["text", "json", "binary"]] = {
    "t": "text",
    "j": "json",
    "b": "binary",
}


IN_PARTS = "p"
"""Value of `enc` that says: the content is in several assets, one behind the other."""


class Part(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One of the assets that hold a content in parts."""

    ref: str
    size: int
    sha256: str
    """Hash of the part's own bytes."""


class LineIndex(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Where lines are in a large text: how many line ends lie before each multiple of `step` bytes."""

    step: int
    marks: tuple[int, ...]


class Attributes(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """What a version and its file carry besides bytes; shared by heads and ended states."""

    kind: Literal["t", "j", "b"] = msgspec.field(name="k", default="t")
    mime_type: str = msgspec.field(name="m", default="text/plain")
    size: int = msgspec.field(name="s", default=0)
    lines: int = msgspec.field(name="l", default=0)
    sha256: str = msgspec.field(name="h", default="")
    asset: str | None = msgspec.field(name="a", default=None)
    """Asset ref; None says that the content is the record's body, or in `parts`."""
    parts: tuple[Part, ...] = msgspec.field(name="ps", default=())
    """The assets of a content in parts, in order."""
    line_index: LineIndex | None = msgspec.field(name="li", default=None)
    uri: str | None = msgspec.field(name="u", default=None)
    enc: str | None = msgspec.field(name="e", default=None)
    """How the content is written; None is raw, `IN_PARTS` in parts, only states have another, anything unknown is refused."""
    preview: str | None = msgspec.field(name="p", default=None)
    metadata: dict[str, Any] | None = msgspec.field(name="md", default=None)
    operation: str = msgspec.field(name="op", default="write")
    restored_from: int | None = msgspec.field(name="rf", default=None)
    status: Literal["draft", "final"] | None = msgspec.field(name="t", default=None)
    artifact_kind: str | None = msgspec.field(name="ak", default=None)
    produced_by: dict[str, Any] | None = msgspec.field(name="by", default=None)
    pinned: int | None = msgspec.field(name="pin", default=None)
    version_path: str | None = msgspec.field(name="vp", default=None)
    """Where the file was when the version was appended; None in a head says: here."""
    version_sequence: int | None = msgspec.field(name="vs", default=None)
    """In a head: stamp. In a state: the start in its key."""
    version_commit: str | None = msgspec.field(name="vc", default=None)
    """Id of the commit that appended the version; None in a head says: the last commit's."""
    version_at: int | None = msgspec.field(name="vt", default=None)
    """Stamp in a head and in a tombstone, written out in every other state."""

    @property
    def is_inline(self) -> bool:
        """Tell whether the content is the record's body."""
        return self.asset is None and not self.parts

    @property
    def refs(self) -> tuple[str, ...]:
        """Refs of the assets that hold the content, in order; none of inline content."""
        if self.parts:
            return tuple(part.ref for part in self.parts)
        return () if self.asset is None else (self.asset,)

    def pieces(self) -> tuple[Part, ...]:
        """Return the assets that hold the content as parts: a single asset is one part."""
        if self.asset is None:
            return self.parts
        return (Part(self.asset, self.size, self.sha256),)


class Head(Attributes, kw_only=True):
    """`head/<path>`: the live file at a path."""

    file_id: str = msgspec.field(name="id")
    version: int = msgspec.field(name="v")
    commit: str = msgspec.field(name="c")
    """Id of the last commit that changed content, attributes or path."""
    commit_sequence: int | None = msgspec.field(name="cs", default=None)
    """Its sequence; stamp."""
    commit_at: int | None = msgspec.field(name="ct", default=None)
    """Its time; stamp."""
    bound: int | None = msgspec.field(name="b", default=None)
    """Sequence at which the file came to this path; stamp."""
    changed: int | None = msgspec.field(name="g", default=None)
    """Sequence at which the current state started (version, finalize or set); stamp."""
    created_at: int | None = msgspec.field(name="fc", default=None)
    """Time of the file's first version; stamp."""
    first: int = msgspec.field(name="st", default=1)
    """Where collection starts: no unpinned version below it is kept."""
    walk: tuple[int, int] | None = msgspec.field(name="w", default=None)
    """Undo walk: (position, top), both original versions."""
    due: int | None = msgspec.field(name="d", default=None)
    """Time at which the file expires."""
    filed: int | None = msgspec.field(name="df", default=None)
    """Due time of its `exp/` record, where it differs from `due`."""

    @property
    def filed_at(self) -> int | None:
        """Due time that the `exp/` record of the file is filed under; None when it has none."""
        return self.filed or self.due


class State(Attributes, kw_only=True):
    """`state/<file id>/<version>/<start>`: what a file was between two commits."""

    until: int | None = msgspec.field(name="x", default=None)
    """Sequence that ended the state; stamp. A tombstone has none."""
    due: int | None = msgspec.field(name="d", default=None)
    """When the file would have expired."""
    created_at: int | None = msgspec.field(name="fc", default=None)
    """Time of the file's first version, where it is not the version's own."""
    partial: bool = msgspec.field(name="np", default=False)
    """Another state of the same version, or the head, holds the content."""
    base: tuple[int, int] | None = msgspec.field(name="eb", default=None)
    """Version and start of the newer state whose text the body is the difference from."""


class Gone(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """`gone/<path>`: the deleted file that goes on when the path is written again."""

    file_id: str = msgspec.field(name="id")
    version: int = msgspec.field(name="v")
    created_at: int = msgspec.field(name="fc")
    first: int = msgspec.field(name="st", default=1)


class Was(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """`was/<path>/<end>`: an ended binding."""

    file_id: str = msgspec.field(name="id")
    since: int = msgspec.field(name="b")
    """Sequence at which the file came to the path."""


class FilePlace(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """`file/<file id>`: where a renamed or deleted file is, or last was."""

    path: str = msgspec.field(name="p")
    gone: bool = msgspec.field(name="x", default=False)
    purged: bool = msgspec.field(name="pu", default=False)


class ArtifactRecord(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """`art/<path>`: the whole artifact, pinned values included; times that are absent are stamps."""

    file_id: str = msgspec.field(name="id")
    version: int = msgspec.field(name="v")
    head_version: int = msgspec.field(name="hv")
    status: Literal["draft", "final"] = msgspec.field(name="t")
    mime_type: str = msgspec.field(name="m")
    size: int = msgspec.field(name="s")
    sha256: str = msgspec.field(name="h")
    asset: str | None = msgspec.field(name="a", default=None)
    uri: str | None = msgspec.field(name="u", default=None)
    kind: str | None = msgspec.field(name="ak", default=None)
    preview: str | None = msgspec.field(name="p", default=None)
    metadata: dict[str, Any] | None = msgspec.field(name="md", default=None)
    produced_by: dict[str, Any] | None = msgspec.field(name="by", default=None)
    created_at: int | None = msgspec.field(name="fc", default=None)
    updated_at: int | None = msgspec.field(name="ct", default=None)
    due: int | None = msgspec.field(name="d", default=None)


class AssetCount(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """`asset/<ref>`: how many versions hold the asset."""

    count: int = msgspec.field(name="n")
    size: int = msgspec.field(name="s", default=0)
    uri: str | None = msgspec.field(name="u", default=None)
    sha256: str | None = msgspec.field(name="h", default=None)
    """Hash of its bytes; None where an older version counted it first."""


class Trash(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """`trash/<due>/<ref>`: a released asset."""

    size: int = msgspec.field(name="s", default=0)


class Expiry(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """`exp/<due>/<file id>`."""

    path: str = msgspec.field(name="p")
    """Where the file was when this was written; `file/`, if present, wins."""


class Op(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """`op/<hash>`: the remembered result of an idempotent call; sequence and time are stamps."""

    digest: str = msgspec.field(name="d")
    commit: str = msgspec.field(name="c")
    shape: str = msgspec.field(name="t", default="none")
    path: str | None = msgspec.field(name="p", default=None)
    head: Head | None = msgspec.field(name="f", default=None)
    artifact: ArtifactRecord | None = msgspec.field(name="art", default=None)


class Job(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """`job/<file id>`: a purge that is not finished."""

    path: str = msgspec.field(name="p")
    file_id: str = msgspec.field(name="id")
    first: int = msgspec.field(name="st", default=1)
    """Where the file's collection had come to: above 1, states no longer tell all commits that name the file."""


_T = TypeVar("_T")


def _plain(value: object) -> object:
    """Encode a caller's own kind of string as the string it is."""
    if isinstance(value, str):
        return str.__str__(value)
    raise NotImplementedError(type(value).__name__)


_encoder = msgspec.json.Encoder(enc_hook=_plain)
_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(kind)
    for kind in (
        Head,
        State,
        Gone,
        Was,
        FilePlace,
        ArtifactRecord,
        AssetCount,
        Trash,
        Expiry,
        Op,
        Job,
    )
}


encode: Callable[[msgspec.Struct], bytes] = _encoder.encode
"""Encodes a record's value."""


def decode(kind: type[_T], value: bytes) -> _T:
    """Decode a record's value.

    Raises:
        StorageError: The value is not one of this kind (``RECORD_CORRUPT``).
    """
    try:
        result: _T = _decoders[kind].decode(value)
    except msgspec.MsgspecError as error:
        raise StorageError(
            f"A stored {kind.__name__.lower()} record cannot be read ({error.__class__.__name__});"
            " the data is damaged or was written by a newer version.",
            code=ErrorCode.RECORD_CORRUPT,
        ) from error
    if isinstance(result, Attributes) and result.enc is not None:
        _check_encoding(result)
    return result


def _check_encoding(value: Attributes) -> None:
    if value.enc == IN_PARTS and value.parts:
        return
    if isinstance(value, State) and value.enc in (WHOLE, DIFFERENCE):
        if (value.base is not None) == (value.enc == DIFFERENCE):
            return
    raise StorageError(
        f"A stored body is written in the format {value.enc!r}, which this version cannot read here;"
        " upgrade crux-workspace.",
        code=ErrorCode.RECORD_CORRUPT,
        details={"format": value.enc},
    )
