"""What JSON answers look like, as schemas made of the library's own result types."""

from __future__ import annotations

from typing import Any

import msgspec

from crux_workspace.model.artifacts import Artifact
from crux_workspace.model.contents import BinaryContent, JsonContent, TextContent
from crux_workspace.model.diffs import FileDiff
from crux_workspace.model.events import WorkspaceChangeEvent
from crux_workspace.model.files import (
    GcReport,
    NamespacePage,
    Usage,
    WorkspaceDirectory,
    WorkspaceFile,
)
from crux_workspace.model.searches import GrepResult
from crux_workspace.model.transactions import Replayed
from crux_workspace.model.versions import CommitEntry, VersionEntry
from crux_workspace.telemetry.otlp import Marker

__all__ = ["REF", "RESULTS", "result_components"]

REF = "#/components/schemas/{name}"
_TYPES = (
    Artifact,
    BinaryContent,
    CommitEntry,
    FileDiff,
    GcReport,
    GrepResult,
    JsonContent,
    Marker,
    NamespacePage,
    Replayed,
    TextContent,
    Usage,
    VersionEntry,
    WorkspaceChangeEvent,
    WorkspaceDirectory,
    WorkspaceFile,
)
Schema = dict[str, Any]


def result_components() -> dict[str, Any]:
    """Return the components that the schemas here refer to."""
    _, found = msgspec.json.schema_components(_TYPES, ref_template=REF)
    for component in found.values():
        # What the service sends has all of its fields.
        if "properties" in component:
            component["required"] = sorted(component["properties"])
    return dict(found)


def _of(kind: type) -> Schema:
    return {"$ref": REF.format(name=kind.__name__)}


def _one_of(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": sorted(properties)}


_NULL: Schema = {"type": "null"}
_TEXT: Schema = {"type": "string"}
_BOOL: Schema = {"type": "boolean"}
_WHOLE: Schema = {"type": "integer"}
_ANY: Schema = {}
_FILE = _of(WorkspaceFile)
_ENTRY = _one_of(_FILE, _of(WorkspaceDirectory))
_CONTENT = _one_of(_of(TextContent), _of(JsonContent), _of(BinaryContent))
_COMMIT = _one_of(_of(Replayed), _NULL)
_MAYBE_TEXT = _one_of(_TEXT, _NULL)

RESULTS: dict[str, Schema] = {
    "/v1/file": _FILE,
    "/v1/content": _CONTENT,
    "/v1/stat": _one_of(_FILE, _NULL),
    "/v1/exists": _object(exists=_BOOL),
    "/v1/is_dir": _object(is_dir=_BOOL),
    "/v1/list": _object(
        entries=_list(_ENTRY),
        cursor=_MAYBE_TEXT,
        expired=_WHOLE,
        failed={"type": "object", "additionalProperties": _TEXT},
    ),
    "/v1/grep": _of(GrepResult),
    "/v1/history": _list(_of(VersionEntry)),
    "/v1/diff": _of(FileDiff),
    "/v1/artifacts": _list(_of(Artifact)),
    "/v1/log": _list(_of(CommitEntry)),
    "/v1/cursor": _object(cursor=_TEXT),
    "/v1/usage": _of(Usage),
    "/v1/namespaces": _of(NamespacePage),
    "/v1/read_many": _object(
        contents={"type": "object", "additionalProperties": _one_of(_CONTENT, _NULL)}
    ),
    "/v1/write": _FILE,
    "/v1/edit": _FILE,
    "/v1/append": _FILE,
    "/v1/set": _FILE,
    "/v1/update": _one_of(_FILE, _NULL),
    "/v1/delete": _NULL,
    "/v1/rename": _ENTRY,
    "/v1/move": _ENTRY,
    "/v1/copy": _ENTRY,
    "/v1/undo": _FILE,
    "/v1/redo": _FILE,
    "/v1/finalize": _of(Artifact),
    "/v1/withdraw": _FILE,
    "/v1/undo_commit": _of(CommitEntry),
    "/v1/gc": _of(GcReport),
    "/v1/transaction": _object(results=_one_of(_list(_ANY), _NULL), commit=_COMMIT, replayed=_BOOL),
    "/v1/transaction/begin": _object(transaction=_TEXT, lease_ms=_WHOLE, replayed=_COMMIT),
    "/v1/transaction/commit": _object(commit=_COMMIT, replayed=_BOOL),
    "/v1/describe": {"type": "object"},
    "/v1/session": _object(
        workspace=_TEXT,
        name=_MAYBE_TEXT,
        namespace=_MAYBE_TEXT,
        namespaces=_one_of(_list(_TEXT), _NULL),
        namespace_prefixes=_list(_TEXT),
        mounts=_list(_object(path=_TEXT, access=_TEXT, description=_MAYBE_TEXT)),
        write=_BOOL,
        partial=_BOOL,
        approvals=_BOOL,
    ),
    "/v1/approvals": _object(threads=_list(_TEXT)),
    "/v1/traces": {"type": "object"},
    "/v1/traces/versions": _object(
        files=_list(
            _object(path=_MAYBE_TEXT, label=_TEXT, path_hash=_TEXT, versions=_list(_of(Marker)))
        )
    ),
}
"""The JSON answer of each address; a problem has one shape everywhere."""
