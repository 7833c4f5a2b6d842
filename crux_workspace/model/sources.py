"""What a source-backed mount asks of its provider: the methods, and the options that each is given."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from crux_workspace.model.contents import Content
from crux_workspace.model.files import ListResult, Status

__all__ = [
    "SOURCE_HOOKS",
    "MountGrepOptions",
    "MountListOptions",
    "MountPathOptions",
    "MountReadOptions",
    "MountSource",
    "MountWriteOptions",
    "SourceOperation",
]

SourceOperation: TypeAlias = Literal["write", "edit", "append", "copy"]
"""Which verb makes a provider write."""

SOURCE_HOOKS = ("list", "read", "read_bytes", "grep", "exists", "stat", "write", "delete")
"""The methods a provider may have; `list` and `read` are required."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MountPathOptions:
    """What `exists`, `stat`, `read_bytes` and `delete` of a provider are told."""

    mount_path: str
    """Path of the mount; every path given or returned lies at or below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MountListOptions:
    """What `list` of a provider is told."""

    mount_path: str
    limit: int | None = None
    """Most entries that are wanted; more are cut off and asked for again."""
    cursor: str | None = None
    """What the provider gave with the page before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MountReadOptions:
    """What `read` of a provider is told; a provider may ignore the window and return the whole."""

    mount_path: str
    max_inline_bytes: int | None = None
    """Most bytes of text that are wanted; None wants all."""
    offset: int = 0
    """First byte wanted; a provider that heeds it says so in the result's `offset`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MountGrepOptions:
    """What `grep` of a provider is told."""

    mount_path: str
    path: str | None = None
    """A file, directory or glob; None is the whole mount."""
    ignore_case: bool = False
    regex: bool = False
    max_results: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class MountWriteOptions:
    """What `write` of a provider is told."""

    mount_path: str
    mime_type: str | None = None
    metadata: dict[str, Any] | None = field(default=None, repr=False)
    status: Status | None = None
    kind: str | None = None
    operation: SourceOperation = "write"


class MountSource(Protocol):
    """The provider behind a mount. Only these two methods are required; each may be sync (run in a worker thread) or async.

    Optional ones, found by name:

    - ``read_bytes(path, MountPathOptions) -> bytes | AsyncIterator[bytes]``: all bytes, each time; None for what is missing (S-009).
    - ``grep(query, MountGrepOptions) -> GrepResult``: places counted from 1 (S-010), by scope, case and expression (S-011).
    - ``exists(path, MountPathOptions) -> bool`` (S-008) and ``stat(path, MountPathOptions) -> WorkspaceFile | None`` (S-007): as `read`
      finds it.
    - ``write(path, content, MountWriteOptions) -> WorkspaceFile | content | None``: from then on it can be read and listed (S-020).
    - ``delete(path, MountPathOptions)``: gone from then on; what is not there is no error (S-021).

    Paths are normal workspace paths. Results need only what the provider knows, e.g. ``WorkspaceFile(path=...)``. A `revision` in a
    result's metadata is remembered by copies and stays while nothing changes (S-012). ``FileNotFoundError`` stands for "nothing there";
    every other exception fails the call. Calls come at the same time (S-013).
    """

    def list(self, path: str, options: MountListOptions, /) -> ListResult | Awaitable[ListResult]:
        """Return what is below a directory, or what a glob matches: files, and directories that are listed on their own.

        Must: lead from the mount's root to every file, each once and none outside (S-001); go on by cursors until all was given
        (S-002); keep to the directory (S-003). May: ignore the limit; know no globs, and find nothing by one.
        """
        ...

    def read(
        self, path: str, options: MountReadOptions, /
    ) -> Content | Awaitable[Content | None] | None:
        """Return a file's content, or None when there is none.

        Must: give it as it is (S-004), and None for whatever is missing, however odd its name (S-005); say truly which part a window
        is (S-006). May: return the whole whatever window was asked for.
        """
        ...


Bytes: TypeAlias = "bytes | AsyncIterator[bytes]"
"""What `read_bytes` of a provider returns."""
