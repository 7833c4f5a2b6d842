"""Pausing and resuming: durable, idempotent, bound to the very call, all or nothing, exactly once."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from crux_workspace.agent import (
    Answer,
    CommandRequest,
    Decision,
    Interrupt,
    PathRequest,
    PermissionGate,
    PermissionPolicy,
    ToolRequest,
)
from crux_workspace.agent.permissions.partitions import partition_of
from crux_workspace.errors import (
    ApprovalRequiredError,
    ErrorCode,
    InvalidInputError,
    ResumeError,
    WorkspaceError,
)
from crux_workspace.storage import MemoryRecordStore
from crux_workspace.storage.layout import META_KEY, decode_meta
from crux_workspace.storage.records import Batch, Put, Reader
from crux_workspace.testing import FaultyRecordStore, FixedClock
from storage_adapters import open_storage

ROOT = Path(__file__).parents[3]
COMMAND = CommandRequest("make all")


@pytest.fixture(params=["memory", "sqlite"])
async def records(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    if request.param == "memory":
        yield MemoryRecordStore()
        return
    storage = await open_storage(f"sqlite:///{tmp_path}/work.db?durability=normal")
    yield storage.records
    await storage.aclose()


@pytest.fixture
def gate(records: Any) -> PermissionGate:
    return PermissionGate(
        PermissionPolicy(approve=["deploy"]), mode="interactive", interrupts=records
    )


def waiting(decision: Decision) -> Interrupt:
    assert decision.interrupt is not None, decision
    return decision.interrupt


def entry(interrupt: Interrupt, payload: Any = "once") -> dict[str, Any]:
    return {"interruptId": interrupt.interrupt_id, "status": "resolved", "payload": payload}


async def refused(gate: PermissionGate, envelope: Any, thread: str = "t") -> ErrorCode:
    before = await gate.pending(thread)
    with pytest.raises((ResumeError, InvalidInputError)) as caught:
        await gate.resume(thread, envelope)
    assert await gate.pending(thread) == before, "nothing was answered"
    return caught.value.code


# -- the envelope


async def test_a_resume_answers_exactly_the_pending_set_in_the_order_of_the_envelope(
    gate: PermissionGate,
) -> None:
    one = waiting(await gate.check(COMMAND, thread_id="t", call_id="1"))
    two = waiting(await gate.check(ToolRequest("deploy"), thread_id="t", call_id="2"))
    assert {item.interrupt_id for item in await gate.pending("t")} == {
        one.interrupt_id,
        two.interrupt_id,
    }
    cancelled = {"interruptId": one.interrupt_id, "status": "cancelled"}
    second, first = await gate.resume(
        "t", {"resume": [entry(two), cancelled], "route": "/navlog#agent"}
    )
    assert (second.allowed, second.answer, first.allowed, first.answer) == (
        True,
        "once",
        False,
        "deny",
    )
    assert await gate.pending("t") == []


async def test_every_error_of_the_resume_protocol(gate: PermissionGate) -> None:
    assert await gate.resume("t", {"resume": []}) == []
    stranger = Answer("perm-unknown", "once")
    assert await refused(gate, [stranger]) == ErrorCode.STALE_INTERRUPT
    one = waiting(await gate.check(COMMAND, thread_id="t", call_id="1"))
    two = waiting(await gate.check(COMMAND, thread_id="t", call_id="2"))
    assert await refused(gate, {"resume": []}) == ErrorCode.RESUME_REQUIRED
    for wrong in (
        [entry(one)],
        [entry(one), entry(one)],
        [entry(one), entry(two), entry(two)],
        [entry(one, "perhaps")],
    ):
        assert await refused(gate, {"resume": wrong}) == ErrorCode.INTERRUPT_SET_MISMATCH
    assert (
        await refused(gate, [Answer(one.interrupt_id, "once"), stranger])
        == ErrorCode.INTERRUPT_SET_MISMATCH
    )
    for payload in ("perhaps", "", None, True, 1, ["once"], {"once": 1}, "cancel", "ONCE"):
        both = {"resume": [entry(one), entry(two, payload)]}
        assert await refused(gate, both) == ErrorCode.INVALID_RESUME_PAYLOAD, payload
    assert len(await gate.resume("t", {"resume": [entry(one), entry(two)]})) == 2
    assert await refused(gate, {"resume": [entry(one), entry(two)]}) == ErrorCode.STALE_INTERRUPT


@pytest.mark.parametrize(
    "envelope",
    [
        {}, {"route": "x"}, {"resume": {}}, {"resume": "x"}, {"resume": None}, {"resume": [], "more": 1}, {"resume": [], "route": 1},
        {"resume": [1]}, {"resume": [{}]}, {"resume": [{"interruptId": "a"}]}, {"resume": [{"interruptId": 1, "status": "cancelled"}]},
        {"resume": [{"interruptId": "", "status": "cancelled"}]}, {"resume": [{"interruptId": "a", "status": "done", "payload": "once"}]},
        {"resume": [{"interruptId": "a", "status": "resolved"}]},
        {"resume": [{"interruptId": "a", "status": "cancelled", "payload": "once"}]},
        {"resume": [{"interruptId": "a", "status": "resolved", "payload": "once", "more": 1}]}, {"interrupt_id": "a", "decision": "once"},
        {"interruptId": "a", "payload": "once"}, [1], ["x"], "x", b"x", 1, None,
    ],
)  # fmt: skip
async def test_another_shape_of_the_envelope_is_refused(
    envelope: Any, gate: PermissionGate
) -> None:
    await gate.check(COMMAND, thread_id="t")
    assert await refused(gate, envelope) == ErrorCode.INVALID_RESUME_PAYLOAD


async def test_a_damaged_record_is_a_malformed_checkpoint(
    gate: PermissionGate, records: Any
) -> None:
    interrupt = waiting(await gate.check(COMMAND, thread_id="t"))
    partition = partition_of("interrupts", "t")

    async def plan(reader: Reader) -> Batch:
        (head,) = await reader.get_many([META_KEY])
        assert head is not None
        (record,) = (await reader.scan("pending\x01", limit=2)).records
        damaged = record.value.replace(b'"kind"', b'"kind_"')
        return Batch(
            commit_id="0" * 32,
            verb="x",
            now=0,
            incarnation=decode_meta(head.value).incarnation,
            puts=[Put(record.key, damaged)],
        )

    await records.commit_planned(partition, plan)
    for call in (gate.pending("t"), gate.resume("t", [Answer(interrupt.interrupt_id, "once")])):
        with pytest.raises(ResumeError) as caught:
            await call
        assert caught.value.code == ErrorCode.MALFORMED_CHECKPOINT


# -- bound to the call


async def test_after_a_resume_the_same_call_runs_once_and_once_is_never_reused(
    gate: PermissionGate,
) -> None:
    interrupt = waiting(await gate.check(COMMAND, thread_id="t", call_id="c"))
    await gate.resume("t", [Answer(interrupt.interrupt_id, "once")])
    assert (await gate.check(COMMAND, thread_id="t", call_id="c")).allowed
    assert (await gate.check(COMMAND, thread_id="t", call_id="c")).outcome == "interrupt"


async def test_asking_again_for_the_same_call_gives_the_same_interrupt(
    gate: PermissionGate,
) -> None:
    first = waiting(await gate.check(COMMAND, thread_id="t", call_id="c"))
    assert waiting(await gate.check(COMMAND, thread_id="t", call_id="c")) == first
    assert await gate.pending("t") == [first]


_WRITE = PathRequest("writeFile", "/srv/a", base="v1", arguments={"content": "x"})
PAIRS: dict[str, tuple[Any, Any]] = {
    "another command": (COMMAND, CommandRequest("make other")),
    "another folder": (COMMAND, CommandRequest("make all", root="/elsewhere")),
    "another version": (
        _WRITE,
        PathRequest("writeFile", "/srv/a", base="v2", arguments={"content": "x"}),
    ),
    "another content": (
        _WRITE,
        PathRequest("writeFile", "/srv/a", base="v1", arguments={"content": "y"}),
    ),
    "other arguments": (ToolRequest("deploy", {"env": "a"}), ToolRequest("deploy", {"env": "b"})),
    "another version of a tool's file": (
        ToolRequest("deploy", {}, "1"),
        ToolRequest("deploy", {}, "2"),
    ),
}
"""What an approval for the first must not be good for."""


async def test_what_waits_stands_in_the_order_in_which_it_was_asked_though_clocks_differ(
    records: Any,
) -> None:
    asked = []
    for number in range(12):
        clock = FixedClock(
            1_700_000_000_000 - number // 6
        )  # it stands still, then another is behind
        agent = PermissionGate(
            PermissionPolicy(), mode="interactive", interrupts=records, clock=clock
        )
        decision = await agent.check(
            CommandRequest(f"make {number}"), thread_id="t", call_id=f"c{number}"
        )
        asked.append(waiting(decision).interrupt_id)
    assert [interrupt.interrupt_id for interrupt in await agent.pending("t")] == asked


@pytest.mark.parametrize("call_id", ["c", None])
@pytest.mark.parametrize("what", PAIRS)
async def test_an_approval_for_one_version_or_argument_set_is_void_for_another(
    what: str, call_id: str | None, gate: PermissionGate
) -> None:
    approved, other = PAIRS[what]
    interrupt = waiting(await gate.check(approved, thread_id="t", call_id=call_id))
    await gate.resume("t", [Answer(interrupt.interrupt_id, "once")])
    again = waiting(await gate.check(other, thread_id="t", call_id=call_id))
    assert again.interrupt_id != interrupt.interrupt_id
    assert again.digest != interrupt.digest
    if call_id is not None:
        assert (await gate.check(approved, thread_id="t", call_id=call_id)).outcome == "interrupt"


async def test_an_approval_is_for_its_thread_and_call_alone(gate: PermissionGate) -> None:
    interrupt = waiting(await gate.check(COMMAND, thread_id="t", call_id="c"))
    await gate.resume("t", [Answer(interrupt.interrupt_id, "once")])
    for thread, call in (("u", "c"), ("t", "d"), ("t", None)):
        assert (await gate.check(COMMAND, thread_id=thread, call_id=call)).outcome == "interrupt"


async def test_a_denied_call_asks_again_when_repeated(gate: PermissionGate) -> None:
    first = waiting(await gate.check(COMMAND, thread_id="t", call_id="c"))
    await gate.resume("t", [Answer(first.interrupt_id, "deny")])
    assert (
        waiting(await gate.check(COMMAND, thread_id="t", call_id="c")).interrupt_id
        != first.interrupt_id
    )


async def test_a_call_that_pauses_twice_keeps_its_first_approval(gate: PermissionGate) -> None:
    """Code that reaches two gated files pauses twice; the first approval is given back when it pauses again."""
    one, two = (PathRequest("readFile", f"/srv/{name}") for name in "ab")

    async def call() -> None:
        async with gate.calling("c"):
            await gate.require(one, thread_id="t")
            await gate.require(two, thread_id="t")

    for _ in range(2):
        with pytest.raises(ApprovalRequiredError) as caught:
            await call()
        await gate.resume("t", [Answer(caught.value.interrupt.interrupt_id, "once")])
    await call()
    with pytest.raises(ApprovalRequiredError):
        await call()


# -- children


async def test_nested_children_are_answered_through_the_root_thread(gate: PermissionGate) -> None:
    await gate.adopt("child", "root")
    await gate.adopt("grandchild", "child")
    one = waiting(await gate.check(COMMAND, thread_id="child", call_id="1"))
    two = waiting(await gate.check(COMMAND, thread_id="grandchild", call_id="2"))
    three = waiting(await gate.check(COMMAND, thread_id="root", call_id="3"))
    for thread in ("root", "child", "grandchild"):
        assert {item.interrupt_id for item in await gate.pending(thread)} == {
            i.interrupt_id for i in (one, two, three)
        }
    assert two.thread_id == "grandchild"
    await gate.resume("root", [Answer(item.interrupt_id, "once") for item in (one, two, three)])
    for thread, call in (("child", "1"), ("grandchild", "2"), ("root", "3")):
        assert (await gate.check(COMMAND, thread_id=thread, call_id=call)).allowed


async def test_a_thread_in_which_something_waits_cannot_be_adopted(gate: PermissionGate) -> None:
    await gate.check(COMMAND, thread_id="child")
    with pytest.raises(ResumeError):
        await gate.adopt("child", "root")


async def test_no_thread_is_its_own_ancestor_and_a_long_family_has_one_root(
    gate: PermissionGate,
) -> None:
    await gate.adopt("b", "a")
    await gate.adopt("c", "b")
    for child, parent in (("a", "a"), ("a", "b"), ("a", "c"), ("b", "c")):
        with pytest.raises(InvalidInputError):
            await gate.adopt(child, parent)
    await gate.check(COMMAND, thread_id="c")
    assert len(await gate.pending("a")) == 1
    await gate.adopt("b", "a")
    for n in range(40):
        await gate.adopt(f"d{n + 1}", f"d{n}")
    await gate.check(COMMAND, thread_id="d40")
    assert len(await gate.pending("d0")) == 1


async def test_of_two_adoptions_that_would_make_a_circle_one_is_refused(
    gate: PermissionGate,
) -> None:
    made = await asyncio.gather(gate.adopt("a", "b"), gate.adopt("b", "a"), return_exceptions=True)
    assert sorted(type(found).__name__ for found in made) == ["InvalidInputError", "NoneType"]
    await gate.check(COMMAND, thread_id="a")
    assert len(await gate.pending("a")) == 1


async def test_what_waits_travels_with_its_error_and_shows_nothing_by_itself(
    gate: PermissionGate,
) -> None:
    secret = CommandRequest("make swordfish")
    with pytest.raises(ApprovalRequiredError) as caught:
        await gate.require(secret, thread_id="t", call_id="c")
    back = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    assert back.interrupt == caught.value.interrupt
    decision = await gate.check(secret, thread_id="t", call_id="c")
    assert "swordfish" not in repr(decision) + repr(back.interrupt) + repr(secret)
    assert (
        json.loads(json.dumps(decision.to_dict()))["interrupt"]["detail"]["command"]
        == "make swordfish"
    )


# -- concurrency, durability, other processes


async def test_of_concurrent_resumes_exactly_one_wins(gate: PermissionGate, records: Any) -> None:
    gates = [gate, *(PermissionGate(mode="interactive", interrupts=records) for _ in range(4))]
    interrupt = waiting(await gate.check(COMMAND, thread_id="t", call_id="c"))
    answers = [Answer(interrupt.interrupt_id, "once")]
    ended = await asyncio.gather(
        *(g.resume("t", answers) for g in gates * 2), return_exceptions=True
    )
    won = [result for result in ended if isinstance(result, list)]
    lost = [result for result in ended if not isinstance(result, list)]
    assert len(won) == 1
    assert all(
        isinstance(e, ResumeError) and e.code in ("RESUME_IN_PROGRESS", "STALE_INTERRUPT")
        for e in lost
    )
    runs = await asyncio.gather(*(g.check(COMMAND, thread_id="t", call_id="c") for g in gates))
    assert sum(run.allowed for run in runs) == 1


async def test_a_thread_that_is_being_resumed_refuses_another_resume(gate: PermissionGate) -> None:
    interrupt = waiting(await gate.check(COMMAND, thread_id="t"))
    async with gate.resuming("t"):
        assert (
            await refused(gate, [Answer(interrupt.interrupt_id, "once")])
            == ErrorCode.RESUME_IN_PROGRESS
        )
    await gate.resume("t", [Answer(interrupt.interrupt_id, "once")])


async def test_wait_returns_the_answer_and_the_call_runs(gate: PermissionGate) -> None:
    interrupt = waiting(await gate.check(COMMAND, thread_id="t", call_id="c"))
    waiter = asyncio.ensure_future(gate.wait(interrupt, timeout_ms=10_000))
    await asyncio.sleep(0)
    await gate.resume("t", [Answer(interrupt.interrupt_id, "once")])
    assert (await waiter).allowed
    assert (await gate.check(COMMAND, thread_id="t", call_id="c")).allowed


async def test_wait_ends_by_time_and_the_interrupt_still_waits(gate: PermissionGate) -> None:
    interrupt = waiting(await gate.check(COMMAND, thread_id="t"))
    with pytest.raises(TimeoutError):
        await gate.wait(interrupt, timeout_ms=20)
    assert await gate.pending("t") == [interrupt]


async def test_wait_for_an_interrupt_that_was_replaced_ends(gate: PermissionGate) -> None:
    interrupt = waiting(await gate.check(COMMAND, thread_id="t", call_id="c"))
    await gate.check(CommandRequest("make other"), thread_id="t", call_id="c")
    with pytest.raises(ResumeError):
        await gate.wait(interrupt, timeout_ms=5_000)


_OTHER = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from crux_workspace.agent import Answer, PermissionGate
from storage_adapters import open_storage
async def main():
    storage = await open_storage(sys.argv[2])
    gate = PermissionGate(mode="interactive", interrupts=storage.records)
    (thread,) = await gate.waiting_threads()
    (interrupt,) = await gate.pending(thread)
    await gate.resume(thread, [Answer(interrupt.interrupt_id, "once")])
    await storage.aclose()
asyncio.run(main())
"""


async def test_another_process_answers_and_a_restart_loses_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/work.db"
    storage = await open_storage(url)
    gate = PermissionGate(mode="interactive", interrupts=storage.records)
    interrupt = waiting(await gate.check(COMMAND, thread_id="t", call_id="c"))
    await storage.aclose()
    storage = await open_storage(url)
    gate = PermissionGate(mode="interactive", interrupts=storage.records)
    assert await gate.pending("t") == [interrupt]
    waiter = asyncio.ensure_future(gate.wait(interrupt, timeout_ms=30_000))
    ran = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", _OTHER, str(ROOT), url], timeout=40, check=True
    )
    assert ran.returncode == 0
    assert (await waiter).answer == "once"
    assert (await gate.check(COMMAND, thread_id="t", call_id="c")).allowed
    await storage.aclose()


async def test_deleting_a_thread_deletes_what_waits_and_what_was_approved(
    gate: PermissionGate,
) -> None:
    interrupt = waiting(await gate.check(COMMAND, thread_id="t", call_id="c"))
    await gate.resume("t", [Answer(interrupt.interrupt_id, "once")])
    await gate.forget_thread("t")
    assert (await gate.check(COMMAND, thread_id="t", call_id="c")).outcome == "interrupt"
    await gate.forget_thread("t")
    assert await gate.pending("t") == []


@pytest.mark.parametrize("call", range(1, 12))
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_failing_store_never_lets_a_call_run_twice_or_unasked(call: int, when: Any) -> None:
    """Whichever store call fails, before or after its effect: the call runs at most once, and only after an answer."""
    faulty = FaultyRecordStore(MemoryRecordStore(), fail_on_call=call, when=when)
    gate = PermissionGate(mode="interactive", interrupts=faulty)
    runs, answered = 0, False
    for _ in range(6):
        try:
            decision = await gate.check(COMMAND, thread_id="t", call_id="c")
            if decision.allowed:
                assert answered
                runs += 1
                break
            answered = True
            await gate.resume("t", [Answer(waiting(decision).interrupt_id, "once")])
        except WorkspaceError:
            continue
    assert runs == 1
