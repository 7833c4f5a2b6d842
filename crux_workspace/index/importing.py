"""What an import binds: modules of the folder, names of this library, and everybody else's names."""

from __future__ import annotations

import ast

from crux_workspace.index.program import Frame
from crux_workspace.index.types import LIBRARY
from crux_workspace.index.values import External, ModuleValue, Values, one

__all__ = ["import_from", "import_module"]

_STAR_LIBRARY = (
    "workspace", "open_workspace", "open_workspace_sync", "Workspace", "SyncWorkspace", "WorkspaceView",
    "Transaction", "Mount", "Limits", "Retention", "Versioning", "ContentOptions", "ToolOptions", "ToolSet",
    "prompt",
)  # fmt: skip


def _module(frame: Frame, name: str, level: int = 0) -> str | None:
    """Return the file of a module that is analysed; this library's own names are never taken from the folder."""
    modules = frame.program.modules
    here = frame.scope.file
    found = modules.relative(level, name, here) if level else modules.absolute(name, here)
    return found if found in frame.program.by_file else None


def import_module(frame: Frame, alias: ast.alias) -> tuple[str, Values]:
    """Return what ``import a.b`` and ``import a.b as c`` bind."""
    first = alias.name.partition(".")[0]
    wanted = alias.name if alias.asname else first
    file = None if first in LIBRARY else _module(frame, wanted)
    value = External(wanted) if file is None else ModuleValue(file)
    return alias.asname or first, one(value)


def import_from(frame: Frame, node: ast.ImportFrom) -> list[tuple[str, Values]]:
    """Return what ``from a import b`` binds."""
    name = node.module or ""
    is_library = node.level == 0 and name.partition(".")[0] in LIBRARY
    file = None if is_library else _module(frame, name, node.level)
    found: list[tuple[str, Values]] = []
    for alias in node.names:
        if alias.name == "*":
            found += _everything(frame, name, file, is_library=is_library)
        else:
            values = _member(frame, name, file, alias.name, node.level)
            found.append((alias.asname or alias.name, values))
    return found


def _member(frame: Frame, module: str, file: str | None, name: str, level: int) -> Values:
    program = frame.program
    if file is None:
        beside = _module(frame, f"{module}.{name}" if module else name, level) if level else None
        return one(External(f"{module}.{name}") if beside is None else ModuleValue(beside))
    slots = program.by_file[file].slots
    if name in slots:
        return slots.get(name)
    child = program.modules.child(file, name)
    if child is not None and child in program.by_file:
        return one(ModuleValue(child))
    return frozenset()


def _everything(
    frame: Frame, module: str, file: str | None, *, is_library: bool
) -> list[tuple[str, Values]]:
    if is_library:
        return [(name, one(External(f"{module}.{name}"))) for name in _STAR_LIBRARY]
    if file is None:
        return []
    slots = frame.program.by_file[file].slots
    return [(name, slots.get(name)) for name in slots if not name.startswith("_")]
