"""What `read` returns, and what `write` takes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal, TypeAlias

from crux_workspace.model.files import Status
from crux_workspace.model.values import JsonValue, Value

__all__ = ["BinaryContent", "Content", "JsonContent", "TextContent", "WritableContent"]

WritableContent: TypeAlias = (
    "JsonValue | bytes | bytearray | memoryview | BinaryIO | AsyncIterator[bytes]"
)


@dataclass(frozen=True, slots=True)
class TextContent(Value):
    """Text, whole or a window of it."""

    path: str
    content: str = field(repr=False)
    mime_type: str = "text/plain"
    size: int = 0
    """Bytes of the whole file, whatever window this is."""
    version: int = 0
    truncated: bool = False
    """True whenever this is not the whole file."""
    offset: int = 0
    """Byte at which `content` starts."""
    total_lines: int = 0
    sha256: str | None = None
    metadata: dict[str, Any] | None = field(default=None, repr=False)
    status: Status | None = None
    artifact_kind: str | None = None
    pinned_version: int | None = None
    id: str = ""
    """Identity of the file, as `WorkspaceFile.id`; empty of a file that is gone, and where a source names none."""
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class JsonContent(Value):
    """A JSON value; always whole."""

    path: str
    content: Any = field(repr=False)
    mime_type: str = "application/json"
    size: int = 0
    """Bytes of the compact form."""
    version: int = 0
    truncated: bool = False
    sha256: str | None = None
    metadata: dict[str, Any] | None = field(default=None, repr=False)
    status: Status | None = None
    artifact_kind: str | None = None
    pinned_version: int | None = None
    id: str = ""
    """Identity of the file, as `WorkspaceFile.id`; empty of a file that is gone, and where a source names none."""
    kind: Literal["json"] = "json"


@dataclass(frozen=True, slots=True)
class BinaryContent(Value):
    """Where binary bytes are; `read_bytes` and `stream` give them."""

    path: str
    uri: str | None = None
    mime_type: str = "application/octet-stream"
    size: int = 0
    version: int = 0
    truncated: bool = False
    sha256: str | None = None
    metadata: dict[str, Any] | None = field(default=None, repr=False)
    status: Status | None = None
    artifact_kind: str | None = None
    pinned_version: int | None = None
    id: str = ""
    """Identity of the file, as `WorkspaceFile.id`; empty of a file that is gone, and where a source names none."""
    kind: Literal["binary"] = "binary"


Content: TypeAlias = TextContent | JsonContent | BinaryContent
