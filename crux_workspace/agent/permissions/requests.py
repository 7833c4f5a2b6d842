"""What the gate is asked: one frozen value a kind of operation."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from crux_workspace.errors import ErrorCode, InvalidInputError
from crux_workspace.model.options import shown
from crux_workspace.model.sendable import writable

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

MAX_CALL_ID_CHARS = 1_024

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
    """Absolute; a relative one is taken from `root`. The gate resolves its links by this machine's file system before it judges."""
    root: str | None = None
    """Where the workspace is; None: everything is outside."""
    base: str | None = None
    """Version of the file that the operation is meant for."""
    arguments: Mapping[str, Any] | None = field(default=None, repr=False)
    """The call's other arguments; an approval is for them alone."""
    is_canonical: bool = False
    """The path and root have no links: what a backend's ``pin`` or ``real_path`` gave, or paths of a versioned workspace."""
    spelled: str = field(init=False, repr=False, default="")
    """The path as it was given; deny rules hold for it too."""

    kind = "path"

    def __post_init__(self) -> None:
        if self.operation not in tuple(_OPERATION_KEYS):
            raise InvalidInputError(
                f"A path cannot be asked for {shown(self.operation)}; use one of {', '.join(_OPERATION_KEYS)}.",
                details={"option": "operation"},
            )
        given = _path_text(self.path)
        root = None if self.root is None else _path_text(self.root)
        if not given.startswith("/"):
            if root is None or not given:
                raise _bad_path(
                    "A path request needs an absolute path, or a root for a relative one."
                )
            given = f"{root.rstrip('/')}/{given}"
        set_field = object.__setattr__
        set_field(self, "spelled", given)
        set_field(self, "path", canonical(given))
        if root is not None:
            set_field(self, "root", canonical(root))

    def resolved(self) -> PathRequest:
        """Return the request for where the path leads: its links, and those of the root, resolved, dangling ones too.

        Raises:
            InvalidInputError: No path that the system knows (``INVALID_PATH``).
        """
        if self.is_canonical:
            return self
        try:
            real = os.path.realpath(self.spelled)
            root = None if self.root is None else os.path.realpath(self.root)
        except ValueError:
            raise _bad_path("A path must be text without lone surrogates.") from None
        found = replace(self, path=real, root=root, is_canonical=True)
        object.__setattr__(found, "spelled", self.spelled)
        return found

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
        return edge_of(self.parent_route, self.name)


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


_TEXTS = {
    CommandRequest: ("command",),
    ToolRequest: ("name",),
    SubagentRequest: ("parent_route", "name"),
    ClientToolRequest: ("name",),
    MemoryRequest: ("namespace", "identity", "new"),
}
_MAYBE_TEXTS = ("root", "base", "route", "old_id", "old")


def edge_of(parent_route: str, name: str) -> str:
    """Return an edge as JSON, in the one spelling that rules are compared in."""
    return json.dumps([parent_route, name], ensure_ascii=False, separators=(",", ":"))


def checked_call_id(call_id: object) -> str | None:
    """Return a call's id, which comes from a model, as it can be kept.

    Raises:
        InvalidInputError: It is no text, too long, or holds lone surrogates (``INVALID_ARGUMENT``).
    """
    if call_id is None:
        return None
    if (
        isinstance(call_id, str)
        and len(call_id) <= MAX_CALL_ID_CHARS
        and writable(call_id) == call_id
    ):
        return str.__str__(call_id)
    raise InvalidInputError(
        f"A call's id must be text of at most {MAX_CALL_ID_CHARS:,} characters, without lone surrogates.",
        details={"option": "call_id"},
    )


def checked_request(request: object) -> Request:
    """Return a request whose parts can be judged, a path where it leads; wrong types never get further than here.

    Raises:
        InvalidInputError: It is no request, or a part of it has another type (``INVALID_ARGUMENT``, ``INVALID_PATH``).
    """
    if isinstance(request, PathRequest):
        return request.resolved()
    kind = type(request)
    texts = _TEXTS.get(kind)
    if texts is None:
        raise InvalidInputError(
            f"A gate judges requests, not {kind.__name__}; make a CommandRequest, PathRequest, ToolRequest or one of the others.",
            details={"option": "request"},
        )
    wrong = [name for name in texts if not isinstance(getattr(request, name), str)]
    wrong += [
        name for name in _MAYBE_TEXTS if not isinstance(getattr(request, name, None), str | None)
    ]
    if not isinstance(getattr(request, "arguments", {}), Mapping):
        wrong.append("arguments")
    if wrong:
        raise InvalidInputError(
            f"{kind.__name__} cannot be judged: {wrong[0]} has the wrong type.",
            details={"option": wrong[0]},
        )
    return cast("Request", request)


def canonical(path: str) -> str:
    """Fold ``//``, ``/.`` and ``..`` of an absolute path; links are the backend's business."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    return "/" + "/".join(kept)


def _path_text(path: object) -> str:
    if not isinstance(path, str | os.PathLike):
        raise _bad_path("A path must be text.")
    text = os.fspath(path)
    if not isinstance(text, str) or "\x00" in text:
        raise _bad_path("A path must be text without NUL.")
    return text


def covers(rule: str, path: str) -> bool:
    """Tell whether a canonical path is another one or below it, by whole segments."""
    return rule in ("/", path) or path.startswith(rule + "/")


def _bad_path(message: str) -> InvalidInputError:
    return InvalidInputError(message, code=ErrorCode.INVALID_PATH, details={"option": "path"})
