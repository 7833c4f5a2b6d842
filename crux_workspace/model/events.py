"""What a watcher is told: changes, and what went wrong on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from crux_workspace.errors import InvalidInputError, WorkspaceError
from crux_workspace.model.changes import ChangeType
from crux_workspace.model.options import MOST, needed_number
from crux_workspace.model.values import Value

__all__ = ["OnError", "WatchError", "WatchStart", "WorkspaceChangeEvent", "check_watch"]

WatchStart: TypeAlias = Literal["tail", "oldest"]


@dataclass(frozen=True, slots=True)
class WorkspaceChangeEvent(Value):
    """One change of one path, as a watcher gets it; a commit gives one for each path it changed, in path order."""

    type: ChangeType
    workspace_id: str
    namespace: str
    path: str
    """Where the file is afterwards; for a delete, where it was. `PURGED_PATH` when the file was purged by a later commit."""
    from_path: str | None
    """For a rename, where the file was."""
    replaced: str | None
    """Id of a file that this change overwrote."""
    at: int
    """Time of the commit, ms since the epoch."""
    cursor: str
    """The place in the log right after this event: a watch from here goes on with the next one."""
    version: int | None
    """Version of the file after the change."""
    sequence: int
    """Number of the commit in its namespace."""
    commit: str
    """The commit as `log` shows it."""


@dataclass(frozen=True, slots=True, repr=False)
class WatchError(Value):
    """What `on_error` of a watch is told; the watch goes on."""

    error: Exception
    """A `StorageError` while the store fails, a `WatchGapError` for events that are lost, or what a callback raised."""
    failures: int
    """How many times in a row it failed, from 1."""
    retry_delay_ms: int
    """When the watch tries again; 0 when there is nothing to wait for."""

    def __repr__(self) -> str:
        name = type(self.error).__name__
        return f"WatchError(error={name}, failures={self.failures}, retry_delay_ms={self.retry_delay_ms})"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON data; of an error that is not ours only the class is told."""
        known = isinstance(self.error, WorkspaceError)
        return {
            "error": self.error.to_dict() if known else {"code": type(self.error).__name__},  # type: ignore[attr-defined]
            "failures": self.failures,
            "retry_delay_ms": self.retry_delay_ms,
        }


OnError: TypeAlias = Callable[[WatchError], object]
"""Called with each problem of a watch; what it returns is awaited if it can be."""


def check_watch(
    *, recursive: object, start: object, on_error: object, poll_interval_ms: object, limit: object
) -> None:
    """Refuse options that no watch can have (``INVALID_ARGUMENT``); its path, cursor and namespace are judged where they mean something."""
    if recursive is not None and not isinstance(recursive, bool):
        raise InvalidInputError("recursive must be True, False or None.")
    if start not in get_args(WatchStart):
        raise InvalidInputError("start must be 'tail' or 'oldest'.", details={"option": "start"})
    if on_error is not None and not callable(on_error):
        raise InvalidInputError("on_error must be callable or None.")
    for name, number in (("poll_interval_ms", poll_interval_ms), ("limit", limit)):
        needed_number(name, number, most=MOST)
