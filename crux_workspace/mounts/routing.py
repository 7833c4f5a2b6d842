"""Longest-prefix routing: which mount a path belongs to, and what may be done there. Decided before any storage access."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from crux_workspace.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    ErrorCode,
    InvalidInputError,
    InvalidPathError,
)
from crux_workspace.model.changes import Change
from crux_workspace.model.paths import is_below, normalise, parent, sort_key
from crux_workspace.model.settings import Mount
from crux_workspace.mounts.source_tree import SourceTree

__all__ = ["DEFAULT_MOUNTS", "Router"]

DEFAULT_MOUNTS = (
    Mount("/workspace", description="Notes, intermediate files and working state."),
    Mount("/outputs", description="Deliverables for the application or its user."),
)


class Router:
    """The mounts of one workspace, deepest wins."""

    def __init__(self, mounts: Iterable[Mount], *, is_part: bool = False) -> None:
        self.is_part = is_part
        """The tree has more than these mounts: what files were outside of them is not told."""
        given: object = mounts
        if not isinstance(given, Iterable):
            raise InvalidInputError("mounts must be a list of Mount.", details={"option": "mounts"})
        checked = [_checked(mount) for mount in mounts]
        if not checked:
            raise InvalidInputError(
                "A workspace needs at least one mount, e.g. Mount('/workspace')."
            )
        self.mounts: tuple[Mount, ...] = tuple(sorted(checked, key=lambda m: sort_key(m.path)))
        roots = [mount.path for mount in self.mounts]
        if len(set(roots)) != len(roots):
            raise InvalidInputError("Two mounts have the same path.", details={"paths": roots})
        self._by_path = {mount.path: mount for mount in self.mounts}
        deepest = sorted(self.mounts, key=lambda mount: -len(mount.path))
        self._deepest = [(mount.path.rstrip("/") + "/", mount) for mount in deepest]
        above: set[str] = {"/"}
        for root in roots:
            while (root := parent(root)) != "/":
                above.add(root)
        self._above = frozenset(above)
        self._sources = {
            mount.path: SourceTree(mount, self._owner(mount))
            for mount in self.mounts
            if mount.source is not None
        }
        self.has_sources = bool(self._sources)
        """Whether any mount has a source."""

    def _owner(self, mount: Mount) -> Callable[[str], bool]:
        return lambda path: self.find(path) is mount

    def source(self, path: str) -> SourceTree | None:
        """Return the source tree that a path lies in; None for what is kept here, and outside all mounts."""
        if not self.has_sources:
            return None
        mount = self.find(path)
        return None if mount is None else self._sources.get(mount.path)

    def scopes(self, path: str) -> list[str]:
        """Return the directories that are read for what lies below a path, in order, none inside another.

        In a part of a tree each mount is one: what else the tree holds is not read, and so changes nothing for who reads.
        """
        if not self.is_part or self.find(path) is not None:
            return [path]
        found: list[str] = []
        for mount in self.mounts:
            inside = bool(found) and is_below(mount.path, found[-1])
            if mount.source is None and is_below(mount.path, path) and not inside:
                found.append(mount.path)
        return found

    def sources_within(self, path: str) -> list[SourceTree]:
        """Return the source trees of the mounts strictly below a path, in order."""
        return [tree for where, tree in self._sources.items() if is_below(where, path)]

    def is_local(self, path: str) -> bool:
        """Tell whether a path lies on a mount that the workspace keeps itself."""
        mount = self.find(path)
        return mount is not None and mount.source is None

    def find(self, path: str) -> Mount | None:
        """Return the deepest mount that holds the path."""
        ended = path + "/"
        for prefix, mount in self._deepest:
            if ended.startswith(prefix):
                return mount
        return None

    def shows(self, change: Change) -> bool:
        """Tell whether a change may be told of: one of its ends is on a mount, or its name was erased."""
        return any(
            path is not None and (path[:1] != "/" or self.find(path) is not None)
            for path in (change.path, change.from_path)
        )

    def mount_path(self, path: str) -> str:
        """Return the path of the mount that holds `path`, or an empty string."""
        mount = self.find(path)
        return "" if mount is None else mount.path

    def readable(self, path: str) -> Mount:
        """Return the mount of a path that is to be read.

        Raises:
            AccessDeniedError: No mount holds it (``OUTSIDE_MOUNTS``).
        """
        mount = self.find(path)
        if mount is None:
            roots = ", ".join(m.path for m in self.mounts)
            raise AccessDeniedError(
                f"{path} is outside the mounts of this workspace.",
                code=ErrorCode.OUTSIDE_MOUNTS,
                details={"path": path},
                hint=f"Use a path below one of: {roots}.",
            )
        return mount

    def writable(self, path: str) -> Mount:
        """Return the mount of a path that is to be changed.

        Raises:
            AccessDeniedError: Outside all mounts, or on a read-only one (``OUTSIDE_MOUNTS``, ``READ_ONLY_MOUNT``).
        """
        mount = self.readable(path)
        if mount.access != "readwrite":
            raise AccessDeniedError(
                f"{path} cannot be changed: the mount {mount.path} is read-only.",
                code=ErrorCode.READ_ONLY_MOUNT,
                details={"path": path, "mount": mount.path},
            )
        return mount

    def is_root(self, path: str) -> bool:
        """Tell whether the path is a mount's own."""
        return path in self._by_path

    def is_fixed_directory(self, path: str) -> bool:
        """Tell whether the path is a directory whatever files there are: a mount root, or above one."""
        return path in self._by_path or path in self._above

    def browsable(self, path: str) -> None:
        """Allow a directory-like path: inside a mount, or above one.

        Raises:
            AccessDeniedError: Neither (``OUTSIDE_MOUNTS``).
        """
        if path not in self._above:
            self.readable(path)

    def check_file_place(self, path: str) -> None:
        """Refuse to put a file where a directory always is.

        Raises:
            AlreadyExistsError: The path is a mount root or above one (``PATH_TYPE_CONFLICT``).
        """
        if self.is_fixed_directory(path):
            raise AlreadyExistsError(
                f"{path} is a mount root, or holds one: it is a directory and cannot become a file.",
                code=ErrorCode.PATH_TYPE_CONFLICT,
                details={"path": path},
                hint=f"Choose a file name below it, e.g. {path}/notes.md.",
            )

    def fixed_children(self, path: str) -> list[str]:
        """Return the directories directly below `path` that exist whatever files there are, in order."""
        children = {
            directory
            for directory in (*self._above, *self._by_path)
            if directory != "/" and parent(directory) == path
        }
        return sorted(children, key=sort_key)

    def roots_below(self, path: str) -> list[str]:
        """Return mount roots strictly below a path."""
        return [mount.path for mount in self.mounts if is_below(mount.path, path)]


def _checked(mount: Mount) -> Mount:
    given: object = mount
    if not isinstance(given, Mount):
        raise InvalidInputError(
            f"mounts holds {type(given).__name__}; write e.g. Mount('/workspace').",
            details={"option": "mounts"},
        )
    try:
        path = normalise(mount.path)
    except InvalidPathError as error:
        raise InvalidInputError(
            f"A mount path is not valid: {error.message}", details=error.details
        ) from error
    if path == "/":
        raise InvalidInputError("The root '/' cannot be a mount; use e.g. Mount('/workspace').")
    if path == mount.path:
        return mount
    return replace(mount, path=path)
