"""What a type says about a value: the library's own types, and classes of the folder."""

from __future__ import annotations

from crux_workspace.index.values import (
    ClassValue,
    External,
    Handle,
    Instance,
    Setting,
    Value,
    Values,
)

__all__ = ["LIBRARY", "library_name", "objects_of"]

LIBRARY = frozenset({"crux_workspace", "storage_adapters"})
_HANDLES = {
    "Workspace": "workspace",
    "SyncWorkspace": "workspace",
    "WorkspaceOpening": "opening",
    "WorkspaceView": "view",
    "SyncView": "view",
    "Transaction": "transaction",
    "SyncTransaction": "transaction",
    "ToolSet": "tools",
    "WorkspaceFs": "filesystem",
    "AgentContext": "filesystem",
}


def library_name(name: str) -> str | None:
    """Return the last part of a name of this library, None for everybody else's."""
    first, _, rest = name.partition(".")
    return rest.rpartition(".")[2] if first in LIBRARY and rest else None


def objects_of(types: Values) -> Values:
    """Return objects of these types, without knowing where they come from."""
    return frozenset(made for value in types if (made := _object_of(value)) is not None)


def _object_of(value: Value) -> Value | None:
    if isinstance(value, ClassValue):
        return Instance(value.scope)
    if not isinstance(value, External):
        return None
    name = library_name(value.name)
    if name == "PermissionGate":
        return Setting("PermissionGate", ("", 0, 0))
    if name not in _HANDLES:
        return None
    kind = _HANDLES[name]
    return Handle(kind, None, guard="transaction" if kind == "transaction" else None)
