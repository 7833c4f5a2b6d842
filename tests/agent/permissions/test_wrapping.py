"""Any tool set behind the gate; the tools of a workspace by the paths they name, at both ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crux_workspace import workspace
from crux_workspace.agent import (
    Answer,
    Approve,
    PermissionGate,
    PermissionPolicy,
    ThreadPolicy,
    WorkspaceFs,
    agent_tools,
    local_filesystem,
    workspace_filesystem,
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


# -- the version that a call works on is known without being named


CHANGES: list[tuple[str, dict[str, Any], str]] = [
    ("writeWorkspaceFile", {"path": "/workspace/a.md", "content": "mine"}, "/workspace/a.md"),
    ("editWorkspaceFile", {"path": "/workspace/a.md", "find": "one", "replace": "two"}, "/workspace/a.md"),
    ("deleteWorkspaceFile", {"path": "/workspace/a.md"}, "/workspace/a.md"),
    ("renameWorkspaceFile", {"from": "/workspace/sub", "to": "/workspace/z"}, "/workspace/sub/b.md"),
    ("undoWorkspaceFile", {"path": "/workspace/a.md"}, "/workspace/a.md"),
    ("renameWorkspaceFile", {"from": "/workspace/a.md", "to": "/workspace/z.md"}, "/workspace/a.md"),
    ("renameWorkspaceFile", {"from": "/workspace/a.md", "to": "/workspace/c.md", "overwrite": True}, "/workspace/c.md"),
    ("copyWorkspaceFile", {"from": "/workspace/sub", "to": "/workspace/z"}, "/workspace/sub/b.md"),
    ("appendWorkspaceFile", {"path": "/workspace/new.md", "content": "x"}, "/workspace/new.md"),
    ("readWorkspaceFile", {"path": "/workspace/a.md"}, "/workspace/a.md"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "changed"), CHANGES)
async def test_an_approval_of_a_workspace_s_tool_is_for_the_versions_it_was_given_for(
    name: str, arguments: dict[str, Any], changed: str
) -> None:
    async with workspace(id="w", namespace="n") as ws:
        for path in ("a.md", "sub/b.md", "c.md"):
            await ws.write(f"/workspace/{path}", "zero")
            await ws.write(f"/workspace/{path}", "one")
        g = gate(PermissionPolicy(approve=[name]))
        tool = g.wrap(ws.as_tools(undo=True, delete=True, extra=["append", "copy"]), thread_id="t")[
            name
        ]
        for somebody_writes in (True, False):
            waiting = await tool.call(arguments, call_id="c")
            await g.resume("t", [Answer(waiting.interrupt.interrupt_id, "once")])
            if somebody_writes:
                await ws.write(changed, "somebody else: one")
            made = await tool.call(arguments, call_id="c")
            assert (made.interrupt is not None) is somebody_writes
        assert made.ok, made.error


# -- the five tools behind a gate


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work" / "frozen").mkdir(parents=True)
    (tmp_path / "work" / "a.md").write_text("a\n")
    (tmp_path / "work" / "frozen" / "b.md").write_text("b\n")
    (tmp_path / "work" / "link").symlink_to("frozen")
    (tmp_path / "out.md").write_text("outside\n")
    return tmp_path / "work"


def frozen(folder: Path, **policy: Any) -> PermissionPolicy:
    return PermissionPolicy(deny={"writeFile": [f"{folder}/frozen"], "bash": ["rm -rf"]}, **policy)


@pytest.mark.parametrize("has_own_gate", [False, True])
async def test_wrapped_agent_tools_hold_to_path_rules_where_links_lead_and_to_command_rules(
    has_own_gate: bool, folder: Path
) -> None:
    inner = gate(PermissionPolicy(allow={"bash": ["echo", "rm", "cp"]})) if has_own_gate else None
    g = gate(frozen(folder, allow={"bash": ["echo", "rm", "cp"]}))
    tools = g.wrap(agent_tools(local_filesystem(folder), gate=inner), thread_id="t")
    for name, arguments in (
        ("writeFile", {"path": "frozen/b.md", "content": "x"}),
        ("writeFile", {"path": "link/new.md", "content": "x"}),
        ("writeFile", {"path": f"{folder}/x/../frozen/b.md", "content": "x"}),
        ("editFile", {"path": "link/b.md", "oldText": "b", "newText": "x"}),
        ("runBash", {"command": "echo x > frozen/b.md"}),
        ("runBash", {"command": "echo x > link/b.md"}),
        ("runBash", {"command": "rm --recursive --force frozen"}),
    ):
        refused = (await tools[name].call(arguments)).error
        assert refused is not None, arguments
        assert refused.code == ErrorCode.PERMISSION_DENIED
    assert (folder / "frozen" / "b.md").read_text() == "b\n"
    assert (await tools["writeFile"].call({"path": "a.md", "content": "x"})).ok
    assert (await tools["readFile"].call({"path": "link/b.md"})).output == "b\n"
    assert (await tools["runBash"].call({"command": "echo x > c.md"})).ok


async def test_wrapping_agent_tools_is_giving_them_the_gate(folder: Path) -> None:
    g = gate(frozen(folder, allow={"bash": ["echo"]}))
    tools = g.wrap(agent_tools(local_filesystem(folder)), thread_id="t")
    assert (await tools["runBash"].call({"command": "echo hi"})).output["stdout"] == "hi\n"
    outside = {"path": str(folder.parent / "out.md")}
    waiting = await tools["readFile"].call(outside, call_id="c")
    assert (waiting.interrupt.kind, waiting.interrupt.tool_call_id) == ("path", "c")
    assert not (await g.preview(tools["readFile"], outside, call_id="c")).allowed
    assert (await g.preview(tools["readFile"], {"path": "a.md"})).allowed
    await g.resume("t", [Answer(waiting.interrupt.interrupt_id, "once")])
    assert (await tools["readFile"].call(outside, call_id="c")).output == "outside\n"
    assert (await tools["readFile"].call(outside, call_id="c")).interrupt is not None
    assert (await tools["runBash"].call({"command": "make"})).interrupt.kind == "command"


async def test_an_approved_file_tool_behind_a_gate_is_bound_to_the_file_s_version(
    folder: Path,
) -> None:
    g = gate(frozen(folder, approve=["writeFile"]))
    tools = g.wrap(agent_tools(local_filesystem(folder)), thread_id="t")
    call = {"path": "a.md", "content": "mine"}
    waiting = await tools["writeFile"].call(call, call_id="c")
    await g.resume("t", [Answer(waiting.interrupt.interrupt_id, "once")])
    (folder / "a.md").write_text("somebody else")
    again = await tools["writeFile"].call(call, call_id="c")
    assert again.interrupt is not None
    await g.resume("t", [Answer(again.interrupt.interrupt_id, "once")])
    assert (await tools["writeFile"].call(call, call_id="c")).ok
    assert (await tools["writeFile"].call(call, call_id="c")).interrupt is not None


async def test_withholding_write_file_withholds_edit_file_of_wrapped_tools_too(
    folder: Path,
) -> None:
    edit = {"path": "a.md", "oldText": "a", "newText": "b"}
    for allow, runs in (({}, False), ({"tool": ["editFile"]}, True)):
        g = gate(PermissionPolicy(deny={"tool": ["writeFile"]}, allow=allow))
        made = await g.wrap(agent_tools(local_filesystem(folder)))["editFile"].call(edit)
        assert made.ok is runs


async def test_a_gate_before_tools_of_one_s_own_holds_for_the_files_they_reach(
    folder: Path,
) -> None:
    own = gate(PermissionPolicy())
    fs = WorkspaceFs(local_filesystem(folder), gate=own)

    async def report(arguments: Mapping[str, Any], call_id: str | None) -> ToolResult:
        return ToolResult.success(await fs.write_file(arguments["name"], "x"))

    tools = ToolSet([Tool("report", "Report.", {"type": "object"}, report)])
    wrapped = gate(frozen(folder)).wrap(tools)["report"]
    assert (await wrapped.call({"name": "ok.md"})).ok
    assert (await wrapped.call({"name": "link/no.md"})).error is not None
    assert not (folder / "frozen" / "no.md").exists()
    assert await fs.write_file("frozen/code.md", "code is behind its own gate alone")


async def test_a_handler_of_one_s_own_between_gate_and_tool_is_called_and_judged(
    folder: Path,
) -> None:
    calls: list[str] = []
    plain = agent_tools(local_filesystem(folder))["writeFile"]

    async def counted(arguments: Mapping[str, Any], call_id: str | None) -> ToolResult:
        calls.append(arguments["path"])
        return await plain.call(arguments, call_id=call_id)

    wrapped = gate(frozen(folder)).wrap([replace(plain, handler=counted)])["writeFile"]
    assert (await wrapped.call({"path": "a.md", "content": "x"})).ok
    assert (await wrapped.call({"path": "link/no.md", "content": "x"})).error is not None
    assert calls == ["a.md", "link/no.md"]


async def test_a_command_over_a_workspace_is_held_by_every_gate_before_it() -> None:
    async with workspace(id="w", namespace="n") as ws:
        await ws.write("/workspace/a.md", "a\n")
        inner = gate(PermissionPolicy(allow={"bash": ["cp"]}))
        outer = gate(PermissionPolicy(deny={"writeFile": ["/workspace/frozen"]}))
        tools = outer.wrap(agent_tools(workspace_filesystem(ws), gate=inner, thread_id="t"))
        refused = await tools["runBash"].call({"command": "cp a.md frozen"})
        assert refused.error is not None
        assert (await tools["runBash"].call({"command": "cp a.md open"})).output["commit"]
        assert not await ws.exists("/workspace/frozen")
