"""The checker of histories passes what is right and finds what was planted."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from crux_workspace import CommitEntry, Workspace, workspace
from crux_workspace.errors import ConflictError
from crux_workspace.model.changes import Change
from crux_workspace.storage import memory_storage
from crux_workspace.storage.records import Batch, Committed, RecordStore
from crux_workspace.testing import DelegatingRecordStore
from crux_workspace.testing.serialisability import (
    Append,
    Client,
    History,
    Listing,
    Read,
    Rename,
    Search,
    Step,
    Write,
    check,
    state_of,
)

A, B, C = "/workspace/a", "/workspace/b", "/workspace/c"


class Told:
    """A history that is told by hand: operations one after the other, each with its commit."""

    def __init__(self) -> None:
        self.history = History()
        self.commits: list[CommitEntry] = []
        self.final: dict[str, str] = {}

    def did(
        self, *steps: Step, commits: bool = True, outcome: Any = "done", paths: Any = None
    ) -> str:
        """Tell an operation; the true state follows it when it commits."""
        operation = self.history.begin("c")
        operation.steps.extend(steps)
        self.history.end(operation, outcome)
        if commits:
            for step in steps:
                step.replay(self.final)
            self.commit(operation.name, paths or sorted(operation.touched))
        return operation.name

    def commit(self, actor: str, paths: list[str]) -> None:
        changes = [Change("update", path, None, "f", None, 1, 1) for path in paths]
        number = len(self.commits) + 1
        self.commits.append(CommitEntry(number, f"{number}-x", 0, "write", actor, changes, ""))

    def wrong(self) -> list[str]:
        return check(self.history, self.commits, final=self.final)


@pytest.fixture
def told() -> Told:
    """A right history to begin with."""
    told = Told()
    told.did(Write(A, "1"))
    told.did(Read(A, "1"), Write(B, "from 1"))
    return told


def test_a_right_history_passes(told: Told) -> None:
    told.did(Append(A, "2"), Read(A, "12"))
    told.did(Read(A, "12"), Listing("/workspace", (A, B)), Search("/", "1", (A, B)), commits=False)
    told.did(Read(B, None), Write(A, "never"), commits=False, outcome="refused")
    told.did(Rename(A, C), Write(A, "new"))
    told.did(Write(C, "12"))
    told.did(Write(C, "lost on the way"), commits=False, outcome="unknown")
    assert told.wrong() == []


def lost_update(told: Told) -> None:
    told.did(Read(A, "1"), Write(A, "1+x"))
    told.did(Read(A, "1"), Write(A, "1+y"))


def dirty_read(told: Told) -> None:
    told.did(Write(A, "refused"), commits=False, outcome="refused")
    told.did(Read(A, "refused"), Write(C, "saw it"))


def read_of_the_past(told: Told) -> None:
    told.did(Write(A, "2"))
    told.did(Read(A, "1"), commits=False)


def write_skew(told: Told) -> None:
    told.did(Read(A, "1"), Read(B, "from 1"), Write(A, "0"))
    told.did(Read(A, "1"), Read(B, "from 1"), Write(B, "0"))


def phantom_in_a_listing(told: Told) -> None:
    told.did(Listing("/workspace", (A, B)), Write(C, "third"))
    told.did(Listing("/workspace", (A, B)), Write("/workspace/d", "third as well"))


def phantom_in_a_search(told: Told) -> None:
    told.did(Search("/workspace", "x", ()), Write(C, "x"))
    told.did(Search("/workspace", "x", ()), Write(B, "x"))


def absence_that_did_not_last(told: Told) -> None:
    told.did(Read(C, None), Write(C, "mine"))
    told.did(Read(C, None), Write(C, "mine too"))


def torn_transaction(told: Told) -> None:
    told.did(Write(A, "x"), Write(B, "y"))
    told.final[B] = "from 1"


def torn_log_entry(told: Told) -> None:
    told.did(Write(A, "x"), Write(B, "y"), paths=[A])


def lost_commit(told: Told) -> None:
    told.did(Write(C, "acknowledged"), commits=False)


def commit_applied_twice(told: Told) -> None:
    name = told.did(Append(A, "x"))
    told.commit(name, [A])
    told.final[A] += "x"


def refused_and_applied(told: Told) -> None:
    told.did(Write(A, "refused"), outcome="refused")


def order_against_time(told: Told) -> None:
    told.did(Write(C, "first"))
    told.did(Write("/workspace/d", "second"))
    one, two = told.commits[-2:]
    told.commits[-2:] = [replace(two, sequence=one.sequence), replace(one, sequence=two.sequence)]


def gap_in_the_log(told: Told) -> None:
    told.did(Write(C, "x"))
    told.commits[-1] = replace(told.commits[-1], sequence=9)


def commit_of_nobody(told: Told) -> None:
    told.commit("a stranger", [A])


def two_moments_in_one_snapshot(told: Told) -> None:
    reader = told.history.begin("reader")
    reader.steps += [Read(A, "1")]
    told.did(Write(A, "2"))
    told.did(Write(B, "from 2"))
    reader.steps += [Read(B, "from 2")]
    told.history.end(reader, "done")


def touched_what_it_did_not_write(told: Told) -> None:
    told.did(Write(A, "x"), paths=[A, B])


def end_that_nobody_made(told: Told) -> None:
    told.final[C] = "out of nothing"


PLANTED: list[Callable[[Told], None]] = [
    lost_update,
    dirty_read,
    read_of_the_past,
    write_skew,
    phantom_in_a_listing,
    phantom_in_a_search,
    absence_that_did_not_last,
    torn_transaction,
    torn_log_entry,
    lost_commit,
    commit_applied_twice,
    refused_and_applied,
    order_against_time,
    gap_in_the_log,
    commit_of_nobody,
    two_moments_in_one_snapshot,
    touched_what_it_did_not_write,
    end_that_nobody_made,
]


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_found(told: Told, bug: Callable[[Told], None]) -> None:
    assert told.wrong() == []
    bug(told)
    assert told.wrong()


class Blind(DelegatingRecordStore):
    """A store that does not judge some of what a batch expects."""

    def __init__(self, inner: RecordStore, blank: dict[str, Any]) -> None:
        super().__init__(inner)
        self.blank = blank

    async def commit_planned(self, partition: str, plan: Any) -> Committed:
        async def blinded(reader: Any) -> Batch:
            batch: Batch = await plan(reader)
            for name, value in self.blank.items():
                setattr(batch, name, value)
            return batch

        return await self.inner.commit_planned(partition, blinded)


async def increments(client: Client, other: Client) -> None:
    async with client.transaction() as tx:
        value = await tx.read(A)
        await other.append(A, "!")
        await tx.write(A, f"{value}+")


async def sign_ups(client: Client, other: Client) -> None:
    async with client.transaction() as tx:
        if not await tx.listing("/workspace/oncall"):
            await tx.write("/workspace/oncall/me", "")
        await other.write("/workspace/oncall/other", "")


async def run(records: RecordStore, steps: Any) -> list[str]:
    ws = workspace(id="w", namespace="n", records=records)
    history = History()
    client, other = history.client(ws, "one"), history.client(ws, "two")
    await client.write(A, "a")
    with contextlib.suppress(ConflictError):
        await steps(client, other)
    wrong = check(history, await ws.log(limit=1000), final=await state_of(ws))
    await ws.aclose()
    return wrong


@pytest.mark.parametrize(
    ("steps", "blank"),
    [(increments, {"expect": {}}), (sign_ups, {"expect_quiet": [], "quiet_since": None})],
    ids=["a lost update", "a phantom"],
)
async def test_a_store_that_does_not_judge_is_found_out(steps: Any, blank: dict[str, Any]) -> None:
    assert await run(memory_storage().records, steps) == []
    assert await run(Blind(memory_storage().records, blank), steps)


async def test_clients_record_what_they_do(ws: Workspace) -> None:
    history = History()
    client = history.client(ws, "one")
    await client.write(A, "a")
    await client.append(A, "b")
    await client.update(A, str.upper)
    await client.rename(A, B)
    assert await client.read(A) is None
    await client.delete(B)
    await client.delete(B)
    with pytest.raises(LookupError):
        await client.rename(B, A)
    await asyncio.gather(*(client.append(C, f"{n}\n") for n in range(5)))
    async with client.transaction() as tx:
        assert await tx.search("3", "/workspace") == (C,)
        await tx.rename(C, A)
        await tx.delete(A)
        assert tx.real is not None
    assert check(history, await ws.log(limit=100), final=await state_of(ws)) == []
    assert [op.outcome for op in history.operations].count("refused") == 1
