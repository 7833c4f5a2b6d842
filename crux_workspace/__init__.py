"""A durable file workspace: every change versioned, every group of changes one commit."""

from __future__ import annotations

import logging

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
from crux_workspace.model.changes import Change
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

logging.getLogger("crux_workspace").addHandler(logging.NullHandler())
