"""runBash: in a folder, in a checkout of a workspace, in the sandbox, under limits."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from crux_workspace import Mount, Workspace, WorkspaceFile, workspace
from crux_workspace.agent import (
    Answer,
    FsContext,
    PermissionGate,
    PermissionPolicy,
    ThreadPolicy,
    agent_context,
    local_filesystem,
    local_shell,
    with_shell_logging,
    workspace_filesystem,
)
from crux_workspace.agent.shells import sandbox
from crux_workspace.agent.shells.local import LocalShell
from crux_workspace.agent.shells.workspace import WorkspaceShell
from crux_workspace.errors import ConflictError, ErrorCode, InvalidInputError, UnsupportedError
from tests.agent.tools.conftest import Agent


def test_a_sandbox_is_here_so_that_it_is_tested() -> None:
    assert sandbox.bubblewrap() is not None


async def test_a_command_needs_a_rule_or_a_person(agent: Agent, gate: PermissionGate) -> None:
    assert (await agent.output("runBash", command="echo hi"))["stdout"] == "hi\n"
    waiting = await agent.call("runBash", "c1", command="make all")
    assert waiting.interrupt.to_dict()["detail"]["command"] == "make all"
    await gate.resume("t", [Answer(waiting.interrupt.interrupt_id, "once")])
    ran = await agent.call("runBash", "c1", command="make all")
    assert ran.ok
    assert ran.output["exitCode"] == 127 or ran.output["exitCode"] == 2


async def test_a_result_has_output_exit_code_and_all_else_that_happened(agent: Agent) -> None:
    output = await agent.output("runBash", command="echo out; echo err >&2; exit 7")
    assert set(output) == {"stdout", "stderr", "exitCode", "truncated", "timedOut", "commit"}
    assert (output["stdout"], output["stderr"], output["exitCode"]) == ("out\n", "err\n", 7)
    assert (output["truncated"], output["timedOut"]) == (False, False)


async def test_over_a_folder_it_runs_in_the_folder(local: Agent) -> None:
    assert local.folder is not None
    output = await local.output("runBash", command="pwd; echo x > sub.txt")
    assert output["stdout"] == f"{local.folder}\n"
    assert (local.folder / "sub.txt").read_text() == "x\n"


# -- a workspace: check out, run, commit


async def test_what_a_command_changes_is_one_commit_that_can_be_undone(
    versioned: Agent, ws: Workspace
) -> None:
    await ws.write("/workspace/keep.md", "keep\n", metadata={"a": 1})
    await ws.write("/workspace/change.md", "old\n", metadata={"a": 1}, mime_type="text/x-own")
    await ws.write("/workspace/gone.md", "gone\n")
    await ws.write("/workspace/move.md", "moved\n", metadata={"b": 2})
    await ws.write("/workspace/data.json", {"n": 1})
    await ws.write("/workspace/blob", b"\x00\x01")
    before = {f.path: await ws.read_bytes(f.path) async for f in ws.walk("/workspace")}
    command = (
        r"echo new > change.md; rm gone.md; mkdir sub; mv move.md sub/moved.md; printf '\0\2' > blob; "
        r"""echo '{"n": 2}' > data.json; printf '\377' > new.bin; echo é > new.txt"""
    )
    output = await versioned.output("runBash", command=command)
    entry = (await ws.log(limit=1))[0]
    assert output["commit"] == entry.commit
    assert entry.verb == "runBash"
    assert entry.actor is not None
    assert entry.actor.startswith("runBash: echo new > change.md")
    assert {(c.type, c.path, c.from_path) for c in entry.changes} == {
        ("update", "/workspace/change.md", None), ("delete", "/workspace/gone.md", None),
        ("rename", "/workspace/sub/moved.md", "/workspace/move.md"), ("update", "/workspace/blob", None),
        ("update", "/workspace/data.json", None), ("create", "/workspace/new.bin", None), ("create", "/workspace/new.txt", None),
    }  # fmt: skip
    assert await ws.read_json("/workspace/data.json") == {"n": 2}
    kinds = {f.path: (f.content_kind, f.metadata) async for f in ws.walk("/workspace")}
    assert kinds["/workspace/change.md"] == ("text", {"a": 1})
    assert kinds["/workspace/new.bin"][0] == "binary"
    assert kinds["/workspace/new.txt"][0] == "text"
    assert kinds["/workspace/sub/moved.md"] == ("text", {"b": 2})
    assert len(await ws.history("/workspace/sub/moved.md")) == 1
    await ws.undo_commit(output["commit"])
    assert {f.path: await ws.read_bytes(f.path) async for f in ws.walk("/workspace")} == before


async def test_a_command_that_changes_nothing_commits_nothing(
    versioned: Agent, ws: Workspace
) -> None:
    await ws.write("/workspace/a.md", "a\n")
    for command in (
        "cat a.md",
        "touch a.md",
        "cp a.md b.md; rm b.md",
        "mv a.md b.md; mv b.md a.md",
        "echo a > a.md",
    ):
        assert (await versioned.output("runBash", command=command))["commit"] is None
    assert len(await ws.log()) == 1


async def test_any_exit_code_commits_and_a_timeout_discards(ws: Workspace) -> None:
    gate = PermissionGate(
        PermissionPolicy(allow={"bash": ["echo", "exit", "sleep"]}), mode="interactive"
    )
    shell = local_shell(timeout_ms=700)
    tools = agent_context(workspace_filesystem(ws), gate=gate, shell=shell).tools
    failed = await tools["runBash"].call({"command": "echo x > a; exit 3"})
    assert (failed.output["exitCode"], await ws.read_text("/workspace/a")) == (3, "x\n")
    late = await tools["runBash"].call({"command": "echo y > b; sleep 30"})
    assert (late.output["timedOut"], late.output["exitCode"], late.output["commit"]) == (
        True,
        124,
        None,
    )
    assert not await ws.exists("/workspace/b")


async def test_a_local_shell_given_for_a_workspace_runs_in_a_checkout(
    ws: Workspace, tmp_path: Path
) -> None:
    gate = PermissionGate(PermissionPolicy(allow={"bash": ["echo", "pwd"]}), mode="interactive")
    host = tmp_path / "workspace"
    host.mkdir()
    other = workspace(id="w", namespace="other", mounts=[Mount(str(host))])
    context = agent_context(
        workspace_filesystem(other, str(host)), gate=gate, shell=local_shell(timeout_ms=5_000)
    )
    ran = await context.tools["runBash"].call({"command": "echo x > made"})
    assert ran.ok, ran.error
    assert ran.output["commit"] is not None
    assert await other.read_text(f"{host}/made") == "x\n"
    assert list(host.iterdir()) == []
    await other.aclose()


async def test_links_and_specials_are_refused_and_told(versioned: Agent, ws: Workspace) -> None:
    await ws.write("/workspace/real.md", "x")
    output = await versioned.output(
        "runBash",
        command="ln -s /etc/passwd link; mkfifo fifo; ln real.md hard.md; rm real.md; ln -s . real.md; echo y > ok.md",
    )
    assert sorted(output["refused"]) == ["fifo", "link", "real.md"]
    assert "links or special files" in output["stderr"]
    assert await ws.read_text("/workspace/ok.md") == "y\n"
    assert await ws.read_text("/workspace/hard.md") == "x"
    assert not await ws.exists("/workspace/real.md")
    assert not await ws.exists("/workspace/link")


async def test_a_hard_link_to_a_file_outside_is_refused(ws: Workspace, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    shell = WorkspaceShell(ws, local_shell(sandbox="off"))
    ran = await shell.run_command(f"ln {tmp_path}/secret stolen", FsContext("/workspace"))
    if ran.exit_code == 0:
        assert ran.refused == ("stolen",)
    assert not await ws.exists("/workspace/stolen")


def shell_of(ws: Workspace, meanwhile: Callable[[], Awaitable[object]]) -> WorkspaceShell:
    """Make a shell whose commands are run when its files are checked out and something else has happened to the workspace."""

    class Late(LocalShell):
        async def run_in(self, *given: Any, **options: Any) -> Any:
            await meanwhile()
            return await super().run_in(*given, **options)

    real = local_shell()
    return WorkspaceShell(ws, Late(real.limits, real.sandbox, real.env))


async def test_a_conflict_is_reported_and_commits_nothing(ws: Workspace) -> None:
    await ws.write("/workspace/a.md", "one\n")
    await ws.write("/workspace/b.md", "one\n")
    command = "echo mine > a.md; echo mine > c.md"
    late = shell_of(ws, lambda: ws.write("/workspace/a.md", "somebody else\n"))
    with pytest.raises(ConflictError):
        await late.run_command(command, FsContext("/workspace"))
    assert await ws.read_text("/workspace/a.md") == "somebody else\n"
    assert not await ws.exists("/workspace/c.md")
    late = shell_of(ws, lambda: ws.write("/workspace/b.md", "somebody else\n"))
    ran = await late.run_command(command, FsContext("/workspace"))
    assert ran.commit is not None
    assert await ws.read_text("/workspace/a.md") == "mine\n"


@pytest.mark.parametrize(
    ("files", "command", "left"),
    [
        ("a", "mv a t; mkdir a; mv t a/a", {"a/a": "a"}),
        ("a d", "rm d; mkdir d; mv a d/a", {"d/a": "a"}),
        ("a d", "mv d e; mkdir d; mv a d/a", {"d/a": "a", "e": "d"}),
        ("a b", "mkdir t; mv a b t; mkdir a b; mv t/a b/a; mv t/b a/b", {"b/a": "a", "a/b": "b"}),
        ("d/x d/y", "mv d/x t; rm -r d; mv t d", {"d": "d/x"}),
        ("d/x d/y", "mv d/x t; mv d/y u; rm -r d; mv t d", {"d": "d/x", "u": "d/y"}),
        ("a b c", "mv a t; mv b a; mv c b; mv t c", {"a": "b", "b": "c", "c": "a"}),
    ],
)
async def test_files_and_directories_may_change_places(
    ws: Workspace, files: str, command: str, left: dict[str, str]
) -> None:
    seeds = {name: await ws.write(f"/workspace/{name}", name) for name in files.split()}
    shell = WorkspaceShell(ws, local_shell())
    ran = await shell.run_command(command, FsContext("/workspace"))
    assert (ran.exit_code, ran.stderr) == (0, "")
    now = {file.path: await ws.read_text(file.path) async for file in ws.walk()}
    assert now == {f"/workspace/{name}": text for name, text in left.items()}
    ids = {seed.id for seed in seeds.values()}
    assert {file.id async for file in ws.walk()} <= ids
    assert ran.commit is not None
    await ws.undo_commit(ran.commit)
    assert {file.path async for file in ws.walk()} == {f"/workspace/{name}" for name in seeds}


@pytest.mark.parametrize("command", ["echo mine > a.md", "mv a.md b.md; echo mine > b.md"])
async def test_attributes_that_others_set_meanwhile_stay(ws: Workspace, command: str) -> None:
    await ws.write("/workspace/a.md", "one\n", metadata={"by": "me"})
    late = shell_of(
        ws,
        lambda: ws.set("/workspace/a.md", metadata={"by": "them"}, mime_type="text/x-other"),
    )
    await late.run_command(command, FsContext("/workspace"))
    [file] = [file async for file in ws.walk("/workspace")]
    assert isinstance(file, WorkspaceFile)
    assert await ws.read_text(file.path) == "mine\n"
    assert (file.metadata, file.mime_type) == ({"by": "them"}, "text/x-other")


@pytest.mark.parametrize("text", ["nope", "NaN", "1e999", '"\\ud800"', "{", ""])
async def test_a_json_file_that_is_json_no_more_becomes_text(ws: Workspace, text: str) -> None:
    await ws.write("/workspace/a.json", {"n": 1})
    shell = WorkspaceShell(ws, local_shell())
    ran = await shell.run_command(
        f"printf %s {shlex.quote(text)} > a.json", FsContext("/workspace")
    )
    assert ran.commit is not None
    file = await ws.stat("/workspace/a.json")
    assert file is not None
    assert file.content_kind == "text"
    assert await ws.read_text("/workspace/a.json") == text


async def test_a_cancelled_command_leaves_nothing_behind(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    shell = WorkspaceShell(ws, local_shell())
    task = asyncio.ensure_future(shell.run_command("echo x > a; sleep 30", FsContext("/workspace")))
    await asyncio.sleep(0.6)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list(tmp_path.iterdir()) == []
    assert not await ws.exists("/workspace/a")


async def test_a_mount_elsewhere_and_a_folder_in_it_are_checked_out_alone(
    ws: Workspace, gate: PermissionGate
) -> None:
    await ws.write("/workspace/project/a.md", "a")
    await ws.write("/workspace/other.md", "o")
    tools = agent_context(workspace_filesystem(ws, "/workspace/project"), gate=gate).tools
    output = (await tools["runBash"].call({"command": "pwd; ls; echo b > b.md"})).output
    assert output["stdout"] == "/workspace/project\na.md\n"
    assert await ws.exists("/workspace/project/b.md")


# -- what the file tools may not do, no command does


DENIED_CHANGES = {
    "a new file": "echo x > keep.md; sh -c 'echo x > frozen/new.md'",
    "a change": "echo x > keep.md; sh -c 'echo x > frozen/a.md'",
    "a deletion": "echo x > keep.md; rm frozen/a.md",
    "a rename out of it": "echo x > keep.md; mv frozen/a.md out.md",
    "a rename into it": "mv keep.md frozen/keep.md",
    "a rename of its folder": "mv frozen thawed",
    "a copy into it": "cp keep.md frozen/keep.md; echo x > keep.md",
}


@pytest.mark.parametrize("command", DENIED_CHANGES.values(), ids=DENIED_CHANGES)
async def test_a_command_that_changes_a_denied_path_commits_nothing(
    command: str, ws: Workspace
) -> None:
    for path in ("keep.md", "frozen/a.md"):
        await ws.write(f"/workspace/{path}", f"{path}\n")
    before = {f.path: await ws.read_bytes(f.path) async for f in ws.walk("/workspace")}
    policy = PermissionPolicy(
        allow={"bash": ["echo", "cp", "mv", "rm", "sh"]}, deny={"writeFile": ["/workspace/frozen"]}
    )
    gate = PermissionGate(policy, mode="interactive")
    tools = agent_context(workspace_filesystem(ws), gate=gate, thread_id="t").tools
    result = await tools["runBash"].call({"command": command})
    assert result.error is not None
    assert result.error.code == ErrorCode.PERMISSION_DENIED
    assert "nothing that the command changed was taken over" in result.error.message
    assert {f.path: await ws.read_bytes(f.path) async for f in ws.walk("/workspace")} == before
    assert len(await ws.log()) == 2


async def test_a_thread_s_own_denials_hold_for_commands_and_bypass_checks_nothing(
    ws: Workspace,
) -> None:
    await ws.write("/workspace/a.md", "a\n")
    policy = PermissionPolicy(allow={"bash": ["cp", "rm"]}, deny={"writeFile": ["/workspace/b.md"]})
    own = ThreadPolicy(allow={"bash": ["cp", "rm"]}, deny={"writeFile": ["/workspace/a.md"]})
    gate = PermissionGate(policy, mode="interactive", thread_policy=lambda _: own)
    tools = agent_context(workspace_filesystem(ws), gate=gate, thread_id="t").tools
    for command in ("rm a.md", "cp a.md b.md"):
        assert (await tools["runBash"].call({"command": command})).error is not None
    assert (await tools["runBash"].call({"command": "cp a.md c.md"})).ok
    open_gate = PermissionGate(policy, mode="bypass")
    tools = agent_context(workspace_filesystem(ws), gate=open_gate, thread_id="t").tools
    assert (await tools["runBash"].call({"command": "cp a.md b.md"})).output["commit"]


async def test_what_may_not_be_read_is_not_there_for_a_command_and_is_not_lost(
    ws: Workspace,
) -> None:
    await ws.write("/workspace/secret/key", "swordfish\n")
    await ws.write("/workspace/a.md", "a\n")
    policy = PermissionPolicy(
        allow={"bash": ["cat", "sh", "cp", "rm", "grep"]}, deny={"readFile": ["/workspace/secret"]}
    )
    gate = PermissionGate(policy, mode="interactive")
    tools = agent_context(workspace_filesystem(ws), gate=gate, thread_id="t").tools
    for command in ("cat secret/key", "grep -r sword .", "sh -c 'cat */key'", "cp -r . ../x"):
        assert "swordfish" not in str((await tools["runBash"].call({"command": command})).output)
    assert (await tools["runBash"].call({"command": "rm -r secret"})).output["exitCode"] != 0
    assert await ws.read_text("/workspace/secret/key") == "swordfish\n"
    written = await tools["runBash"].call(
        {"command": "sh -c 'mkdir -p secret; cp a.md secret/key'"}
    )
    assert written.ok
    assert await ws.read_text("/workspace/secret/key") == "a\n"
    assert len(await ws.history("/workspace/secret/key")) == 2


async def test_over_a_folder_the_sandbox_freezes_and_hides_what_rules_deny(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    for name in ("frozen/a.md", "secret/key", "one.key", "open/a.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name}\n")
    (folder / "link").symlink_to(tmp_path)
    (folder / "gone").symlink_to("nowhere")
    policy = PermissionPolicy(
        allow={"bash": ["cat", "sh", "cp", "rm", "mv"]},
        deny={
            "writeFile": [f"{folder}/frozen", f"{folder}/missing", f"{folder}/link"],
            "readFile": [
                f"{folder}/secret",
                f"{folder}/one.key",
                f"{folder}/link",
                f"{folder}/gone",
            ],
        },
    )
    gate = PermissionGate(policy, mode="interactive")
    shell = local_shell(sandbox="required")
    tools = agent_context(local_filesystem(folder), gate=gate, shell=shell, thread_id="t").tools
    for command in (
        "sh -c 'echo x > frozen/a.md'", "cp open/a.md frozen/b.md", "rm frozen/a.md", "mv frozen thawed", "cat secret/key",
        "mv secret out", "cp open/a.md secret/key",
    ):  # fmt: skip
        output = (await tools["runBash"].call({"command": command})).output
        assert output["exitCode"] != 0, command
        assert "key\n" not in output["stdout"]
    assert (await tools["runBash"].call({"command": "cat one.key"})).output["stdout"] == ""
    assert (await tools["runBash"].call({"command": "cp open/a.md open/b.md"})).output[
        "exitCode"
    ] == 0
    assert {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} == {
        "frozen/a.md", "secret/key", "one.key", "open/a.md", "open/b.md",
    }  # fmt: skip
    assert (folder / "frozen" / "a.md").read_text() == "frozen/a.md\n"
    assert (folder / "secret" / "key").read_text() == "secret/key\n"


# -- the sandbox


async def run(folder: Path, command: str, **options: Any) -> Any:
    return await local_shell(**options).run_command(command, FsContext(str(folder)))


async def test_in_the_sandbox_there_is_only_the_folder_and_the_systems_programs(
    tmp_path: Path,
) -> None:
    folder, outside = tmp_path / "ws", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (folder / "link").symlink_to(outside)
    command = (
        f"cat {outside}/secret link/secret; echo x > {outside}/new; echo x > link/new; "
        "echo x > /usr/new; echo ok > inside; ls /home /root /tmp"
    )
    ran = await run(folder, command, sandbox="required")
    assert "secret" not in ran.stdout
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]
    assert (folder / "inside").read_text() == "ok\n"
    assert not Path("/usr/new").exists()


async def test_a_required_sandbox_that_does_not_work_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crux_workspace.agent.shells.sandbox.bubblewrap", lambda: None)
    with pytest.raises(UnsupportedError, match="sandbox"):
        await run(tmp_path, "true", sandbox="required")
    assert (await run(tmp_path, "echo ran", sandbox="auto")).stdout == "ran\n"


# -- limits


@pytest.mark.parametrize("choice", ["required", "off"])
async def test_time_output_processes_memory_and_files_are_limited(
    choice: str, tmp_path: Path
) -> None:
    started = time.monotonic()
    late = await run(tmp_path, "sleep 30 & sleep 30", sandbox=choice, timeout_ms=600)
    assert (late.timed_out, late.exit_code) == (True, 124)
    assert time.monotonic() - started < 15
    loud = await run(
        tmp_path,
        "head -c 3000000 /dev/zero | tr '\\0' x; head -c 3000000 /dev/zero | tr '\\0' y >&2",
        sandbox=choice,
        max_output_bytes=1000,
    )
    assert (loud.truncated, len(loud.stdout), len(loud.stderr)) == (True, 1000, 1000)
    many = await run(
        tmp_path,
        "for i in $(seq 60); do sleep 20 & done; wait",
        sandbox=choice,
        max_processes=20,
        timeout_ms=15_000,
    )
    assert "more than 20 processes" in many.stderr
    assert time.monotonic() - started < 40
    hungry = await run(
        tmp_path,
        "python3 -c 'x = bytearray(600_000_000); print(len(x))'",
        sandbox=choice,
        max_memory_bytes=300 << 20,
    )
    assert hungry.exit_code != 0
    assert "600000000" not in hungry.stdout
    large = await run(
        tmp_path, "head -c 3000000 /dev/zero > big", sandbox=choice, max_file_bytes=1 << 20
    )
    assert large.exit_code != 0
    assert (tmp_path / "big").stat().st_size <= 1 << 20


async def test_nothing_that_a_command_started_outlives_it(tmp_path: Path) -> None:
    for choice in ("required", "off"):
        mark = f"{tmp_path}/{choice}"
        command = f"setsid sh -c 'while true; do echo x >> {choice}; sleep 0.1; done' & sleep 0.4; echo done"
        ran = await run(tmp_path, command, sandbox=choice)
        assert ran.stdout == "done\n"
        size = os.path.getsize(mark) if os.path.exists(mark) else 0  # noqa: PTH110, PTH202
        await asyncio.sleep(0.5)
        assert (os.path.getsize(mark) if os.path.exists(mark) else 0) == size, choice  # noqa: PTH110, PTH202


async def test_a_command_sees_no_credentials_start_files_or_functions_of_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "start").write_text("echo evil; ls() { echo evil; }")
    monkeypatch.setenv("SECRET_TOKEN", "swordfish")
    monkeypatch.setenv("BASH_ENV", str(tmp_path / "start"))
    monkeypatch.setenv("ENV", str(tmp_path / "start"))
    monkeypatch.setenv("BASH_FUNC_ls%%", "() { echo evil; }")
    monkeypatch.setenv("LD_PRELOAD", "/nonexistent.so")
    monkeypatch.setenv("PS4", "$(echo evil)")
    for choice in ("required", "off"):
        ran = await run(tmp_path, "env; ls; set -x; true", sandbox=choice)
        assert "swordfish" not in ran.stdout
        assert "evil" not in ran.stdout
        assert "+ true" in ran.stderr
        assert "LD_PRELOAD" not in ran.stdout
    ran = await run(tmp_path, "echo $GIVEN", env={"GIVEN": "yes"})
    assert ran.stdout == "yes\n"


@pytest.mark.parametrize(
    "options",
    [{"timeout_ms": 0}, {"max_output_bytes": -1}, {"sandbox": "maybe"}, {"max_processes": True}],
)
def test_a_bad_option_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        local_shell(**options)


async def test_a_folder_outside_and_nul_are_refused(tmp_path: Path) -> None:
    shell = local_shell()
    with pytest.raises(InvalidInputError):
        await shell.run_command("ls", FsContext(str(tmp_path)), cwd="/etc")
    with pytest.raises(InvalidInputError):
        await shell.run_command("ls\x00", FsContext(str(tmp_path)))
    (tmp_path / "sub").mkdir()
    ran = await shell.run_command("pwd", FsContext(str(tmp_path)), cwd=f"{tmp_path}/sub")
    assert ran.stdout == f"{tmp_path}/sub\n"


async def test_a_shell_can_be_wrapped_and_replaced(tmp_path: Path, gate: PermissionGate) -> None:
    told: list[Any] = []
    shell = with_shell_logging(told.append)(local_shell())
    tools = agent_context(local_filesystem(tmp_path), gate=gate, shell=shell).tools
    assert (await tools["runBash"].call({"command": "echo x"})).output["stdout"] == "x\n"
    assert told[0].args == ("echo x",)


async def test_a_backend_without_a_shell_says_so(gate: PermissionGate, tmp_path: Path) -> None:
    from tests.agent.files.test_contract import Plain

    result = (
        await agent_context(Plain(str(tmp_path)), gate=gate)
        .tools["runBash"]
        .call({"command": "ls"})
    )
    assert result.error is not None
    assert result.error.code == ErrorCode.CAPABILITY_MISSING


async def test_what_was_judged_is_what_bash_runs(local: Agent) -> None:
    """The judge reads bash's grammar, and bash it is that runs: brace lists, $'…' and process substitutions work."""
    output = await local.output("runBash", command="echo {a,b} $'c\\td'; cat <(echo e)")
    assert output["stdout"] == "a b c\td\ne\n"


async def test_a_new_file_is_no_renamed_one_though_the_old_ones_place_on_disk_is_free(
    versioned: Agent, ws: Workspace
) -> None:
    for n in range(20):
        await ws.write(f"/workspace/old{n}", f"{n}")
    await versioned.output(
        "runBash", command="rm old*; echo a > newa; echo b > newb; echo c > newc; echo d > newd"
    )
    entry = (await ws.log(limit=1))[0]
    assert {change.type for change in entry.changes} == {"create", "delete"}
    await versioned.output("runBash", command="mv newa moved; echo more >> moved; cp moved copy")
    entry = (await ws.log(limit=1))[0]
    assert {(c.type, c.path) for c in entry.changes} == {
        ("rename", "/workspace/moved"),
        ("create", "/workspace/copy"),
    }
    assert await ws.read_text("/workspace/moved") == "a\nmore\n"
