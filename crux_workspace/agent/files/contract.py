"""The contract of a filesystem backend. It jails nothing: the handle above it asks the gate first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, runtime_checkable

from crux_workspace.agent.permissions.rules import RuleSet
from crux_workspace.errors import ErrorCode, UnsupportedError
from crux_workspace.model.options import needed_number
from crux_workspace.model.values import Value

__all__ = [
    "DEFAULT_MAX_FILE_BYTES",
    "FileStat",
    "FilesystemBackend",
    "FsContext",
    "LineWindow",
    "Pin",
    "WalkedEntry",
    "backend_method",
    "checked_cap",
    "method_of",
]

DEFAULT_MAX_FILE_BYTES = 262_144

FileKind = Literal["file", "directory", "symlink", "other"]


@dataclass(frozen=True, slots=True)
class FileStat(Value):
    """What is known of one path without opening it; links are not followed."""

    kind: FileKind
    size: int
    executable: bool = False
    target: str | None = None
    """The link's own text, for a symlink."""
    mtime_ms: int | None = None


@dataclass(frozen=True, slots=True)
class WalkedEntry(Value):
    """One entry of a walked tree; `path` is relative to where the walk began."""

    path: str
    kind: FileKind
    size: int
    executable: bool = False
    target: str | None = None


@dataclass(frozen=True, slots=True)
class LineWindow(Value):
    """Some lines of a file; lines end at a line feed."""

    text: str = field(repr=False)
    """The lines joined by line feeds, without a final one."""
    first: int
    last: int
    total: int
    """Lines of the whole file; a final line end does not start another line."""


@runtime_checkable
class Pin(Protocol):
    """One object, held open from before it is judged until the operation is done."""

    @property
    def path(self) -> str:
        """Where the object really is: the path to judge."""
        ...

    @property
    def base(self) -> str | None:
        """Names the version that is there; None when there is nothing yet."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether writing to it may change a file elsewhere (several hard links)."""
        ...

    def close(self) -> None:
        """Let it go; idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class FsContext:
    """What a backend is told beside the path."""

    root: str
    """Absolute path of the active workspace."""
    pin: Pin | None = None
    """What `pin` gave for this very path: to be used instead of opening the path again."""
    denied: Callable[[], Awaitable[RuleSet]] | None = field(default=None, repr=False)
    """For a shell: gives the rules that deny paths as of now, so that no command does what the file tools may not."""

    def pinned(self, pin: Pin) -> FsContext:
        """Return the context of one operation on a pinned object."""
        return replace(self, pin=pin)


@runtime_checkable
class FilesystemBackend(Protocol):
    """Reads, writes and lists files by absolute path. Any object with these methods will do.

    Optional methods, used when they are there: ``read_binary_file(path, ctx, *, max_bytes=None) -> bytes``, ``lstat(path, ctx) ->
    FileStat``, ``stat_file(path, ctx) -> FileStat`` (follows links), ``remove_file(path, ctx)`` (a missing one is fine),
    ``touch_file(path, ctx)``, ``mkdir(path, ctx)``, ``walk_tree(path, ctx, *, max_entries, prune=()) -> list[WalkedEntry]`` (raises
    rather than cutting off), ``read_binary_files([(path, max_bytes)], ctx) -> list[bytes]``, ``read_lines(path, first, last, ctx, *,
    max_bytes=None) -> LineWindow``, ``pin(path, ctx) -> Pin`` (finds and holds one object so that what is judged is what is opened)
    and ``replace(path, old, new, ctx) -> int`` (writes only if the content is still `old`). A backend without ``pin`` is judged by
    ``real_path`` and then opened by that real path, which leaves the time in between.
    """

    root: str
    """Absolute path that relative ones start from."""

    async def read_file(self, path: str, ctx: FsContext, *, max_bytes: int | None = None) -> str:
        """Return a file as text; invalid UTF-8 becomes U+FFFD.

        Args:
            path: Absolute.
            ctx: The context.
            max_bytes: Replaces the backend's own cap for this call.

        Returns:
            The whole text.

        Raises:
            PathNotFoundError: No file is there (``FILE_NOT_FOUND``).
            LimitExceededError: It is larger than the cap (``FILE_TOO_LARGE``); nothing is returned.
        """
        ...

    async def write_file(self, path: str, content: str, ctx: FsContext) -> int:
        """Write a whole file, make its folders, and return the UTF-8 bytes written."""
        ...

    async def list_dir(self, path: str, ctx: FsContext) -> list[str]:
        """Return the names in a folder, without their folder, in any order."""
        ...

    async def real_path(self, path: str, ctx: FsContext) -> str:
        """Return the canonical path: links resolved, also for what does not exist (yet)."""
        ...


def method_of(backend: object, name: str) -> Any:  # noqa: ANN401 - a bound method
    """Return an optional method of a backend, or None."""
    found = getattr(backend, name, None)
    return found if callable(found) else None


def backend_method(backend: object, name: str) -> Any:  # noqa: ANN401 - a bound method
    """Return a method that this call cannot do without.

    Raises:
        UnsupportedError: The backend has none (``CAPABILITY_MISSING``).
    """
    found = method_of(backend, name)
    if found is None:
        raise UnsupportedError(
            f"The filesystem backend {type(backend).__name__} cannot do this: it has no method {name}.",
            code=ErrorCode.CAPABILITY_MISSING,
            hint=f"Use local_filesystem, workspace_filesystem, or a backend with {name}.",
        )
    return found


def checked_cap(max_bytes: object) -> int | None:
    """Return a cap in bytes, None for no cap.

    Raises:
        InvalidInputError: It is no whole number of at least 0 (``INVALID_ARGUMENT``).
    """
    if max_bytes is None or max_bytes == float("inf"):
        return None
    return needed_number("max_bytes", max_bytes, least=0)
