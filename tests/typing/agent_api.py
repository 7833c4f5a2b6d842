"""How the agent room types: judged by mypy and pyright, never run."""

from __future__ import annotations

from typing import assert_type

from crux_workspace import Workspace
from crux_workspace.agent import (
    AgentContext,
    Answer,
    Approve,
    CommandRequest,
    Decision,
    FilesystemBackend,
    Grant,
    Interrupt,
    PathRequest,
    PermissionGate,
    PermissionPolicy,
    PermissionStore,
    RuleWarning,
    WorkspaceFs,
    agent_context,
    agent_context_from,
    agent_tools,
    compose,
    file_permission_store,
    local_filesystem,
    memory_permission_store,
    offload_tool_output,
    with_filesystem_logging,
    workspace_filesystem,
)
from crux_workspace.tools import Tool, ToolResult, ToolSet


async def gates(gate: PermissionGate) -> None:
    decision = await gate.check(CommandRequest("ls"), thread_id="t", call_id="c")
    assert_type(decision, Decision)
    assert_type(decision.interrupt, Interrupt | None)
    assert_type(await gate.require(PathRequest("readFile", "/a", root="/")), Decision)
    assert_type(await gate.pending("t"), list[Interrupt])
    assert_type(await gate.resume("t", [Answer("perm-1", "once")]), list[Decision])
    assert_type(await gate.resume("t", {"resume": [], "route": "x"}), list[Decision])
    assert_type(await gate.grants(), list[Grant])
    assert_type(await gate.revoke("x"), bool)
    assert_type(gate.lint(["deploy"]), list[RuleWarning])
    assert_type(gate.wrap(agent_tools(local_filesystem("/srv"))), ToolSet)


async def files(ws: Workspace) -> None:
    backend: FilesystemBackend = compose(with_filesystem_logging())(local_filesystem("/srv"))
    context = agent_context(workspace_filesystem(ws))
    assert_type(context, AgentContext)
    assert_type(context.fs, WorkspaceFs)
    assert_type(context.tools["readFile"], Tool)
    assert_type(await context.tools["readFile"].call({"path": "a"}), ToolResult)
    assert_type(await context.memory(), str | None)
    assert_type(await context.fs.read_binary_file("a"), bytes)
    assert_type(await offload_tool_output("x", backend, tool="t"), str)
    assert_type(agent_context_from("/srv/app"), AgentContext)


def stores() -> None:
    kept: list[PermissionStore] = [memory_permission_store(), file_permission_store("p.json")]
    PermissionGate(PermissionPolicy(approve=["a", Approve("b", allow_always=False)]), kept[0])


def mistakes() -> None:
    """Each line is wrong, and the checkers must say so."""
    PermissionPolicy(mode="loose")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    PathRequest("removeFile", "/a")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Answer("perm-1", "maybe")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
