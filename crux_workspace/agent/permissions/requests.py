"""What the gate is asked: one frozen value a kind of operation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from crux_workspace.errors import ErrorCode, InvalidInputError

__all__ = [
    "KEYS",
    "ClientToolRequest",
    "CommandRequest",
    "MemoryRequest",
    "PathOperation",
    "PathRequest",
    "Request",
    "SubagentRequest",
    "ToolRequest",
]

KEYS = ("bash", "readFile", "writeFile", "listDir", "tool", "subagent", "memory", "clientTool")
"""The gate keys that rules are grouped by."""

PathOperation: TypeAlias = Literal["readFile", "writeFile", "listDir", "editFile"]
_OPERATION_KEYS = {
    "readFile": ("readFile",),
    "writeFile": ("writeFile",),
    "listDir": ("listDir",),
    "editFile": ("readFile", "writeFile"),
}


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """Running a shell command."""

    command: str = field(repr=False)
    root: str | None = None
    """Folder it runs in; redirections to files inside it run, others are judged. None: all are outside."""
    base: str | None = None
    """What the command works on, so that an approval is for that alone."""

    kind = "command"


@dataclass(frozen=True, slots=True)
class PathRequest:
    """Reading, writing, listing or editing one path."""

    operation: PathOperation
    path: str
    """Absolute, and as it is after resolving links; a relative one is taken from `root`."""
    root: str | None = None
    """Where the workspace is; None: everything is outside."""
    base: str | None = None
    """Version of the file that the operation is meant for."""
    arguments: Mapping[str, Any] | None = field(default=None, repr=False)
    """The call's other arguments; an approval is for them alone."""

    kind = "path"

    def __post_init__(self) -> None:
        if self.operation not in _OPERATION_KEYS:
            raise InvalidInputError(
                f"A path cannot be asked for {self.operation!r}; use one of {', '.join(_OPERATION_KEYS)}.",
                details={"option": "operation"},
            )
        given = str(self.path)
        if not given.startswith("/"):
            if self.root is None or not given:
                raise _bad_path(
                    "A path request needs an absolute path, or a root for a relative one."
                )
            given = f"{self.root.rstrip('/')}/{given}"
        if "\x00" in given:
            raise _bad_path("A path cannot hold NUL.")
        object.__setattr__(self, "path", canonical(given))
        if self.root is not None:
            object.__setattr__(self, "root", canonical(self.root))

    @property
    def keys(self) -> tuple[str, ...]:
        """The gate keys that have to agree."""
        return _OPERATION_KEYS[self.operation]

    @property
    def is_inside(self) -> bool:
        """Whether the path is the root or below it, by whole segments."""
        return self.root is not None and covers(self.root, self.path)


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """Calling a tool by name."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    base: str | None = None
    """Version of what the call works on, so that an approval is for that alone."""

    kind = "tool"


@dataclass(frozen=True, slots=True)
class SubagentRequest:
    """A parent handing work to a direct child."""

    parent_route: str
    name: str
    """Name under which the parent registered the child."""
    route: str | None
    """The child's own route; None when the parent has no child of that name."""
    input: Any = field(default=None, repr=False)

    kind = "subagent"

    @property
    def edge(self) -> str:
        """The candidate that rules compare: parent route and name, as JSON."""
        return json.dumps([self.parent_route, self.name], ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class ClientToolRequest:
    """Calling a tool that the client provides, by the name the client registered."""

    name: str

    kind = "clientTool"


@dataclass(frozen=True, slots=True)
class MemoryRequest:
    """Replacing a remembered fact by another one; without `old_id` it is a new fact."""

    namespace: str
    """Fields joined by ``|``, e.g. ``workspace=app|route=/a|user=7``."""
    identity: str
    old_id: str | None
    old: str | None = field(default=None, repr=False)
    new: str = field(default="", repr=False)

    kind = "memory"

    @property
    def candidate(self) -> str:
        """What rules compare: the namespace, ended by ``|``."""
        return self.namespace if self.namespace.endswith("|") else f"{self.namespace}|"

    @property
    def pattern(self) -> str:
        """The namespace up to its route, ended by ``|``."""
        parts = self.candidate.split("|")[:-1]
        for at, part in enumerate(parts):
            if part.startswith("route="):
                return "|".join(parts[: at + 1]) + "|"
        return self.candidate


Request: TypeAlias = (
    CommandRequest | PathRequest | ToolRequest | SubagentRequest | ClientToolRequest | MemoryRequest
)


def canonical(path: str) -> str:
    """Fold ``//``, ``/.`` and ``..`` of an absolute path; links are the backend's business."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    return "/" + "/".join(kept)


def covers(rule: str, path: str) -> bool:
    """Tell whether a canonical path is another one or below it, by whole segments."""
    return rule in ("/", path) or path.startswith(rule + "/")


def _bad_path(message: str) -> InvalidInputError:
    return InvalidInputError(message, code=ErrorCode.INVALID_PATH, details={"option": "path"})
