"""Which changes a watch is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from crux_workspace.model.changes import Change
from crux_workspace.model.paths import is_below, parent

__all__ = ["WatchedPath"]


@dataclass(frozen=True, slots=True)
class WatchedPath:
    """A path, and whether what is below it counts too.

    A rename matches by either end. A path whose name was erased matches the whole tree only. A directory holds files and is none: without
    `recursive` it stands for the files right below it.
    """

    path: str
    recursive: bool
    directory: bool = False
    """It was spelt as a directory's, so that no file at the path itself is meant; the root always is."""
    shows: Callable[[Change], bool] = lambda _: True
    """Leaves out what the watching workspace has no mount for."""

    def matches(self, change: Change) -> bool:
        """Tell whether the change is about the path."""
        if not self.shows(change):
            return False
        if self.path == "/" and self.recursive:
            return True
        return self._covers(change.path) or (
            change.from_path is not None and self._covers(change.from_path)
        )

    def _covers(self, path: str) -> bool:
        if path[:1] != "/":
            return False
        if self.directory or self.path == "/":
            return is_below(path, self.path) and (self.recursive or parent(path) == self.path)
        return path == self.path or (self.recursive and is_below(path, self.path))
