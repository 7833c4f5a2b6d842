"""The harness that users test their agents with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crux_workspace.agent import PermissionPolicy, ToolOutput
from crux_workspace.testing import (
    AgentHarness,
    AgentToolCall,
    agent_harness,
    expect_interrupt,
    expect_no_interrupt,
    expect_no_tool_errors,
    expect_offloaded,
)


@pytest.fixture
def harness() -> Iterator[AgentHarness]:
    with agent_harness(
        PermissionPolicy(allow={"bash": ["cat"]}), offload=ToolOutput(threshold_chars=500)
    ) as made:
        yield made
    made.close()
    assert not made.directory.exists()


async def test_an_approval_is_driven_without_a_server(harness: AgentHarness) -> None:
    run = await harness.run(
        AgentToolCall("runBash", {"command": "make all"}), AgentToolCall("readFile", {"path": "/etc/hostname"}),
        AgentToolCall("writeFile", {"path": "a.md", "content": "x"}),
    )  # fmt: skip
    expect_interrupt(run).of_kind("command").of_kind("path").with_detail({"operation": "readFile"})
    expect_no_tool_errors(run)
    assert harness.read("a.md") == b"x"
    command, path = run.interrupts
    after = await harness.resume(
        [
            {"interruptId": command.interrupt_id, "status": "cancelled"},
            {"interruptId": path.interrupt_id, "status": "resolved", "payload": "once"},
        ]
    )
    assert [decision.allowed for decision in after.decisions] == [False, True]
    expect_no_interrupt(after)
    assert [call.tool for call, _ in after.results] == ["readFile"]


async def test_expectations_fail_when_they_should(harness: AgentHarness) -> None:
    quiet = await harness.run(AgentToolCall("listDir"))
    loud = await harness.run(
        AgentToolCall("runBash", {"command": "make"}),
        AgentToolCall("readFile", {"path": "missing"}),
    )
    for check in (
        lambda: expect_interrupt(quiet),
        lambda: expect_interrupt(loud).of_kind("path"),
        lambda: expect_interrupt(loud).with_detail({"command": "make other"}),
        lambda: expect_no_interrupt(loud),
        lambda: expect_no_tool_errors(loud),
        lambda: expect_offloaded(loud, "readFile"),
        lambda: expect_offloaded(quiet, "runBash"),
    ):
        with pytest.raises(AssertionError):
            check()


async def test_offloading_is_expected(harness: AgentHarness) -> None:
    harness.write("big", "x" * 1000)
    run = await harness.run(AgentToolCall("runBash", {"command": "cat big"}))
    expect_offloaded(run, "runBash")
    assert await harness.fs.list_dir() == ["big", "tool-outputs"]
