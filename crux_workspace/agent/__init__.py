"""Agents at work on files: backends, tools, and one permission gate before all of them."""

from __future__ import annotations

from crux_workspace.agent.context import AgentContext, agent_context, agent_context_from
from crux_workspace.agent.files.contract import (
    FileStat,
    FilesystemBackend,
    FsContext,
    LineWindow,
    Pin,
    WalkedEntry,
)
from crux_workspace.agent.files.handle import WorkspaceFs
from crux_workspace.agent.files.local import local_filesystem
from crux_workspace.agent.files.middleware import (
    BackendCall,
    compose,
    with_filesystem_logging,
    with_shell_logging,
)
from crux_workspace.agent.files.workspace import workspace_filesystem
from crux_workspace.agent.permissions.decisions import Answer, Decision, Grant, Interrupt
from crux_workspace.agent.permissions.file_store import file_permission_store
from crux_workspace.agent.permissions.gate import PermissionGate
from crux_workspace.agent.permissions.linting import RuleWarning
from crux_workspace.agent.permissions.policy import (
    Approve,
    ConstraintContext,
    Delegation,
    DelegationRule,
    PermissionPolicy,
    ThreadPolicy,
)
from crux_workspace.agent.permissions.record_store import record_permission_store
from crux_workspace.agent.permissions.requests import (
    ClientToolRequest,
    CommandRequest,
    MemoryRequest,
    PathRequest,
    SubagentRequest,
    ToolRequest,
)
from crux_workspace.agent.permissions.stores import (
    PermissionStore,
    StoredPermissions,
    memory_permission_store,
)
from crux_workspace.agent.server import approval_app
from crux_workspace.agent.shells.contract import Shell, ShellResult
from crux_workspace.agent.shells.local import local_shell
from crux_workspace.agent.toolbox.offloading import ToolOutput, offload_tool_output
from crux_workspace.agent.toolbox.tools import agent_tools

__all__ = [
    "AgentContext",
    "Answer",
    "Approve",
    "BackendCall",
    "ClientToolRequest",
    "CommandRequest",
    "ConstraintContext",
    "Decision",
    "Delegation",
    "DelegationRule",
    "FileStat",
    "FilesystemBackend",
    "FsContext",
    "Grant",
    "Interrupt",
    "LineWindow",
    "MemoryRequest",
    "PathRequest",
    "PermissionGate",
    "PermissionPolicy",
    "PermissionStore",
    "Pin",
    "RuleWarning",
    "Shell",
    "ShellResult",
    "StoredPermissions",
    "SubagentRequest",
    "ThreadPolicy",
    "ToolOutput",
    "ToolRequest",
    "WalkedEntry",
    "WorkspaceFs",
    "agent_context",
    "agent_context_from",
    "agent_tools",
    "approval_app",
    "compose",
    "file_permission_store",
    "local_filesystem",
    "local_shell",
    "memory_permission_store",
    "offload_tool_output",
    "record_permission_store",
    "with_filesystem_logging",
    "with_shell_logging",
    "workspace_filesystem",
]
