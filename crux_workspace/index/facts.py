"""What the index finds, as values: definitions, operations, exposures, relations, warnings, and what was skipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

__all__ = [
    "FORMAT",
    "Access",
    "Definition",
    "Dynamic",
    "Exposure",
    "IndexWarning",
    "Operation",
    "Owner",
    "Place",
    "ProjectIndex",
    "Relation",
    "Skipped",
    "printable",
]

FORMAT = 1
"""Version of the JSON form; it grows when a field changes its meaning or goes away, not when one is added."""

Access: TypeAlias = Literal["read", "write"]


def printable(file: str) -> str:
    """Return a name that can be printed and be JSON, whatever bytes it has."""
    return file.encode("utf-8", "backslashreplace").decode("utf-8")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where something stands in the sources."""

    file: str
    """Path below the indexed folder, with slashes."""
    line: int
    """From 1."""
    column: int
    """From 1, in code points."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Dynamic:
    """A setting that only the running program knows."""

    source: str
    """What the code says there, at most 80 characters."""

    def to_dict(self) -> dict[str, str]:
        """Return the JSON form, which no literal has."""
        return {"dynamic": self.source}


@dataclass(frozen=True, slots=True, order=True)
class Owner:
    """Who does something: the innermost named function or class, else the module."""

    module: str
    """Dotted name, from the topmost package."""
    name: str
    """Qualified name in the module, e.g. ``Store.save``; empty for the module itself."""
    kind: str
    """``module``, ``class`` or ``function``."""

    def __str__(self) -> str:
        return f"{self.module}:{self.name}" if self.name else self.module

    def to_dict(self) -> dict[str, str]:
        """Return the JSON form."""
        return {"module": self.module, "name": self.name, "kind": self.kind}


@dataclass(frozen=True, slots=True)
class Definition:
    """A workspace that the code makes."""

    key: str
    """Names the definition in the other facts: its place."""
    place: Place
    owner: Owner
    made_by: str
    """``workspace``, ``open_workspace`` or ``open_workspace_sync``."""
    settings: dict[str, Any]
    """Id, namespace, mounts, tools, assets, retention, limits, versioning: literals, or `Dynamic` where only the program knows."""
    guardrails: tuple[str, ...] = ()
    """What keeps writes in check anywhere in the code, by name: ``if_version``, ``permission_gate``, ``read_before_write``,
    ``transaction``, ``update``."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        settings = {name: _plain(value) for name, value in self.settings.items()}
        return {
            "key": self.key,
            **_placed(self.place),
            "owner": self.owner.to_dict(),
            "made_by": self.made_by,
            **settings,
            "guardrails": list(self.guardrails),
        }


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of a verb in the code."""

    operation: str
    """A verb of the verb table."""
    access: Access
    workspace: str | None
    """Key of the definition; None when the code does not tell which workspace it is."""
    place: Place
    owner: Owner
    through: str
    """``workspace``, ``view``, ``transaction`` or ``tools``."""
    paths: tuple[str, ...] = ()
    """Literal paths, and patterns in which ``{name}`` stands for what only the program knows; empty without any."""
    to: tuple[str, ...] = ()
    """Destinations of a copy, rename or move, likewise."""
    path_kind: str | None = None
    """``literal``, ``pattern``, or ``dynamic`` when nothing of it is known; None when the verb was given no path."""
    namespace: str | Dynamic | None = None
    """The namespace that the call or its view names; None leaves it to the workspace."""
    guard: str | None = None
    """What keeps this write in check: ``if_version``, ``transaction``, ``update``, ``permission_gate``, ``read_before_write``,
    or ``replanned`` for verbs that are carried out on what is there; None for a blind write, and for reads."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "operation": self.operation,
            "access": self.access,
            "workspace": self.workspace,
            **_placed(self.place),
            "owner": self.owner.to_dict(),
            "through": self.through,
            "paths": list(self.paths),
            "to": list(self.to),
            "path_kind": self.path_kind,
            "namespace": _plain(self.namespace),
            "guard": self.guard,
        }


@dataclass(frozen=True, slots=True)
class Exposure:
    """A place where a workspace is handed to a model, or to something that works on it."""

    kind: str
    """``tools``, ``context``, ``injection``, ``prompt``, or ``handed`` to a part of this library."""
    workspace: str | None
    place: Place
    owner: Owner
    to: str | None = None
    """What it is handed to."""
    tools: tuple[str, ...] = ()
    """Names of the generated tools, as far as the code tells."""
    writes: bool = False
    """Whether files can be changed through it."""
    guard: str | None = None
    """``permission_gate`` or ``read_before_write``."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "kind": self.kind,
            "workspace": self.workspace,
            **_placed(self.place),
            "owner": self.owner.to_dict(),
            "to": self.to,
            "tools": list(self.tools),
            "writes": self.writes,
            "guard": self.guard,
        }


@dataclass(frozen=True, slots=True)
class Relation:
    """That an owner reads or writes a workspace."""

    owner: Owner
    workspace: str | None
    access: Access
    operations: tuple[str, ...]
    """The verbs, in alphabetical order; ``tools`` where a model was given tools."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "owner": self.owner.to_dict(),
            "workspace": self.workspace,
            "access": self.access,
            "operations": list(self.operations),
        }


@dataclass(frozen=True, slots=True)
class IndexWarning:
    """Something that is hardly meant so."""

    code: str
    message: str
    workspace: str
    place: Place
    writes: tuple[Place, ...] = ()
    """The writes that it is about."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "code": self.code,
            "severity": "warning",
            "message": self.message,
            "workspace": self.workspace,
            **_placed(self.place),
            "writes": [_placed(place) for place in self.writes],
        }


@dataclass(frozen=True, slots=True, order=True)
class Skipped:
    """A file that was not analysed, or not in full."""

    file: str
    reason: str
    """``symlink``, ``not_a_file``, ``too_large``, ``unreadable``, ``undecodable``, ``syntax_error``, ``too_deep`` or ``too_many_files``."""
    line: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"file": self.file, "reason": self.reason, "line": self.line}


@dataclass(frozen=True, slots=True)
class ProjectIndex:
    """Everything that was found in one folder; in the order of the sources."""

    files: int
    """Python files that were read."""
    analysed: int
    """Those among them that have to do with a workspace, directly or by their imports."""
    definitions: tuple[Definition, ...] = ()
    operations: tuple[Operation, ...] = ()
    exposures: tuple[Exposure, ...] = ()
    relations: tuple[Relation, ...] = ()
    warnings: tuple[IndexWarning, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, as ``docs/project-index.md`` describes it."""
        return {
            "format": FORMAT,
            "files": self.files,
            "analysed": self.analysed,
            "definitions": [each.to_dict() for each in self.definitions],
            "operations": [each.to_dict() for each in self.operations],
            "exposures": [each.to_dict() for each in self.exposures],
            "relations": [each.to_dict() for each in self.relations],
            "warnings": [each.to_dict() for each in self.warnings],
            "skipped": [each.to_dict() for each in self.skipped],
        }


def _placed(place: Place) -> dict[str, Any]:
    return {"file": place.file, "line": place.line, "column": place.column}


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, Dynamic):
        return value.to_dict()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
