"""Large results go to files: bounded previews, retention by size and age, and nothing fresh is ever deleted."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from crux_workspace import workspace
from crux_workspace.agent import (
    PermissionGate,
    PermissionPolicy,
    ToolOutput,
    agent_context,
    local_filesystem,
    offload_tool_output,
    workspace_filesystem,
)
from crux_workspace.errors import InvalidInputError
from tests.agent.files.test_contract import Plain

LONG = "".join(f"line {n}\n" for n in range(10_000))


def aged(path: Path, ms: int) -> None:
    then = time.time() - ms / 1000
    os.utime(path, (then, then))


async def test_a_result_above_the_threshold_goes_to_a_file_and_leaves_a_stub(
    tmp_path: Path,
) -> None:
    fs = local_filesystem(tmp_path)
    assert await offload_tool_output("x" * 40_000, fs, tool="t", call_id="c") == "x" * 40_000
    assert not (tmp_path / "tool-outputs").exists()
    stub = await offload_tool_output(LONG, fs, tool="t", call_id="c")
    assert stub == (
        f"[Tool output offloaded: {len(LONG):,} characters, more than the limit of 40,000.\n"
        "Full output saved to: tool-outputs/t-c.txt\n"
        "Preview (first 10 lines):\n" + "\n".join(LONG.split("\n")[:10]) + "\n"
        "Read the rest with readFile and that path, in ranges if need be.]"
    )
    assert (tmp_path / "tool-outputs" / "t-c.txt").read_text() == LONG


async def test_a_preview_is_bounded_in_lines_and_characters(tmp_path: Path) -> None:
    fs = local_filesystem(tmp_path)
    stub = await offload_tool_output("y" * 1_000_000, fs, tool="t")
    assert len(stub) < 4_500
    assert "y…" in stub
    one = await offload_tool_output(json.dumps([{"n": n} for n in range(20_000)]), fs, tool="j")
    assert '  {\n    "n": 0\n  },' in one
    assert "Preview (first 10 lines)" in one
    broken = await offload_tool_output("{" + "x" * 50_000, fs, tool="j")
    assert "{xxx" in broken


async def test_names_come_from_tool_and_call_and_are_safe(tmp_path: Path) -> None:
    fs = local_filesystem(tmp_path)
    for tool, call in (
        ("../../etc/x", "a/b"),
        ("t", "../../../up"),
        ("t", ""),
        ("t", None),
        ("é", "x" * 500),
    ):
        await offload_tool_output(LONG, fs, tool=tool, call_id=call)
    names = sorted(path.name for path in (tmp_path / "tool-outputs").iterdir())
    assert names == sorted(set(names))
    assert [path.name for path in tmp_path.iterdir()] == ["tool-outputs"]
    assert any(name.startswith(".._.._etc_x-a_b-") for name in names)
    assert all(len(name) < 200 for name in names)
    assert len(names) == 4  # without a call id the content names the file


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("t", "a/b"), ("t", "a_b")),
        (("t", "a/b"), ("t", "a b")),
        (("a", "b-c"), ("a-b", "c")),
        (("t", "x" * 80 + "1"), ("t", "x" * 80 + "2")),
        (("t" * 80 + "1", "c"), ("t" * 80 + "2", "c")),
        (("t", "a" * 300), ("t", "a" * 80)),
    ],
)
async def test_no_call_writes_over_the_result_of_another(
    tmp_path: Path, one: tuple[str, str], other: tuple[str, str]
) -> None:
    fs = local_filesystem(tmp_path)
    for _ in range(2):
        for number, (tool, call) in enumerate((one, other)):
            await offload_tool_output(f"{number}" + LONG, fs, tool=tool, call_id=call)
    files = list((tmp_path / "tool-outputs").iterdir())
    assert sorted(file.read_text()[0] for file in files) == ["0", "1"]


async def test_the_tools_offload_and_the_readers_are_exempt(tmp_path: Path) -> None:
    gate = PermissionGate(PermissionPolicy(allow={"bash": ["cat"]}), mode="interactive")
    (tmp_path / "big").write_text(LONG)
    tools = agent_context(local_filesystem(tmp_path), gate=gate).tools
    result = await tools["runBash"].call({"command": "cat big"}, call_id="c1")
    assert result.output.startswith("[Tool output offloaded")
    assert result.value.stdout == LONG
    whole = await tools["readFile"].call({"path": "tool-outputs/runBash-c1.txt"})
    assert json.loads(whole.output)["stdout"] == LONG
    assert (await tools["readFile"].call({"path": "big"})).output == LONG
    off = agent_context(local_filesystem(tmp_path), gate=gate, offload=None).tools
    assert (await off["runBash"].call({"command": "cat big"})).output["stdout"] == LONG
    exempt = agent_context(
        local_filesystem(tmp_path), gate=gate, offload=ToolOutput(exempt=["runBash"])
    ).tools
    assert (await exempt["runBash"].call({"command": "cat big"})).output["stdout"] == LONG


@pytest.mark.parametrize("exempt", [["deploy"], ("deploy",), {"deploy"}])
async def test_an_exempt_tool_s_result_stays_whole_however_it_is_offloaded(
    exempt: Any, tmp_path: Path
) -> None:
    fs = local_filesystem(tmp_path)
    options = ToolOutput(exempt=exempt)
    for tool in ("deploy", "readFile", "listDir"):
        assert await offload_tool_output(LONG, fs, tool=tool, options=options) == LONG
    assert await offload_tool_output(LONG, fs, tool="deploys", options=options) != LONG


async def test_over_a_workspace_results_are_files_too() -> None:
    async with workspace(id="w", namespace="n") as ws:
        stub = await offload_tool_output(LONG, workspace_filesystem(ws), tool="t", call_id="c")
        assert "tool-outputs/t-c.txt" in stub
        assert await ws.read_text("/workspace/tool-outputs/t-c.txt") == LONG


@pytest.mark.parametrize("what", ["link", "dangling", "file"])
async def test_a_folder_that_leads_elsewhere_is_never_written_and_breaks_no_tool(
    what: str, tmp_path: Path
) -> None:
    root, outside = tmp_path / "ws", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    if what == "link":
        (root / "tool-outputs").symlink_to(outside)
    elif what == "dangling":
        (root / "tool-outputs").symlink_to(outside / "new")
    else:
        (root / "tool-outputs").write_text("in the way")
    for fs in (local_filesystem(root), Plain(str(root))):
        assert await offload_tool_output(LONG, fs, tool="t") == LONG
    assert list(outside.iterdir()) == []


async def test_old_results_go_by_age(tmp_path: Path) -> None:
    folder = tmp_path / "tool-outputs"
    folder.mkdir()
    for name, age in (("old", 20_000), ("new", 5_000)):
        (folder / name).write_text("x")
        aged(folder / name, age)
    options = ToolOutput(ttl_ms=10_000, gc_throttle_ms=0)
    await offload_tool_output(
        LONG, local_filesystem(tmp_path), tool="t", call_id="c", options=options
    )
    assert sorted(path.name for path in folder.iterdir()) == ["new", "t-c.txt"]


async def test_too_many_go_oldest_use_first_and_never_what_was_just_written(tmp_path: Path) -> None:
    folder = tmp_path / "tool-outputs"
    folder.mkdir()
    for name, age in (("a", 40_000), ("b", 30_000), ("c", 20_000)):
        (folder / name).write_text("x" * 100)
        aged(folder / name, age)
    fs = local_filesystem(tmp_path)
    await agent_context(fs).tools["readFile"].call({"path": "tool-outputs/a"})  # used just now
    options = ToolOutput(threshold_chars=10, max_bytes=250, gc_throttle_ms=0)
    await offload_tool_output("y" * 100, fs, tool="t", call_id="new", options=options)
    assert sorted(path.name for path in folder.iterdir()) == ["a", "t-new.txt"]
    await offload_tool_output("z" * 1000, fs, tool="t", call_id="huge", options=options)
    assert (folder / "t-huge.txt").read_text() == "z" * 1000


async def test_fresh_results_of_others_are_not_collected_and_collections_are_throttled(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "tool-outputs"
    folder.mkdir()
    (folder / "fresh").write_text("x" * 1000)
    fs = local_filesystem(tmp_path)
    options = ToolOutput(threshold_chars=10, max_bytes=10, ttl_ms=0, gc_throttle_ms=60_000)
    await offload_tool_output("y" * 100, fs, tool="t", call_id="1", options=options)
    assert (folder / "fresh").exists()
    (folder / "old").write_text("x")
    aged(folder / "old", 120_000)
    await offload_tool_output("y" * 100, fs, tool="t", call_id="2", options=options)
    assert (folder / "old").exists()


async def test_links_in_the_folder_are_not_followed_by_the_collection(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    folder = root / "tool-outputs"
    folder.mkdir(parents=True)
    victim = tmp_path / "victim"
    victim.write_text("x")
    aged(victim, 10**8)
    (folder / "link").symlink_to(victim)
    options = ToolOutput(threshold_chars=10, ttl_ms=1000, max_bytes=0, gc_throttle_ms=0)
    await offload_tool_output("y" * 100, local_filesystem(root), tool="t", options=options)
    assert victim.read_text() == "x"


@pytest.mark.parametrize(
    "options",
    [
        {"threshold_chars": -1},
        {"ttl_ms": "x"},
        {"max_bytes": True},
        {"exempt": "runBash"},
        {"exempt": None},
    ],
)
def test_a_bad_limit_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        ToolOutput(**options)
