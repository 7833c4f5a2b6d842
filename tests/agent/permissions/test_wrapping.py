"""Any tool set behind the gate; the tools of a workspace by the paths they name, at both ends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from crux_workspace.agent import (
    Answer,
    Approve,
    PermissionGate,
    PermissionPolicy,
    ThreadPolicy,
    agent_tools,
    local_filesystem,
)
from crux_workspace.errors import ErrorCode
from crux_workspace.tools import Tool, ToolResult, ToolSet


def recorded(*names: str) -> tuple[ToolSet, list[tuple[str, dict[str, Any]]]]:
    """Return tools that only note their calls."""
    calls: list[tuple[str, dict[str, Any]]] = []

    def make(name: str) -> Tool:
        async def handle(arguments: Mapping[str, Any], call_id: str | None) -> ToolResult:
            calls.append((name, dict(arguments)))
            return ToolResult.success("done")

        return Tool(name, name, {"type": "object"}, handle)

    return ToolSet(make(name) for name in names), calls


def gate(policy: PermissionPolicy, **options: Any) -> PermissionGate:
    return PermissionGate(policy, **{"mode": "interactive", **options})


async def test_a_wrapped_tool_is_judged_by_deny_allow_approve_and_constrain_and_else_runs() -> None:
    tools, calls = recorded("free", "denied", "asked", "allowed", "limited")
    policy = PermissionPolicy(
        deny={"tool": ["denied"]}, allow={"tool": ["allowed"]}, approve=["asked", "allowed"],
        constrain={"limited": lambda arguments, _: arguments.get("n", 0) < 5 or "Too many."},
    )  # fmt: skip
    wrapped = gate(policy).wrap(tools, thread_id="t")
    assert wrapped.names == tools.names
    assert (await wrapped["free"].call({})).ok
    assert (await wrapped["allowed"].call({})).ok
    assert (await wrapped["limited"].call({"n": 1})).ok
    denied = await wrapped["denied"].call({})
    limited = await wrapped["limited"].call({"n": 9})
    asked = await wrapped["asked"].call({}, call_id="c")
    assert denied.error is not None
    assert limited.error is not None
    assert denied.error.code == ErrorCode.PERMISSION_DENIED
    assert limited.error.message == "Too many."
    assert asked.interrupt.tool_call_id == "c"
    assert [name for name, _ in calls] == ["free", "allowed", "limited"], (
        "what is refused does nothing"
    )


async def test_a_wrapped_tool_runs_once_after_once_and_never_for_other_arguments() -> None:
    tools, calls = recorded("pay")
    g = gate(PermissionPolicy(approve=[Approve("pay", allow_always=False)]))
    wrapped = g.wrap(tools, thread_id="t")
    waiting = await wrapped["pay"].call({"to": "a"}, call_id="c")
    await g.resume("t", [Answer(waiting.interrupt.interrupt_id, "always")])
    assert (await wrapped["pay"].call({"to": "b"}, call_id="c")).interrupt is not None
    for item in await g.pending("t"):
        await g.resume("t", [Answer(item.interrupt_id, "deny")])
    waiting = await wrapped["pay"].call({"to": "a"}, call_id="d")
    await g.resume("t", [Answer(waiting.interrupt.interrupt_id, "once")])
    assert (await wrapped["pay"].call({"to": "a"}, call_id="d")).ok
    assert (await wrapped["pay"].call({"to": "a"}, call_id="d")).interrupt is not None
    assert calls == [("pay", {"to": "a"})]


async def test_an_approval_is_for_the_version_that_was_there() -> None:
    tools, calls = recorded("writeWorkspaceFile")
    versions = {"n": 1}

    async def base(name: str, arguments: Mapping[str, Any]) -> str:
        return f"{arguments['path']}@{versions['n']}"

    g = gate(PermissionPolicy(approve=["writeWorkspaceFile"]))
    wrapped = g.wrap(tools, thread_id="t", base=base)
    call = {"path": "/workspace/a", "content": "x"}
    waiting = await wrapped["writeWorkspaceFile"].call(call, call_id="c")
    await g.resume("t", [Answer(waiting.interrupt.interrupt_id, "once")])
    versions["n"] = 2
    assert (await wrapped["writeWorkspaceFile"].call(call, call_id="c")).interrupt is not None
    assert calls == []


RULES = {
    "readFile": ["/workspace/secret"],
    "writeFile": ["/workspace/frozen"],
    "listDir": ["/workspace/hidden"],
}
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("renameWorkspaceFile", {"from": "/workspace/frozen/a", "to": "/workspace/b"}),
    ("renameWorkspaceFile", {"from": "/workspace/b", "to": "/workspace/frozen/a"}),
    ("renameWorkspaceFile", {"from": "/workspace/secret/a", "to": "/workspace/b"}),
    ("renameWorkspaceFile", {"from": "/workspace", "to": "/outputs/all"}),
    ("renameWorkspaceFile", {"from": "/workspace/b", "to": "/workspace"}),
    ("copyWorkspaceFile", {"from": "/workspace/secret/a", "to": "/workspace/b"}),
    ("copyWorkspaceFile", {"from": "/workspace", "to": "/outputs/all"}),
    ("copyWorkspaceFile", {"from": "/workspace/b", "to": "/workspace/frozen/b"}),
    ("deleteWorkspaceFile", {"path": "/workspace"}),
    ("deleteWorkspaceFile", {"path": "/workspace/frozen"}),
    ("writeWorkspaceFile", {"path": "/workspace/frozen/a"}),
    ("writeResearchWorkspaceFile", {"path": "//workspace/./frozen/a"}),
    ("writeWorkspaceFile", {"path": "/workspace/x/../frozen/a"}),
    ("writeWorkspaceFile", {"path": "workspace/frozen/a"}),
    ("appendWorkspaceFile", {"path": "/workspace/frozen/a"}),
    ("editWorkspaceFile", {"path": "/workspace/secret/a"}),
    ("editWorkspaceFile", {"path": "/workspace/frozen/a"}),
    ("undoWorkspaceFile", {"path": "/workspace/frozen/a"}),
    ("finalizeWorkspaceFile", {"path": "/workspace/frozen/a"}),
    ("readWorkspaceFile", {"path": "/workspace/secret"}),
    ("statWorkspaceFile", {"path": "/workspace/secret/a"}),
    ("historyWorkspaceFile", {"path": "/workspace/secret/a"}),
    ("diffWorkspaceFile", {"path": "/workspace/secret/a"}),
    ("grepWorkspace", {"query": "x", "path": "/workspace"}),
    ("grepWorkspace", {"query": "x"}),
    ("grepWorkspace", {"query": "x", "path": "/work*/**"}),
    ("listWorkspace", {"path": "/workspace/hidden"}),
    ("listWorkspace", {"path": "/workspace/h*"}),
]
RUN: list[tuple[str, dict[str, Any]]] = [
    ("renameWorkspaceFile", {"from": "/workspace/a", "to": "/workspace/b"}),
    ("copyWorkspaceFile", {"from": "/workspace/frozen/a", "to": "/workspace/b"}),
    ("readWorkspaceFile", {"path": "/workspace/frozen/a"}),
    ("writeWorkspaceFile", {"path": "/workspace/frozenish"}),
    ("grepWorkspace", {"query": "x", "path": "/workspace/open"}),
    ("listWorkspace", {"path": "/workspace"}),
    ("listWorkspace", {}),
    ("unrelated", {"path": "/workspace/frozen/a"}),
]


@pytest.mark.parametrize(("name", "arguments"), REFUSED)
async def test_renames_moves_and_copies_are_judged_at_both_ends_and_trees_whole(
    name: str, arguments: dict[str, Any]
) -> None:
    tools, calls = recorded(name)
    wrapped = gate(PermissionPolicy(deny=RULES)).wrap(tools)
    result = await wrapped[name].call(arguments)
    assert result.error is not None
    assert result.error.code == ErrorCode.PERMISSION_DENIED
    assert calls == []
    assert (
        await gate(PermissionPolicy(deny=RULES), mode="bypass").wrap(tools)[name].call(arguments)
    ).ok


@pytest.mark.parametrize(("name", "arguments"), RUN)
async def test_what_no_rule_touches_runs(name: str, arguments: dict[str, Any]) -> None:
    tools, calls = recorded(name)
    assert (await gate(PermissionPolicy(deny=RULES)).wrap(tools)[name].call(arguments)).ok
    assert len(calls) == 1


async def test_a_threads_own_denials_hold_for_wrapped_tools() -> None:
    tools, calls = recorded("writeWorkspaceFile")
    g = gate(
        PermissionPolicy(), thread_policy=lambda _: ThreadPolicy(deny={"writeFile": ["/workspace"]})
    )
    result = await g.wrap(tools, thread_id="t")["writeWorkspaceFile"].call({"path": "/workspace/a"})
    assert not result.ok
    assert calls == []


async def test_an_approval_is_given_back_when_the_tool_inside_pauses_too(tmp_path: Path) -> None:
    inner = gate(PermissionPolicy())
    outer = gate(PermissionPolicy(approve=["readFile"]))
    tools = outer.wrap(
        agent_tools(local_filesystem(tmp_path), gate=inner, thread_id="i"), thread_id="o"
    )
    call = {"path": "/etc/hostname"}
    first = await tools["readFile"].call(call, call_id="c")
    await outer.resume("o", [Answer(first.interrupt.interrupt_id, "once")])
    second = await tools["readFile"].call(call, call_id="c")
    assert second.interrupt.kind == "path"
    await inner.resume("i", [Answer(second.interrupt.interrupt_id, "once")])
    assert (await tools["readFile"].call(call, call_id="c")).ok
    assert (await tools["readFile"].call(call, call_id="c")).interrupt.kind == "tool"
