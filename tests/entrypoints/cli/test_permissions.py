"""``approve`` and ``permissions``: a person at the terminal answers what an agent in another process asked."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from crux_workspace.agent import (
    CommandRequest,
    Decision,
    PathRequest,
    PermissionGate,
    PermissionPolicy,
    file_permission_store,
    record_permission_store,
)
from storage_adapters import open_storage

COMMAND = CommandRequest("make all")


def ask(cws: Any, *requests: Any, thread: str = "t", in_store: bool = False) -> list[Decision]:
    """Be the agent's process: ask, and leave."""

    async def work() -> list[Decision]:
        storage = await open_storage(f"sqlite:///{cws.folder}/workspace.db")
        store = (
            record_permission_store(storage.records)
            if in_store
            else file_permission_store(cws.folder / ".crux/permissions.json")
        )
        gate = PermissionGate(
            PermissionPolicy(), store, mode="interactive", interrupts=storage.records
        )
        found = [
            await gate.check(request, thread_id=thread, call_id=f"c{n}")
            for n, request in enumerate(requests)
        ]
        await storage.aclose()
        return found

    return asyncio.run(work())


def test_a_person_answers_line_by_line_and_the_agent_goes_on(cws: Any) -> None:
    path = PathRequest("readFile", "/srv/a")
    ask(cws, COMMAND, path)
    ran = cws("approve", stdin=b"always\ndeny\n")
    assert ran.code == 0
    assert ran.lines == ["t\tcommand\talways", "t\tpath\tdeny"]
    assert '"command": "make all"' in ran.stderr
    assert [d.outcome for d in ask(cws, COMMAND, path)] == ["allow", "interrupt"]
    (line,) = cws.ok("permissions", "list").lines
    grant = line.split("\t")[0]
    assert line.split("\t")[1:] == ["bash", "make all", ""]
    assert cws.ok("permissions", "revoke", grant).text == f"revoked {grant}\n"
    assert cws.ok("permissions", "list").text == ""
    assert [d.outcome for d in ask(cws, COMMAND)] == ["interrupt"]


def test_an_always_where_it_is_not_offered_counts_once(cws: Any) -> None:
    unsafe = CommandRequest("rm $X")
    ask(cws, unsafe)
    ran = cws("approve", stdin=b"always\n")
    assert ran.lines == ["t\tcommand\tonce"]
    assert "once, deny?" in ran.stderr
    assert cws.ok("permissions", "list").text == ""
    assert [d.outcome for d in ask(cws, unsafe)] == ["allow"]
    assert [d.outcome for d in ask(cws, unsafe)] == ["interrupt"]


def test_help_shows_the_name_of_the_table(bare: Any) -> None:
    assert "[permissions]" in bare.ok("permissions", "check", "--help").text


def test_one_answer_for_all_and_threads_by_name(cws: Any) -> None:
    ask(cws, COMMAND, thread="one")
    ask(cws, COMMAND, thread="two")
    ran = cws.ok("approve", "--thread", "two", "--answer", "once", "--json")
    (decision,) = ran.json["decisions"]
    assert (decision["threadId"], decision["answer"]) == ("two", "once")
    assert [d.outcome for d in ask(cws, COMMAND, thread="two")] == ["allow"]
    assert [d.outcome for d in ask(cws, COMMAND, thread="one")] == ["interrupt"]


@pytest.mark.parametrize("stdin", [b"", b"perhaps\n", b"once\n"])
def test_an_answer_that_is_none_answers_nothing(cws: Any, stdin: bytes) -> None:
    ask(cws, COMMAND, PathRequest("readFile", "/srv/a"))
    ran = cws("approve", stdin=stdin)
    assert ran.code == 1
    assert "nothing was answered" in ran.stderr
    assert len(cws.ok("approve", "--answer", "deny", "--json").json["decisions"]) == 2
    assert cws("approve").stderr.startswith("nothing waits")


def test_wrong_usage_is_2(cws: Any) -> None:
    assert cws("approve", "--answer", "perhaps").code == 2
    assert cws("permissions").code == 2
    assert cws("permissions", "revoke").code == 2


def test_grants_can_live_in_the_store(cws: Any) -> None:
    ask(cws, COMMAND, in_store=True)
    cws.ok("approve", "--answer", "always", "--in-store", "--json")
    (grant,) = cws.ok("permissions", "list", "--in-store", "--json").json["grants"]
    assert grant["pattern"] == "make all"
    assert cws.ok("permissions", "list", "--json").json == {"grants": []}
    assert [d.outcome for d in ask(cws, COMMAND, in_store=True)] == ["allow"]
    cws.ok("permissions", "revoke", grant["grant_id"], "--in-store")
    assert cws("permissions", "revoke", grant["grant_id"], "--in-store").code == 1


def test_check_tells_rules_that_are_hardly_meant_and_fails(bare: Any) -> None:
    bare.folder.joinpath("crux.toml").write_text(
        '[permissions]\napprove = ["runBash", "deploy"]\n[permissions.allow]\nbash = ["python"]\nreadFile = ["/"]\n'
    )
    ran = bare("permissions", "check", "--tool", "runBash")
    assert ran.code == 1
    assert {line.split("\t")[0] for line in ran.lines} == {
        "approve-gated",
        "unknown-tool",
        "interpreter",
        "root-wide",
    }
    told = bare("permissions", "check", "--json")
    assert len(json.loads(told.stdout)["warnings"]) == 3
    bare.folder.joinpath("good.toml").write_text('[permissions.allow]\nbash = ["ls"]\n')
    assert bare.ok("permissions", "check", "good.toml").text == ""
    bare.folder.joinpath("bad.toml").write_text('[permissions.allow]\nbash = [""]\n')
    bad = bare("permissions", "check", "bad.toml")
    assert (bad.code, "POLICY_INVALID" in bad.stderr) == (1, True)
    assert bare("permissions", "check", "missing.toml").code == 1


def test_nothing_is_created_by_looking(bare: Any) -> None:
    for command in (("approve",), ("permissions", "list", "--in-store")):
        ran = bare(*command)
        assert (ran.code, "does not exist" in ran.stderr) == (1, True)
    assert bare.ok("permissions", "list").text == ""
    assert list(bare.folder.iterdir()) == []
