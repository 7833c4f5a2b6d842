"""Each sentence of the filesystem page that states behaviour, as a test; over a folder and over a workspace."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from crux_workspace import Workspace, workspace
from crux_workspace.agent import (
    Answer,
    BackendCall,
    FsContext,
    PermissionGate,
    PermissionPolicy,
    WorkspaceFs,
    agent_context,
    agent_context_from,
    agent_tools,
    compose,
    local_filesystem,
    with_filesystem_logging,
    workspace_filesystem,
)
from crux_workspace.errors import (
    ApprovalRequiredError,
    ConflictError,
    ErrorCode,
    InvalidInputError,
    InvalidPathError,
    LimitExceededError,
    PathNotFoundError,
    PermissionDeniedError,
    UnsupportedError,
    WorkspaceError,
)
from tests.agent.files.test_contract import Plain
from tests.agent.tools.conftest import Agent

# -- an application's folder


async def test_tools_are_there_when_the_workspace_folder_is_and_fs_always_is(
    tmp_path: Path,
) -> None:
    before = agent_context_from(tmp_path)
    assert before.tools.names == []
    with pytest.raises(FileNotFoundError, match="ENOENT"):
        await before.fs.read_file("a.md")
    (tmp_path / "workspace").mkdir()
    context = agent_context_from(tmp_path)
    assert context.tools.names == ["listDir", "readFile", "writeFile", "editFile", "runBash"]
    await context.fs.write_file("a.md", "x")
    assert (tmp_path / "workspace" / "a.md").read_text() == "x"


async def test_the_applications_file_configures_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "crux.toml").write_text(
        """
[permissions]
mode = "interactive"
memory_writes = "ask"
approve = ["deploy", {tool = "pay", allow_always = false}]
[permissions.allow]
bash = ["echo"]
[permissions.deny]
bash = ["sudo"]
[permissions.delegation]
default = "deny"
[permissions.delegation.rules.researcher]
action = "approve"
reason = "it reads mail"
[tools]
deny = ["writeFile"]
[filesystem]
max_file_bytes = 5
[shell]
timeout_ms = 5000
[tool_output]
threshold_chars = 10
"""
    )
    context = agent_context_from(tmp_path, thread_id="t")
    assert context.tools.names == ["listDir", "readFile", "runBash"]
    assert context.gate is not None
    policy = context.gate.policy
    assert not policy.approvals["pay"].allow_always
    assert policy.delegation is not None
    assert policy.delegation.rule("researcher").reason == "it reads mail"
    (tmp_path / "workspace" / "a.md").write_text("123456")
    with pytest.raises(LimitExceededError):
        await context.fs.read_file("a.md")
    result = await context.tools["runBash"].call({"command": "echo a long enough output"})
    assert "Tool output offloaded" in result.output
    waiting = await context.tools["runBash"].call({"command": "make"})
    await context.gate.resume("t", [Answer(waiting.interrupt.interrupt_id, "always")])
    saved = json.loads((tmp_path / ".crux" / "permissions.json").read_text())
    assert [grant["pattern"] for grant in saved["grants"]] == ["make"]
    again = agent_context_from(tmp_path)
    assert again.gate is not None
    assert [grant.pattern for grant in await again.gate.grants()] == ["make"]


@pytest.mark.parametrize(
    "text",
    ["[permissions", "[permissions]\nmode = 'loose'", "[permissions]\nother = 1", "[permissions.allow]\nbash = ['']", "permissions = 1",
     "[permissions]\nallow = 1", "[permissions.allow]\nbash = 'ls'", "[tools]\nallow = ['nothing']", "[tools]\nallow = ['task']",
     "[permissions]\napprove = ['task']", "[shell]\nother = 1", "[tool_output]\nother = 1", "[permissions]\napprove = 'x'",
     "[permissions.delegation]\ndefault = 'x'", "[permissions.delegation.rules.x]\naction = 'constrain'"],
)  # fmt: skip
def test_a_file_that_cannot_be_followed_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "crux.toml").write_text(text)
    with pytest.raises(InvalidInputError) as caught:
        agent_context_from(tmp_path)
    assert caught.value.code == ErrorCode.POLICY_INVALID


# -- the backend


async def test_a_local_read_is_capped_at_256_kib_unless_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 262_145)
    fs = WorkspaceFs(local_filesystem(tmp_path))
    with pytest.raises(LimitExceededError) as caught:
        await fs.read_file("a")
    assert caught.value.details["limit"] == 262_144
    assert len(await fs.read_file("a", max_bytes=262_145)) == 262_145
    for lifted in (
        local_filesystem(tmp_path, max_file_bytes=None),
        local_filesystem(tmp_path, max_file_bytes=300_000),
    ):
        assert len(await WorkspaceFs(lifted).read_file("a")) == 262_145
    (tmp_path / "b").write_bytes(b"x" * 262_144)
    assert len(await fs.read_file("b")) == 262_144
    for cap in (-1, 1.5, True, "x"):
        with pytest.raises(InvalidInputError):
            await fs.read_file("b", max_bytes=cap)  # type: ignore[arg-type]


def test_the_first_middleware_is_outermost() -> None:
    def named(name: str) -> Any:
        return lambda inner: f"{name}({inner})"

    a, b = named("a"), named("b")
    assert compose(a, b)("base") == "a(b(base))"
    nothing: Any = compose()
    assert nothing("base") == "base"


async def test_logging_tells_methods_and_arguments_but_no_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[BackendCall] = []
    logged = compose(with_filesystem_logging(told.append))(local_filesystem(tmp_path))
    context = agent_context(logged)
    await context.fs.write_file("a.md", "swordfish")
    await context.fs.read_file("a.md")
    await context.fs.read_binary_file("a.md")
    await context.fs.list_dir()
    await context.tools["editFile"].call({"path": "a.md", "oldText": "sword", "newText": "cat"})
    path = f"{tmp_path}/a.md"
    assert [(call.method, call.args[0]) for call in told] == [
        ("write_file", path), ("read_file", path), ("read_binary_file", path), ("list_dir", str(tmp_path)),
        ("read_binary_file", path), ("replace", path),
    ]  # fmt: skip
    assert "swordfish" not in str([call.to_dict() for call in told])
    assert told[0].args[1] == "<9 bytes>"
    full: list[BackendCall] = []
    await WorkspaceFs(
        with_filesystem_logging(full.append, include_content=True)(local_filesystem(tmp_path))
    ).write_file("b", "swordfish")
    assert full[0].args == (f"{tmp_path}/b", "swordfish")
    await WorkspaceFs(with_filesystem_logging()(local_filesystem(tmp_path))).read_file("b")
    assert capsys.readouterr().err == f'[crux_workspace.agent] read_file("{tmp_path}/b")\n'


async def test_a_wrapped_backend_has_the_optional_methods_of_the_inner_one(tmp_path: Path) -> None:
    plain = with_filesystem_logging(lambda _: None)(Plain(str(tmp_path)))
    assert not hasattr(plain, "read_binary_file")
    assert hasattr(
        with_filesystem_logging(lambda _: None)(local_filesystem(tmp_path)), "read_binary_file"
    )
    with pytest.raises(UnsupportedError):
        await WorkspaceFs(plain).read_binary_file("a")


async def test_a_middleware_sees_calls_of_pinned_files_too(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    backend = local_filesystem(tmp_path)

    class Shouting:
        root = backend.root

        def __getattr__(self, name: str) -> Any:
            return getattr(backend, name)

        async def read_file(self, *args: Any, **options: Any) -> str:
            return (await backend.read_file(*args, **options)).upper()

    assert await WorkspaceFs(Shouting()).read_file("a") == "X"


# -- listDir and readFile


async def test_list_dir_gives_names_without_their_folder(agent: Agent) -> None:
    for name in ("corpus/intro.md", "corpus/api.md", "top.md"):
        await agent.output("writeFile", path=name, content="x")
    assert await agent.output("listDir", path="corpus") == ["api.md", "intro.md"]
    for arguments in ({}, {"path": "."}, {"path": ""}, {"path": None}):
        assert await agent.output("listDir", **arguments) == ["corpus", "top.md"]
    error = await agent.refused("listDir", path="missing")
    assert error.code == ErrorCode.FILE_NOT_FOUND


async def test_read_file_returns_the_file_exactly_or_an_error_and_no_part_of_it(
    agent: Agent,
) -> None:
    text = "one\r\ntwo\n\nfour without end"
    await agent.output("writeFile", path="a.md", content=text)
    assert await agent.output("readFile", path="a.md") == text
    await agent.output("writeFile", path="big", content="x" * 262_145)
    error = await agent.refused("readFile", path="big")
    assert error.code == ErrorCode.FILE_TOO_LARGE
    assert "xxx" not in str(error)


async def test_a_ranged_read_starts_with_a_header_and_gives_those_lines(agent: Agent) -> None:
    await agent.output(
        "writeFile", path="src/server.ts", content="".join(f"line {n}\n" for n in range(1, 3645))
    )
    output = await agent.output("readFile", path="src/server.ts", startLine=1200, endLine=1202)
    assert output == "[src/server.ts lines 1200-1202 of 3644]\nline 1200\nline 1201\nline 1202"
    assert (
        await agent.output("readFile", path="src/server.ts", startLine=3644, endLine=9999)
    ).endswith("of 3644]\nline 3644")
    assert (
        await agent.output("readFile", path="src/server.ts", endLine=1)
    ) == "[src/server.ts lines 1-1 of 3644]\nline 1"
    assert (
        await agent.output("readFile", path="src/server.ts", startLine=None, endLine=None)
    ).startswith("line 1\n")
    for start, end, words in (
        (5, 4, "greater than endLine"),
        (3645, None, "past the end of src/server.ts (3644 lines)"),
    ):
        assert (
            words
            in (
                await agent.refused("readFile", path="src/server.ts", startLine=start, endLine=end)
            ).message
        )
    for bad in (0, -1, 1.5, "x"):
        assert (
            await agent.refused("readFile", path="src/server.ts", startLine=bad)
        ).code == ErrorCode.INVALID_ARGUMENT
    await agent.output("writeFile", path="empty", content="")
    assert "past the end" in (await agent.refused("readFile", path="empty", startLine=1)).message


async def test_a_range_of_a_larger_file_is_fine_and_the_cap_bounds_what_is_returned(
    agent: Agent,
) -> None:
    await agent.output(
        "writeFile", path="big", content="".join(f"{n:07d}\n" for n in range(1, 100_001))
    )
    assert (
        await agent.output("readFile", path="big", startLine=99_999)
        == "[big lines 99999-100000 of 100000]\n0099999\n0100000"
    )
    assert (
        await agent.refused("readFile", path="big", startLine=1)
    ).code == ErrorCode.FILE_TOO_LARGE


async def test_offloaded_results_are_read_whole(agent: Agent) -> None:
    await agent.output("writeFile", path="tool-outputs/x.txt", content="x" * 300_000)
    assert len(await agent.output("readFile", path="tool-outputs/x.txt")) == 300_000
    assert len(await agent.output("readFile", path="sub/../tool-outputs/x.txt")) == 300_000
    await agent.output("writeFile", path="tool-outputs-evil/x.txt", content="x" * 300_000)
    assert (
        await agent.refused("readFile", path="tool-outputs-evil/x.txt")
    ).code == ErrorCode.FILE_TOO_LARGE


async def test_a_link_is_no_way_into_the_exemption(local: Agent) -> None:
    assert local.folder is not None
    (local.folder / "big").write_text("x" * 300_000)
    (local.folder / "tool-outputs").symlink_to(".")
    assert (
        await local.refused("readFile", path="tool-outputs/big")
    ).code == ErrorCode.FILE_TOO_LARGE


# -- writeFile and editFile


async def test_write_file_makes_folders_replaces_and_tells_bytes(agent: Agent) -> None:
    assert (
        await agent.output("writeFile", path="reports/q1.md", content="é\n")
        == "wrote 3 bytes to reports/q1.md"
    )
    assert (
        await agent.output("writeFile", path="reports/q1.md", content="")
        == "wrote 0 bytes to reports/q1.md"
    )
    assert await agent.output("readFile", path="reports/q1.md") == ""


async def test_edit_file_replaces_one_exact_occurrence(agent: Agent) -> None:
    await agent.output("writeFile", path="c.ts", content="a: 1,\nretries: 3,\nb: 2,\n")
    told = await agent.output("editFile", path="c.ts", oldText="retries: 3,", newText="retries: 5,")
    assert told == "replaced 1 occurrence in c.ts at line 2"
    assert await agent.output("readFile", path="c.ts") == "a: 1,\nretries: 5,\nb: 2,\n"


async def test_edit_file_counts_overlapping_matches_and_replaces_all_without_overlap(
    agent: Agent,
) -> None:
    await agent.output("writeFile", path="a", content="aaa\n")
    error = await agent.refused("editFile", path="a", oldText="aa", newText="b")
    assert (
        error.message
        == "oldText occurs 2 times in a; include more surrounding text or set replaceAll"
    )
    assert (
        await agent.output("editFile", path="a", oldText="aa", newText="b", replaceAll=True)
        == "replaced 1 occurrence in a at line 1"
    )
    assert await agent.output("readFile", path="a") == "ba\n"
    await agent.output("writeFile", path="b", content="x\nx x\n" + "x\n" * 30)
    told = await agent.output("editFile", path="b", oldText="x", newText="$&", replaceAll=True)
    assert (
        told
        == f"replaced 33 occurrences in b at lines 1, 2, 2, {', '.join(str(n) for n in range(3, 20))}, and 13 more"
    )
    assert (await agent.output("readFile", path="b")).startswith("$&\n$& $&\n")


async def test_an_edit_without_change_writes_nothing_and_errors_come_first(agent: Agent) -> None:
    await agent.output("writeFile", path="a", content="one two one\n")
    told = await agent.output("editFile", path="a", oldText="two", newText="two")
    assert told == "no change: newText is identical to oldText in a; the file was not written"
    if agent.ws is not None:
        stat = await agent.ws.stat("/workspace/a")
        assert stat is not None
        assert stat.version == 1
    assert (
        "not found" in (await agent.refused("editFile", path="a", oldText="x", newText="x")).message
    )
    assert (
        "occurs 2 times"
        in (await agent.refused("editFile", path="a", oldText="one", newText="one")).message
    )


async def test_a_missing_text_says_so_and_tells_of_line_endings(agent: Agent) -> None:
    await agent.output("writeFile", path="a", content="one\r\ntwo\r\n")
    assert (
        await agent.refused("editFile", path="a", oldText="three", newText="x")
    ).message == "oldText not found in a"
    assert (
        "CRLF"
        in (await agent.refused("editFile", path="a", oldText="one\ntwo", newText="x")).message
    )
    assert (
        await agent.refused("editFile", path="missing", oldText="a", newText="b")
    ).code == ErrorCode.FILE_NOT_FOUND
    assert (
        await agent.refused("editFile", path="a", oldText="", newText="b")
    ).code == ErrorCode.INVALID_ARGUMENT


async def test_what_is_not_utf_8_is_refused_and_left_alone_and_a_mark_is_kept(local: Agent) -> None:
    assert local.folder is not None
    (local.folder / "a").write_bytes(b"caf\xe9 x")
    error = await local.refused("editFile", path="a", oldText="x", newText="y")
    assert "editFile: a is not valid UTF-8" in error.message
    assert (local.folder / "a").read_bytes() == b"caf\xe9 x"
    assert await local.output("readFile", path="a") == "caf� x"
    (local.folder / "b").write_bytes(b"\xef\xbb\xbfone\r\n")
    await local.output("editFile", path="b", oldText="one", newText="two")
    assert (local.folder / "b").read_bytes() == b"\xef\xbb\xbftwo\r\n"


async def test_the_cap_holds_for_edits_of_local_files_and_not_over_a_workspace(
    agent: Agent,
) -> None:
    await agent.output("writeFile", path="big", content="x" * 300_000 + "needle")
    if agent.ws is None:
        assert (
            await agent.refused("editFile", path="big", oldText="needle", newText="n")
        ).code == ErrorCode.FILE_TOO_LARGE
    else:
        assert "replaced 1" in await agent.output(
            "editFile", path="big", oldText="needle", newText="n"
        )


async def test_an_edit_loses_no_other_writers_change(agent: Agent) -> None:
    await agent.output("writeFile", path="a", content="one\n")
    fs = agent.context.fs
    backend = agent.context.filesystem

    def meddle(data: bytes) -> bytes:
        if agent.folder is not None:
            (agent.folder / "a").write_text("somebody else\n")
        return data + b"mine\n"

    if agent.ws is not None:
        original = backend.read_for_edit  # type: ignore[attr-defined]

        async def read_then_meddle(path: str, ctx: Any) -> bytes:
            found: bytes = await original(path, ctx)
            assert agent.ws is not None
            await agent.ws.write("/workspace/a", "somebody else\n")
            return found

        backend.read_for_edit = read_then_meddle  # type: ignore[attr-defined]
    with pytest.raises(ConflictError):
        await fs.edit_as("a", meddle)
    assert await fs.read_file("a") == "somebody else\n"


async def test_an_edit_keeps_attributes_that_others_set_meanwhile(
    versioned: Agent, ws: Workspace
) -> None:
    await ws.write("/workspace/a", "one\n", metadata={"by": "me"})
    backend = versioned.context.filesystem
    original = backend.read_for_edit  # type: ignore[attr-defined]

    async def read_then_set(path: str, ctx: Any) -> bytes:
        found: bytes = await original(path, ctx)
        await ws.set("/workspace/a", metadata={"by": "them"})
        return found

    backend.read_for_edit = read_then_set  # type: ignore[attr-defined]
    await versioned.output("editFile", path="a", oldText="one", newText="two")
    file = await ws.stat("/workspace/a")
    assert file is not None
    assert (await ws.read_text("/workspace/a"), file.metadata) == ("two\n", {"by": "them"})


async def test_parallel_edits_all_land_or_are_refused(agent: Agent) -> None:
    await agent.output("writeFile", path="a", content="".join(f"<{n}>\n" for n in range(12)))
    results = await asyncio.gather(
        *(agent.call("editFile", path="a", oldText=f"<{n}>", newText=f"[{n}]") for n in range(12))
    )
    text = await agent.output("readFile", path="a")
    for number, result in enumerate(results):
        assert result.ok or result.error.code == ErrorCode.VERSION_CONFLICT, result.error  # type: ignore[union-attr]
        assert (f"[{number}]" in text) is result.ok


async def test_an_edit_to_what_is_no_text_is_refused_and_leaves_the_file(agent: Agent) -> None:
    await agent.output("writeFile", path="a", content="one\n")
    error = await agent.refused("editFile", path="a", oldText="one", newText="\ud800")
    assert error.code == ErrorCode.INVALID_CONTENT
    assert await agent.output("readFile", path="a") == "one\n"


async def test_json_of_a_workspace_stays_json(versioned: Agent) -> None:
    assert versioned.ws is not None
    await versioned.ws.write("/workspace/a.json", {"retries": 3})
    assert "replaced 1" in await versioned.output(
        "editFile", path="a.json", oldText="3", newText="5"
    )
    assert await versioned.ws.read_json("/workspace/a.json") == {"retries": 5}
    error = await versioned.refused("editFile", path="a.json", oldText="5", newText="")
    assert error.code == ErrorCode.INVALID_CONTENT


async def test_an_edit_outside_is_gated_as_a_read_and_as_a_write(
    local: Agent, tmp_path: Path, gate: PermissionGate
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("one")
    result = await local.call("editFile", "c1", path=str(outside), oldText="one", newText="two")
    assert result.interrupt.detail["operation"] == "editFile"
    assert len(await gate.pending("t")) == 1
    await gate.resume("t", [Answer(result.interrupt.interrupt_id, "once")])
    assert (await local.call("editFile", "c1", path=str(outside), oldText="one", newText="two")).ok
    assert outside.read_text() == "two"
    reads = PermissionGate(
        PermissionPolicy(allow={"readFile": [str(tmp_path)]}), mode="non-interactive"
    )
    context = agent_context(local.context.filesystem, gate=reads)
    assert not (
        await context.tools["editFile"].call(
            {"path": str(outside), "oldText": "two", "newText": "x"}
        )
    ).ok


async def test_denying_write_file_withholds_edit_file(tmp_path: Path) -> None:
    fs = local_filesystem(tmp_path)
    assert agent_tools(fs, deny=["writeFile"]).names == ["listDir", "readFile", "runBash"]
    assert agent_tools(fs, deny=["editFile"]).names == [
        "listDir",
        "readFile",
        "writeFile",
        "runBash",
    ]
    assert agent_tools(fs, allow=["editFile", "readFile"], deny=["writeFile"]).names == [
        "readFile",
        "editFile",
    ]
    assert agent_tools(fs, allow=["writeFile"]).names == ["writeFile"]
    gate = PermissionGate(PermissionPolicy(deny={"tool": ["writeFile"]}), mode="interactive")
    assert agent_tools(fs, gate=gate).names == ["listDir", "readFile", "runBash"]
    for bad in (["task"], ["nothing"]):
        for options in ({"allow": bad}, {"deny": bad}):
            with pytest.raises(InvalidInputError) as caught:
                agent_tools(fs, **options)  # type: ignore[arg-type]
            assert caught.value.code == ErrorCode.POLICY_INVALID


# -- the gate before all of it


async def test_the_same_gate_is_before_tools_and_code(local: Agent, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")
    result = await local.call("readFile", path=str(outside))
    assert (result.ok, result.error.code) == (False, ErrorCode.APPROVAL_REQUIRED)  # type: ignore[union-attr]
    assert "secret" not in str(result.output)
    with pytest.raises(ApprovalRequiredError) as caught:
        await local.context.fs.read_file(str(outside))
    assert caught.value.interrupt is not None


async def test_a_link_that_leads_out_is_treated_like_any_outside_path(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.md").write_text("outside")
    (tmp_path / "ws" / "link").symlink_to(tmp_path / "out")
    fs = local_filesystem(tmp_path / "ws")
    asking = agent_context(fs, gate=PermissionGate(mode="interactive"), thread_id="t")
    with pytest.raises(ApprovalRequiredError) as waiting:
        await asking.fs.read_file("link/a.md")
    assert waiting.value.interrupt.detail["path"] == f"{tmp_path}/out/a.md"
    assert asking.gate is not None
    await asking.gate.resume("t", [Answer(waiting.value.interrupt.interrupt_id, "once")])
    assert await asking.fs.read_file("link/a.md") == "outside"
    closed = agent_context(fs, gate=PermissionGate(mode="non-interactive"))
    for call in (closed.fs.read_file("link/a.md"), closed.fs.list_dir("link"), closed.fs.write_file("link/b", "x")):  # fmt: skip
        with pytest.raises(PermissionDeniedError):
            await call
    rule = PermissionPolicy(allow={"readFile": [f"{tmp_path}/out"]})
    allowed = agent_context(fs, gate=PermissionGate(rule, mode="non-interactive"))
    assert await allowed.fs.read_file("link/a.md") == "outside"


async def test_a_route_without_run_bash_never_runs_a_command(local: Agent) -> None:
    tools = agent_tools(local.context.filesystem, gate=local.context.gate, deny=["runBash"])
    assert "runBash" not in tools
    assert (await tools.call("runBash", {"command": "echo x"})).error is not None


async def test_a_run_that_cannot_pause_fails_closed_and_says_what_to_allow(tmp_path: Path) -> None:
    gate = PermissionGate(PermissionPolicy(), mode="interactive")
    context = agent_context(local_filesystem(tmp_path), gate=gate, interruptible=False)
    with pytest.raises(
        PermissionDeniedError, match=r"/etc/hosts is outside the workspace.*readFile"
    ):
        await context.fs.read_file("/etc/hosts")
    result = await context.tools["runBash"].call({"command": "make"})
    assert result.error is not None
    assert result.error.code == ErrorCode.PERMISSION_DENIED
    assert "bash" in result.error.message


async def test_allow_rules_match_real_paths_so_a_rule_by_an_alias_fails_closed(
    tmp_path: Path,
) -> None:
    real, alias = tmp_path / "real", tmp_path / "alias"
    (real / "ws").mkdir(parents=True)
    (real / "notes.txt").write_text("x")
    alias.symlink_to(real)
    for rule, allowed in ((real, True), (alias, False)):
        gate = PermissionGate(
            PermissionPolicy(allow={"readFile": [str(rule)]}), mode="non-interactive"
        )
        fs = WorkspaceFs(local_filesystem(alias / "ws"), gate=gate)
        if allowed:
            assert await fs.read_file("../notes.txt") == "x"
            assert await fs.read_file(f"{alias}/notes.txt") == "x"
        else:
            with pytest.raises(PermissionDeniedError):
                await fs.read_file(f"{alias}/notes.txt")


async def test_a_backend_of_ones_own_is_judged_by_its_real_path(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "out").symlink_to(tmp_path)
    fs = WorkspaceFs(Plain(str(tmp_path / "ws")))
    await fs.write_file("a.txt", "x")
    for path in ("out/a.txt", "../a.txt", "/etc/passwd"):
        with pytest.raises(PermissionDeniedError):
            await fs.write_file(path, "x")


async def test_a_backend_of_ones_own_gets_plain_absolute_paths_and_has_to_give_some() -> None:
    seen: list[str] = []

    class Flat:
        """Knows no links: a path is its own real path, and names an entry of a table."""

        root = "/data/ws"
        files: ClassVar[dict[str, str]] = {"/data/ws/a/b.md": "inside", "/data/secret": "outside"}
        answer: ClassVar[Any] = None

        async def read_file(
            self, path: str, ctx: FsContext, *, max_bytes: int | None = None
        ) -> str:
            seen.append(path)
            return self.files[path]

        async def write_file(self, path: str, content: str, ctx: FsContext) -> int:
            self.files[path] = content
            return len(content)

        async def list_dir(self, path: str, ctx: FsContext) -> list[str]:
            seen.append(path)
            return []

        async def real_path(self, path: str, ctx: FsContext) -> str:
            seen.append(path)
            answer: str = path if self.answer is None else self.answer
            return answer

    fs = WorkspaceFs(Flat())
    for path in (
        "a/b.md",
        "./a//b.md",
        "a/./x/../b.md",
        "/data//ws/a/b.md",
        "/data/ws/../ws/a/b.md",
    ):
        assert await fs.read_file(path) == "inside"
    await fs.list_dir("a/")
    for path in ("../secret", "a/../../secret", "/data/ws/../secret", "/data/ws/./../secret/"):
        with pytest.raises(PermissionDeniedError):
            await fs.read_file(path)
    assert set(seen) == {"/data/ws/a/b.md", "/data/ws", "/data/ws/a", "/data/secret"}
    for bad in ("", "relative", "a\x00", 7):
        Flat.answer = bad
        with pytest.raises(InvalidPathError):
            await fs.read_file("a/b.md")


async def test_without_a_gate_inside_runs_and_everything_else_is_denied(tmp_path: Path) -> None:
    context = agent_context(local_filesystem(tmp_path))
    await context.fs.write_file("a", "x")
    for call in (context.fs.read_file("/etc/hosts"), context.fs.list_dir("..")):
        with pytest.raises(PermissionDeniedError):
            await call
    result = await context.tools["runBash"].call({"command": "ls"})
    assert result.error is not None
    assert result.error.code == ErrorCode.PERMISSION_DENIED


async def test_approving_a_tool_asks_for_it_inside_too_bound_to_the_version(
    local: Agent, gate: PermissionGate
) -> None:
    strict = PermissionGate(PermissionPolicy(approve=["writeFile"]), mode="interactive")
    context = agent_context(local.context.filesystem, gate=strict, thread_id="t")
    arguments = {"path": "a.md", "content": "new"}
    await local.output("writeFile", path="a.md", content="old")
    waiting = await context.tools["writeFile"].call(arguments, call_id="c")
    assert waiting.interrupt.kind == "tool"
    await strict.resume("t", [Answer(waiting.interrupt.interrupt_id, "once")])
    await local.output("writeFile", path="a.md", content="changed meanwhile")
    again = await context.tools["writeFile"].call(arguments, call_id="c")
    assert again.interrupt is not None
    await strict.resume("t", [Answer(again.interrupt.interrupt_id, "once")])
    assert (await context.tools["writeFile"].call(arguments, call_id="c")).ok


# -- ctx.fs


async def test_fs_takes_relative_and_absolute_paths_and_lists_the_root(agent: Agent) -> None:
    fs = agent.context.fs
    assert await fs.write_file("images/logo.txt", "é") == 2
    assert await fs.read_binary_file("images/logo.txt") == b"\xc3\xa9"
    assert await fs.read_file(f"{fs.root}/images/logo.txt") == "é"
    assert await fs.list_dir() == ["images"]
    assert (await fs.stat("images/logo.txt")).size == 2
    assert (await fs.stat("images")).kind == "directory"
    assert await fs.read_file("images/logo.txt", start_line=1, end_line=1) == "é"


async def test_a_missing_ability_is_told_before_anybody_is_asked(tmp_path: Path) -> None:
    gate = PermissionGate(PermissionPolicy(), mode="interactive")
    fs = WorkspaceFs(Plain(str(tmp_path)), gate=gate)
    for call in (fs.read_binary_file("/etc/hosts"), fs.stat("/etc/hosts")):
        with pytest.raises(UnsupportedError) as caught:
            await call
        assert caught.value.hint is not None
    assert await gate.pending() == []


@pytest.mark.parametrize("root", ["app/workspace", ".", "", "./workspace", "C:\\app\\workspace"])
def test_the_root_must_be_absolute(root: str) -> None:
    with pytest.raises(InvalidPathError):
        local_filesystem(root)
    with pytest.raises(InvalidPathError):
        WorkspaceFs(_Rooted(root))  # type: ignore[arg-type]


class _Rooted:
    def __init__(self, root: str) -> None:
        self.root = root


async def test_memory_is_the_file_of_the_workspace_bounded_or_none(agent: Agent) -> None:
    assert await agent.context.memory() is None
    await agent.output("writeFile", path="AGENTS.md", content="Be brief.")
    assert await agent.context.memory() == "Be brief."
    await agent.output("writeFile", path="AGENTS.md", content="x" * 30_000)
    for most in (0, 1, 20, 100, 20_000):
        memory = await agent.context.memory(max_chars=most)
        assert memory is not None
        assert len(memory) == most, "the note counts"
        assert memory.endswith("[cut: the memory is too long to be shown whole]") or most < 100
        assert memory.startswith("x" * (most - 48))
    await agent.output("writeFile", path="AGENTS.md", content="x" * (5 << 20))
    assert (await agent.context.memory(max_chars=4)) == "[cut"
    for bad in (-1, 1.5, True, None):
        with pytest.raises(InvalidInputError):
            await agent.context.memory(max_chars=bad)  # type: ignore[arg-type]
    denying = PermissionGate(
        PermissionPolicy(deny={"readFile": [f"{agent.context.fs.root}/AGENTS.md"]}),
        mode="interactive",
    )
    assert await agent_context(agent.context.filesystem, gate=denying).memory() is None


async def test_descriptions_tell_the_model_what_it_must_know(agent: Agent) -> None:
    tools = agent.context.tools
    for name, ideas in {
        "readFile": ["startLine", "lines a-b of N", "editFile", "256 KiB"], "writeFile": ["editFile"],
        "editFile": ["oldText", "exactly", "overlapping", "replaceAll", "left to right", "256 KiB", "UTF-8"],
    }.items():  # fmt: skip
        for idea in ideas:
            assert idea in tools[name].description
    for tool in tools:
        assert tool.parameters["type"] == "object"
        assert tool.parameters["additionalProperties"] is False
        assert set(tool.labels) == {"icon", "running", "done"}


async def test_wrong_arguments_are_results_that_name_them(agent: Agent) -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("readFile", {}), ("readFile", {"path": ""}), ("readFile", {"path": 1}), ("writeFile", {"path": "a"}),
        ("writeFile", {"path": "a", "content": 1}),
        ("editFile", {"path": "a", "oldText": "", "newText": ""}), ("runBash", {}), ("runBash", {"command": ""}),
        ("readFile", {"path": "a", "more": 1}),
        ("listDir", {"path": 1}), ("writeFile", {"path": "a", "content": "\ud800"}), ("readFile", {"path": "a\x00"}),
    ]  # fmt: skip
    for tool, arguments in wrong:
        error = await agent.refused(tool, **arguments)
        assert error.code in (
            ErrorCode.INVALID_ARGUMENT,
            ErrorCode.INVALID_PATH,
            ErrorCode.INVALID_CONTENT,
        ), (tool, arguments)
    assert (
        await agent.context.tools["readFile"].call({"path": "a", "startLine": "1"})
    ).error.code == ErrorCode.FILE_NOT_FOUND  # type: ignore[union-attr]


async def test_a_failure_inside_a_tool_is_a_result_without_details(tmp_path: Path) -> None:
    class Broken(Plain):
        async def read_file(self, *_: Any, **__: Any) -> str:
            raise RuntimeError("secret detail")

    result = await agent_tools(Broken(str(tmp_path)))["readFile"].call({"path": "a"})
    assert result.error is not None
    assert result.error.code == ErrorCode.INTERNAL
    assert "secret" not in str(result.to_dict())


async def test_over_a_workspace_every_change_is_a_version_and_errors_are_typed() -> None:
    async with workspace(id="w", namespace="n") as ws:
        context = agent_context(workspace_filesystem(ws))
        await context.tools["writeFile"].call({"path": "a", "content": "one"})
        await context.tools["editFile"].call({"path": "a", "oldText": "one", "newText": "two"})
        assert [entry.version for entry in await ws.history("/workspace/a")] == [2, 1]
        with pytest.raises(PathNotFoundError):
            await context.fs.list_dir("missing")
        assert await context.fs.list_dir() == ["a"]
        with pytest.raises(WorkspaceError):
            await context.fs.write_file("a/b", "x")
