"""A durable file workspace: every change versioned, every group of changes one commit.

The names are imported when they are first used (PEP 562): a program that only mentions the package, or takes its settings from it,
does not pay for the engine.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crux_workspace.api.facade import Workspace
    from crux_workspace.api.factory import open_workspace, open_workspace_sync, workspace
    from crux_workspace.api.runtimes import configure, local_runtime
    from crux_workspace.api.sync_facade import SyncView, SyncWorkspace
    from crux_workspace.api.sync_transaction import SyncTransaction
    from crux_workspace.api.sync_watch import SyncWatchHandle
    from crux_workspace.api.transaction import Transaction
    from crux_workspace.api.view import WorkspaceView
    from crux_workspace.events.runtime import LocalRuntime
    from crux_workspace.events.watching import WatchHandle
    from crux_workspace.model.artifacts import Artifact
    from crux_workspace.model.changes import PURGED_PATH, Change
    from crux_workspace.model.contents import BinaryContent, JsonContent, TextContent
    from crux_workspace.model.diffs import DiffHunk, DiffLine, FileDiff
    from crux_workspace.model.edits import Edit
    from crux_workspace.model.events import WatchError, WorkspaceChangeEvent
    from crux_workspace.model.files import (
        GcReport,
        ListResult,
        NamespacePage,
        Usage,
        WorkspaceDirectory,
        WorkspaceFile,
    )
    from crux_workspace.model.matching import GrepMatch
    from crux_workspace.model.searches import GrepResult
    from crux_workspace.model.settings import (
        ContentOptions,
        Limits,
        Mount,
        NamespaceRequest,
        Retention,
        ToolOptions,
        Versioning,
    )
    from crux_workspace.model.sources import (
        MountGrepOptions,
        MountListOptions,
        MountPathOptions,
        MountReadOptions,
        MountSource,
        MountWriteOptions,
    )
    from crux_workspace.model.transactions import Replayed
    from crux_workspace.model.versions import CommitEntry, VersionEntry
    from crux_workspace.mounts.hits import RetrieverHit, RetrieverQuery
    from crux_workspace.mounts.retriever import RetrieverSource, retriever_workspace_mount_source
    from crux_workspace.telemetry import Telemetry
    from crux_workspace.tools import (
        Tool,
        ToolResult,
        ToolSet,
        WorkspaceToolNames,
        prompt,
        workspace_tool_names,
    )

__all__ = [
    "PURGED_PATH",
    "Artifact",
    "BinaryContent",
    "Change",
    "CommitEntry",
    "ContentOptions",
    "DiffHunk",
    "DiffLine",
    "Edit",
    "FileDiff",
    "GcReport",
    "GrepMatch",
    "GrepResult",
    "JsonContent",
    "Limits",
    "ListResult",
    "LocalRuntime",
    "Mount",
    "MountGrepOptions",
    "MountListOptions",
    "MountPathOptions",
    "MountReadOptions",
    "MountSource",
    "MountWriteOptions",
    "NamespacePage",
    "NamespaceRequest",
    "Replayed",
    "Retention",
    "RetrieverHit",
    "RetrieverQuery",
    "RetrieverSource",
    "SyncTransaction",
    "SyncView",
    "SyncWatchHandle",
    "SyncWorkspace",
    "Telemetry",
    "TextContent",
    "Tool",
    "ToolOptions",
    "ToolResult",
    "ToolSet",
    "Transaction",
    "Usage",
    "VersionEntry",
    "Versioning",
    "WatchError",
    "WatchHandle",
    "Workspace",
    "WorkspaceChangeEvent",
    "WorkspaceDirectory",
    "WorkspaceFile",
    "WorkspaceToolNames",
    "WorkspaceView",
    "__version__",
    "configure",
    "local_runtime",
    "open_workspace",
    "open_workspace_sync",
    "prompt",
    "retriever_workspace_mount_source",
    "workspace",
    "workspace_tool_names",
]

__version__ = "0.1.0"

_NAMES = {
    "crux_workspace.api.facade": "Workspace",
    "crux_workspace.api.factory": "open_workspace open_workspace_sync workspace",
    "crux_workspace.api.runtimes": "configure local_runtime",
    "crux_workspace.api.sync_facade": "SyncView SyncWorkspace",
    "crux_workspace.api.sync_transaction": "SyncTransaction",
    "crux_workspace.api.sync_watch": "SyncWatchHandle",
    "crux_workspace.api.transaction": "Transaction",
    "crux_workspace.api.view": "WorkspaceView",
    "crux_workspace.events.runtime": "LocalRuntime",
    "crux_workspace.events.watching": "WatchHandle",
    "crux_workspace.model.artifacts": "Artifact",
    "crux_workspace.model.changes": "PURGED_PATH Change",
    "crux_workspace.model.contents": "BinaryContent JsonContent TextContent",
    "crux_workspace.model.diffs": "DiffHunk DiffLine FileDiff",
    "crux_workspace.model.edits": "Edit",
    "crux_workspace.model.events": "WatchError WorkspaceChangeEvent",
    "crux_workspace.model.files": "GcReport ListResult NamespacePage Usage WorkspaceDirectory WorkspaceFile",
    "crux_workspace.model.matching": "GrepMatch",
    "crux_workspace.model.searches": "GrepResult",
    "crux_workspace.model.settings": "ContentOptions Limits Mount NamespaceRequest Retention ToolOptions Versioning",
    "crux_workspace.model.sources": "MountGrepOptions MountListOptions MountPathOptions MountReadOptions MountSource MountWriteOptions",
    "crux_workspace.model.transactions": "Replayed",
    "crux_workspace.model.versions": "CommitEntry VersionEntry",
    "crux_workspace.mounts.hits": "RetrieverHit RetrieverQuery",
    "crux_workspace.mounts.retriever": "RetrieverSource retriever_workspace_mount_source",
    "crux_workspace.telemetry": "Telemetry",
    "crux_workspace.tools": "Tool ToolResult ToolSet WorkspaceToolNames prompt workspace_tool_names",
}
"""The names that each module has to give, as a type checker sees them above."""
_ROOMS = ("errors", "mounts", "storage", "telemetry", "tools")
"""Modules that are reachable as attributes of the package without an import of their own."""
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Import a public name, or a room of the package, where it is first asked for."""
    if name in _HOMES:
        found: object = getattr(import_module(_HOMES[name]), name)
    elif name in _ROOMS:
        found = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})


logging.getLogger("crux_workspace").addHandler(logging.NullHandler())
