"""What a gate is given by mistake or on purpose: paths behind links, and values of wrong types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crux_workspace import agent
from crux_workspace.agent import (
    CommandRequest,
    PathRequest,
    PermissionPolicy,
    agent_tools,
    local_filesystem,
    local_shell,
)
from crux_workspace.errors import ErrorCode, InvalidInputError
from crux_workspace.tools import Tool, ToolResult
from tests.agent.permissions.test_permissions_page import COMMAND, answered, asked, gate

RAW: Any = agent
"""The same names, without types."""


# -- a path is judged where it leads


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "frozen").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (root / "away").symlink_to(tmp_path / "out")
    (root / "dangling").symlink_to(tmp_path / "out" / "new")
    (root / "alias").symlink_to("frozen")
    (tmp_path / "work-link").symlink_to("work")
    return root


@pytest.mark.parametrize(
    ("path", "outcome"),
    [
        ("a.md", "allow"), ("away/secret", "interrupt"), ("dangling", "interrupt"), ("away/../x", "interrupt"), ("alias/a.md", "deny"),
        ("frozen/a.md", "deny"), ("./x/../alias", "deny"), ("away/../work/a.md", "allow"),
    ],
)  # fmt: skip
async def test_a_path_request_is_judged_where_its_links_lead(
    path: str, outcome: str, linked: Path
) -> None:
    g = gate(PermissionPolicy(deny={"writeFile": [f"{linked}/frozen"]}))
    for root in (linked, linked.parent / "work-link"):
        for given in (path, f"{root}/{path}"):
            request = PathRequest("writeFile", given, root=str(root))
            assert (await g.check(request, thread_id=given)).outcome == outcome
    held = PathRequest("writeFile", f"{linked}/away/secret", root=str(linked), is_canonical=True)
    assert (await g.check(held)).allowed, "who says so has resolved it"


async def test_a_deny_rule_by_an_alias_holds_for_who_uses_the_alias(linked: Path) -> None:
    g = gate(
        PermissionPolicy(deny={"readFile": [f"{linked}/alias"]}, allow={"bash": ["cat", "echo"]})
    )
    assert (await g.check(PathRequest("readFile", "alias/a", root=str(linked)))).outcome == "deny"
    command = CommandRequest("cat < alias/a", root=str(linked))
    assert (await g.check(command)).outcome == "deny"


async def test_what_a_person_is_shown_and_agrees_to_is_where_the_path_leads(linked: Path) -> None:
    g = gate()
    request = PathRequest("readFile", "away/secret", root=str(linked))
    decision = await g.check(request, call_id="c")
    assert asked(decision).detail["path"] == f"{linked.parent}/out/secret"
    await answered(g, decision, "once")
    (linked / "away").unlink()
    (linked / "away").symlink_to("/srv")
    assert (await g.check(request, call_id="c")).outcome == "interrupt"


# -- what cannot be judged is told, typed


BAD_REQUESTS: list[Any] = [
    None,
    "ls",
    7,
    {"command": "ls"},
    object(),
    RAW.CommandRequest(7),
    RAW.CommandRequest(None),
    RAW.CommandRequest("ls", root=7),
    RAW.ToolRequest(None),
    RAW.ToolRequest("t", arguments=None),
    RAW.ToolRequest("t", arguments=[1]),
    RAW.SubagentRequest(1, "a", None),
    RAW.SubagentRequest("/a", None, None),
    RAW.SubagentRequest("/a", "b", 7),
    RAW.ClientToolRequest(7),
    RAW.MemoryRequest(None, "i", None),
    RAW.MemoryRequest("n", 7, None),
    RAW.MemoryRequest("n", "i", None, 7, "x"),
    RAW.PathRequest("readFile", "/a\ud800"),
]


@pytest.mark.parametrize("request_", BAD_REQUESTS, ids=range(len(BAD_REQUESTS)))
@pytest.mark.parametrize("mode", ["interactive", "non-interactive", "bypass"])
async def test_what_is_no_request_is_a_typed_error(request_: Any, mode: Any) -> None:
    g = gate(RAW.PermissionPolicy(memory_writes="ask", approve=["t"]), mode=mode)
    with pytest.raises(InvalidInputError):
        await g.check(request_)


@pytest.mark.parametrize("call_id", ["\ud800", "x" * 2_000, 7, b"c", {}, ["c"]])
@pytest.mark.parametrize("mode", ["interactive", "non-interactive", "bypass"])
async def test_a_call_s_id_that_cannot_be_kept_is_a_typed_error(call_id: Any, mode: Any) -> None:
    g = gate(RAW.PermissionPolicy(approve=["t"]), mode=mode)
    with pytest.raises(InvalidInputError) as caught:
        await g.check(RAW.ToolRequest("t"), call_id=call_id)
    assert caught.value.code == ErrorCode.INVALID_ARGUMENT
    ran: list[object] = []

    async def work(_: Any, call: str | None) -> ToolResult:
        ran.append(call)
        return ToolResult.success("done", None)

    [tool] = g.wrap([Tool("t", "A tool.", {"type": "object"}, work)])
    result = await tool.call({}, call_id=call_id)
    assert result.error is not None
    assert (result.error.code, ran) == (ErrorCode.INVALID_ARGUMENT, [])


@pytest.mark.parametrize("path", [None, 7, b"/a", "", "a", "/a\x00b", ["/a"]])
def test_what_is_no_path_is_a_typed_error(path: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        RAW.PathRequest("readFile", path)
    assert caught.value.code == ErrorCode.INVALID_PATH


@pytest.mark.parametrize("operation", [None, 7, ["readFile"], "runBash"])
def test_what_is_no_operation_is_a_typed_error(operation: Any) -> None:
    with pytest.raises(InvalidInputError):
        RAW.PathRequest(operation, "/a")


@pytest.mark.parametrize(
    "build",
    [
        lambda: RAW.PermissionPolicy(approve="deploy"),
        lambda: RAW.PermissionPolicy(approve=7),
        lambda: RAW.PermissionPolicy(approve=[7]),
        lambda: RAW.PermissionPolicy(allow=["ls"]),
        lambda: RAW.PermissionPolicy(deny=7),
        lambda: RAW.PermissionPolicy(allow={"bash": 7}),
        lambda: RAW.PermissionPolicy(allow={7: ["ls"]}),
        lambda: RAW.PermissionPolicy(allow={"tool": [7]}),
        lambda: RAW.PermissionPolicy(constrain=7),
        lambda: RAW.PermissionPolicy(constrain={"t": 7}),
        lambda: RAW.PermissionPolicy(delegation={"default": "deny"}),
        lambda: RAW.PermissionPolicy(memory_writes=["ask"]),
        lambda: RAW.PermissionPolicy(mode=["bypass"]),
        lambda: RAW.Approve("t", reason=7),
        lambda: RAW.Delegation(rules=[1]),
        lambda: RAW.Delegation(rules={"a": "deny"}),
        lambda: RAW.Delegation(default=["deny"]),
        lambda: RAW.DelegationRule(["deny"]),
        lambda: RAW.DelegationRule("deny", reason=7),
        lambda: RAW.DelegationRule("constrain", predicate=7),
        lambda: RAW.PermissionPolicy.from_toml("/nowhere/crux.toml"),
        lambda: RAW.PermissionPolicy.from_toml("/"),
        lambda: RAW.PermissionPolicy.from_toml(7),
    ],
)
def test_a_policy_of_wrong_types_is_a_typed_error(build: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        build()
    assert caught.value.code == ErrorCode.POLICY_INVALID


@pytest.mark.parametrize(
    "text",
    [
        "\xff",
        "[permissions]\napprove = [7]",
        "[permissions]\napprove = [{tool = 7}]",
        "[permissions]\napprove = [{tool = 'a', reason = 7}]",
        "[permissions]\nmemory_writes = 7",
        "[permissions]\nmode = 7",
        "[permissions.delegation]\nrules = 7",
        "[permissions.delegation.rules]\na = 'deny'",
        "[permissions.delegation.rules.a]\nreason = 'x'",
        "[permissions.delegation.rules.a]\naction = 7",
        "[permissions.allow]\nbash = [7]",
        "[permissions]\ndeny = [1]",
    ],
)
def test_a_file_of_wrong_types_is_a_typed_error(text: str, tmp_path: Path) -> None:
    file = tmp_path / "crux.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidInputError) as caught:
        PermissionPolicy.from_toml(file)
    assert caught.value.code == ErrorCode.POLICY_INVALID


@pytest.mark.parametrize("given", [7, "x", {"allow": {}}])
async def test_a_thread_policy_that_is_none_is_a_typed_error(given: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        await gate(thread_policy=lambda _: given).check(COMMAND)
    assert caught.value.code == ErrorCode.POLICY_INVALID


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("readFile", {"path": "a", "endLine": "\ud800"}),
        ("editFile", {"path": "a", "oldText": "x", "newText": "y", "replaceAll": "\ud800"}),
    ],
)
async def test_a_lone_surrogate_in_place_of_another_type_is_a_wrong_argument(
    tool: str, arguments: dict[str, str], tmp_path: Path
) -> None:
    result = await agent_tools(local_filesystem(tmp_path))[tool].call(arguments)
    assert result.error is not None
    assert result.error.code == ErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize("root", [None, 5, ["/"], object()])
def test_a_root_that_is_no_path_is_refused(root: Any) -> None:
    with pytest.raises(InvalidInputError):
        local_filesystem(root)


@pytest.mark.parametrize("env", ["A=1", ["A"], True, {"A": 1}, {1: "A"}])
def test_variables_that_are_no_strings_are_refused(env: Any) -> None:
    with pytest.raises(InvalidInputError):
        local_shell(env=env)
