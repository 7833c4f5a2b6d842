"""What the library's own functions mean: which call makes a workspace, and to what a workspace is handed."""

from __future__ import annotations

from dataclasses import replace

from crux_workspace.index.definitions import define, tool_settings
from crux_workspace.index.facts import Exposure
from crux_workspace.index.program import Arguments, Frame
from crux_workspace.index.texts import is_none, literal
from crux_workspace.index.types import library_name
from crux_workspace.index.values import (
    EMPTY,
    UNKNOWN,
    Handle,
    Setting,
    Values,
    handles,
    items,
    one,
)

__all__ = ["expose", "library_call", "library_name"]

_FACTORIES = {
    "workspace": "workspace",
    "open_workspace": "opening",
    "open_workspace_sync": "workspace",
}
SETTINGS = frozenset(
    {
        "Mount", "Limits", "Retention", "Versioning", "ContentOptions", "ToolOptions", "PermissionGate",
        "storage", "memory_storage", "open_storage", "Storage",
    }
)  # fmt: skip
_AGENT = frozenset({"workspace_filesystem", "agent_context", "agent_tools", "agent_context_from"})
_QUIET = frozenset({"WorkspaceSource"})
"""A workspace behind a mount of another one is read there."""


def library_call(frame: Frame, name: str, arguments: Arguments) -> Values:
    """Return what a call of one of the library's names gives, and note what it means."""
    if name in _FACTORIES:
        key = define(frame, name, arguments)
        return one(Handle(_FACTORIES[name], key))
    if name in SETTINGS:
        place = frame.place(arguments.node)
        made = Setting(name, (place.file, place.line, place.column))
        frame.program.made[made.place] = arguments
        return one(made)
    if name == "prompt":
        _prompt(frame, arguments)
        return one(UNKNOWN)
    return _handed(frame, name, arguments)


def _prompt(frame: Frame, arguments: Arguments) -> None:
    known, id_ = literal(arguments.get(0, "id"))
    to = str(id_) if known and isinstance(id_, str) else None
    for handle in handles(items(arguments.get(1, "use") or EMPTY)):
        if handle.kind == "workspace":
            expose(frame, "prompt", handle, arguments, to=to)


def _handed(frame: Frame, name: str, arguments: Arguments) -> Values:
    gate = arguments.get(None, "gate")
    judged = name == "agent_context_from" or not is_none(gate)
    made: list[Handle] = []
    for _, values in arguments.all():
        for handle in handles(values):
            if handle.kind not in ("workspace", "filesystem", "view"):
                continue
            guard = "permission_gate" if judged else handle.guard
            if guard == "permission_gate":
                frame.program.guarded(handle, guard)
            if handle.kind != "filesystem" or name in ("agent_context", "agent_tools"):
                writes = handle.kind != "view" and name not in _QUIET
                fact = replace(handle, guard=guard)
                expose(frame, "handed", fact, arguments, to=name, writes=writes)
            if name in _AGENT:
                kind = "tools" if name == "agent_tools" else "filesystem"
                made.append(replace(handle, kind=kind, guard=guard))
    return frozenset(made) or one(UNKNOWN)


def expose(
    frame: Frame,
    kind: str,
    handle: Handle,
    arguments: Arguments,
    *,
    to: str | None = None,
    writes: bool = True,
    tools: tuple[str, ...] | None = None,
    guard: str | None = None,
) -> None:
    """Note that a workspace is handed to a model, or to what works on it."""
    program = frame.program
    guard = guard or handle.guard
    if guard is not None:
        program.guarded(handle, guard)
    if not program.recording:
        return
    place = frame.place(arguments.node)
    if tools is None:
        offered = kind in ("prompt", "injection")
        tools = _tools_of(frame, handle) if offered else ()
    fact = Exposure(
        kind, handle.definition, place, frame.scope.owner, to, tools, writes=writes, guard=guard
    )
    program.exposures[place, kind, handle.definition, to] = fact


def _tools_of(frame: Frame, handle: Handle) -> tuple[str, ...]:
    definition = frame.program.definition(handle)
    if definition is None:
        return tuple(tool_settings(None)["names"])
    tools = definition.settings["tools"]
    return tuple(tools["names"]) if isinstance(tools, dict) else ()
