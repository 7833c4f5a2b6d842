"""Tools over a local folder and over a workspace, with a gate that allows some commands."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crux_workspace import Workspace, workspace
from crux_workspace.agent import (
    AgentContext,
    PermissionGate,
    PermissionPolicy,
    agent_context,
    local_filesystem,
    workspace_filesystem,
)
from crux_workspace.tools import ToolResult

COMMANDS = """
    echo cat printf mv rm mkdir ls ln exit sleep pwd cp true env head mkfifo touch test cd yes sh python3 bash ulimit
""".split()  # noqa: SIM905 - a list of words


@dataclass
class Agent:
    """One agent's context, and short forms of its calls."""

    context: AgentContext
    ws: Workspace | None
    folder: Path | None

    async def call(self, tool: str, call_id: str | None = None, /, **arguments: Any) -> ToolResult:
        return await self.context.tools[tool].call(arguments, call_id=call_id)

    async def output(self, tool: str, **arguments: Any) -> Any:
        result = await self.call(tool, **arguments)
        assert result.ok, result.error
        return result.output

    async def refused(self, tool: str, **arguments: Any) -> Any:
        result = await self.call(tool, **arguments)
        assert not result.ok
        assert result.error is not None
        return result.error


@pytest.fixture
def gate() -> PermissionGate:
    return PermissionGate(PermissionPolicy(allow={"bash": COMMANDS}), mode="interactive")


@pytest.fixture
async def ws() -> AsyncIterator[Workspace]:
    async with workspace(id="w", namespace="n") as opened:
        yield opened


@pytest.fixture
def local(tmp_path: Path, gate: PermissionGate) -> Agent:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return Agent(agent_context(local_filesystem(folder), gate=gate, thread_id="t"), None, folder)


@pytest.fixture
def versioned(ws: Workspace, gate: PermissionGate) -> Agent:
    return Agent(agent_context(workspace_filesystem(ws), gate=gate, thread_id="t"), ws, None)


@pytest.fixture(params=["local", "workspace"])
def agent(request: pytest.FixtureRequest, local: Agent, versioned: Agent) -> Agent:
    return local if request.param == "local" else versioned


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
