"""`gate.lint` and ``permissions check``: legal rules that are hardly what was meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crux_workspace.agent import Approve, PermissionGate, PermissionPolicy


def warned(policy: PermissionPolicy, tools: Any = ()) -> list[tuple[str, str]]:
    return [(w.code, w.rule) for w in PermissionGate(policy, mode="interactive").lint(tools)]


@pytest.mark.parametrize("tool", ["runBash", "readFile", "writeFile", "editFile", "listDir"])
def test_approving_an_internally_gated_tool_is_told(tool: str) -> None:
    assert warned(PermissionPolicy(approve=[tool])) == [("approve-gated", tool)]


def test_tool_entries_that_are_dead_or_doubled_are_told() -> None:
    assert warned(PermissionPolicy(approve=["x"], deny={"tool": ["x"]})) == [
        ("approve-denied", "x")
    ]
    both = PermissionPolicy(approve=[Approve("x")], constrain={"x": lambda *_: True})
    assert warned(both) == [("approve-constrained", "x")]
    remember = PermissionPolicy(approve=["remember"], memory_writes="ask")
    assert warned(remember) == [("approve-remember", "remember")]


def test_approving_a_tool_that_a_subagent_was_not_granted_is_told() -> None:
    policy = PermissionPolicy(approve=["deploy", "search"], deny={"tool": ["old"]})
    assert warned(policy, ["search", "old"]) == [("unknown-tool", "deploy")]
    assert warned(policy) == []


def test_wide_dead_and_aliased_rules_are_told(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    assert warned(PermissionPolicy(allow={"readFile": ["/"]})) == [("root-wide", "/")]
    alias = str(tmp_path / "alias")
    assert warned(PermissionPolicy(allow={"readFile": [alias]})) == [("not-canonical", alias)]
    denied = PermissionPolicy(allow={"readFile": ["/usr/share"]}, deny={"readFile": ["/usr"]})
    assert warned(denied) == [("dead", "/usr/share")]
    assert warned(PermissionPolicy(allow={"readFile": ["/usr", "/usr/share"]})) == [
        ("dead", "/usr/share")
    ]
    assert warned(PermissionPolicy(allow={"bash": ["ls", "ls -la"]})) == [("dead", "ls -la")]
    assert warned(PermissionPolicy(allow={"bash": ["rm -rf x"]}, deny={"bash": ["rm -rf"]})) == [
        ("dead", "rm -rf x")
    ]


def test_interpreters_and_builtins_that_shift_meanings_are_told() -> None:
    assert warned(PermissionPolicy(allow={"bash": ["python"]})) == [("interpreter", "python")]
    assert warned(PermissionPolicy(allow={"bash": ["/bin/sh"]})) == [("interpreter", "/bin/sh")]
    assert warned(PermissionPolicy(allow={"bash": ["alias"]})) == [("shifting", "alias")]
    assert warned(PermissionPolicy(allow={"bash": ["python -m pytest", "ls"]})) == []
