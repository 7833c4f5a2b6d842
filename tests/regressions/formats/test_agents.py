"""Records of the agent room: `docs/format.md` names them, and those of an earlier version are read for ever."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from crux_workspace.agent import (
    Answer,
    ClientToolRequest,
    CommandRequest,
    PathRequest,
    PermissionGate,
    PermissionPolicy,
    ToolRequest,
    record_permission_store,
)
from crux_workspace.storage import MemoryRecordStore
from crux_workspace.storage.records import Batch, Put, Reader
from tests.regressions.formats.test_format_page import SYMBOLS, section

GOLDEN = Path(__file__).parent / "agents" / "v1.json"
POLICY = PermissionPolicy(approve=["deploy"], deny={"clientTool": ["close"]})
AT = 1_700_000_000_000
OWN = ("meta\x01", "log\x01")
"""Records that the store itself writes."""


def gate(records: MemoryRecordStore, policy: PermissionPolicy = POLICY) -> PermissionGate:
    store = record_permission_store(records, clock=lambda: AT)
    return PermissionGate(policy, store, "interactive", interrupts=records, clock=lambda: AT)


async def scenario() -> MemoryRecordStore:
    """Leave one record of each kind."""
    records = MemoryRecordStore()
    g = gate(records)
    await record_permission_store(records, clock=lambda: AT).add_denial("bash", "sudo")
    await g.adopt("child", "root")
    for request, thread, call, answer in (
        (CommandRequest("make all"), "child", "c1", "always"),
        (ToolRequest("deploy", {"env": "prod"}), "root", "c2", "once"),
    ):
        asked = await g.check(request, thread_id=thread, call_id=call)
        assert asked.interrupt is not None
        await g.resume("root", [Answer(asked.interrupt.interrupt_id, answer)])  # type: ignore[arg-type]
    await g.check(PathRequest("readFile", "/srv/a"), thread_id="root", call_id="c3")
    await g.check(ClientToolRequest("open"), thread_id="root", call_id="c4")
    return records


async def dumped(records: MemoryRecordStore) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for partition in (await records.partitions("\x01", limit=100)).names:
        page = await records.scan(partition, "", limit=100)
        found[partition] = {
            r.key: json.loads(r.value) for r in page.records if not r.key.startswith(OWN)
        }
    return found


def shape(dump: dict[str, dict[str, Any]]) -> dict[str, dict[str, list[str]]]:
    """Return which names the records of each kind have, by partition."""
    return {
        partition: {key.split("\x01")[0]: sorted(value) for key, value in records.items()}
        for partition, records in dump.items()
    }


def documented() -> dict[str, set[str]]:
    """Return the names of each kind, as the page lists them."""
    found: dict[str, set[str]] = {}
    for kinds, keys, names in re.findall(
        r"^\| (`.+?) \| (`.+?) \| (.+?) \|$", section("Agents"), re.M
    ):
        listed = set(re.findall(r"`(\w+)`", names))
        for kind in re.findall(r"`(\w+)`", kinds):
            assert f"`{kind}␁" in keys
            found[kind] = listed | (found["pending"] if "pending" in listed else set())
            found[kind] -= {"pending"}
    return found


async def test_the_page_names_every_record_of_the_agent_room_and_no_other() -> None:
    written = {
        kind: set(names)
        for kinds in shape(await dumped(await scenario())).values()
        for kind, names in kinds.items()
    }
    assert written == documented()


async def test_records_without_chance_are_written_as_they_were_byte_for_byte(
    regenerate: bool,
) -> None:
    now = await dumped(await scenario())
    if regenerate:
        GOLDEN.write_text(json.dumps(now, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert shape(now) == shape(golden)
    settled = ("child", "grant", "deny", "client", "approved")
    for partition, records in golden.items():
        for key, value in records.items():
            if key.startswith(settled):
                assert now[partition][key] == value


async def test_records_of_the_first_version_are_read() -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    records = MemoryRecordStore()
    for partition, entries in golden.items():

        async def plan(reader: Reader, entries: dict[str, Any] = entries) -> Batch:
            del reader
            puts = [Put(key, json.dumps(value).encode()) for key, value in entries.items()]
            return Batch(commit_id="0" * 32, verb="load", now=AT, incarnation=None, puts=puts)

        await records.commit_planned(partition, plan)
    g = gate(records)
    (waiting,) = await g.pending("child")
    assert (waiting.kind, waiting.detail["path"], waiting.thread_id) == ("path", "/srv/a", "root")
    assert [(grant.key, grant.pattern) for grant in await g.grants()] == [("bash", "make all")]
    assert (await g.check(CommandRequest("sudo ls"))).outcome == "deny"
    deploy = ToolRequest("deploy", {"env": "prod"})
    assert (await g.check(deploy, thread_id="root", call_id="c2")).allowed
    assert not (await g.check(deploy, thread_id="root", call_id="c2")).allowed
    refusing = gate(records, PermissionPolicy(deny={"clientTool": ["open"]}))
    parked = ClientToolRequest("open")
    assert (await refusing.check(parked, thread_id="root", call_id="c4")).allowed
    for item in await g.pending("root"):
        if item.kind != "path":
            await g.settle(item, "deny")
    await g.resume("root", [Answer(waiting.interrupt_id, "once")])
    path = PathRequest("readFile", "/srv/a")
    assert (await g.check(path, thread_id="root", call_id="c3")).allowed


def test_grant_ids_are_what_the_page_says() -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))["\x01permissions\x01"]
    for value in golden.values():
        if "grant_id" in value:
            named = "\0".join((value["key"], value["pattern"], ""))
            assert value["grant_id"] == hashlib.sha256(named.encode()).hexdigest()[:16]
    page = section("Agents")
    for key in (*golden, "\x01permissions\x01"):
        assert f"`{key.split(chr(1))[0]}".translate(SYMBOLS) in page
