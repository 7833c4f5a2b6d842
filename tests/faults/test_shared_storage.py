"""Two workspace objects with different settings over one storage, and a namespace that is dropped while it is written."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crux_workspace import Retention, Versioning, Workspace
from crux_workspace.errors import VersionNotFoundError, WorkspaceError
from crux_workspace.storage.records import Batch, Committed, OutcomeUnknown
from crux_workspace.testing import CommitOnlyRecordStore
from tests.support.interferers import INTERFERERS
from tests.support.slow_stores import Gaps, TurningRecordStore
from tests.support.stages import Stage, chosen, open_stage
from tests.support.verb_cases import CASES, Case, make
from tests.support.verdicts import attempt, reference

A = "/workspace/a.md"


async def test_a_due_time_binds_workspaces_that_have_none(stage: Stage) -> None:
    trial = stage.empty_trial()
    mortal = trial.workspace(retention=Retention(ttl_ms=10)).for_namespace(trial.namespace)
    lasting = trial.workspace().for_namespace(trial.namespace)
    await mortal.write(A, "x")
    await mortal.write("/workspace/b", "x")
    await lasting.write("/workspace/b", "for ever")
    trial.clock.advance(10)
    for ws in (mortal, lasting):
        assert await ws.stat(A) is None
        assert [file.path async for file in ws.walk("/")] == ["/workspace/b"]
        assert (await ws.usage()).live_files == 1
    assert (await lasting.gc(dry_run=False)).expired == 1
    assert (await lasting.undo(A)).version == 3
    trial.clock.advance(10_000)
    assert await mortal.read_text(A) == "x"
    await trial.check()


async def test_each_workspace_collects_by_its_own_rule(stage: Stage) -> None:
    trial = stage.empty_trial()
    few = trial.workspace(versioning=Versioning(max_versions=2)).for_namespace(trial.namespace)
    all_of_them = trial.workspace().for_namespace(trial.namespace)
    for n in range(5):
        await all_of_them.write(A, f"{n}")
    assert len(await few.history(A)) == 5
    await few.write(A, "few")
    assert [entry.version for entry in await all_of_them.history(A)] == [6, 5]
    await all_of_them.write(A, "more")
    assert [entry.version for entry in await few.history(A)] == [7, 6, 5]
    with pytest.raises(VersionNotFoundError):
        await all_of_them.read_text(A, version=3)
    await trial.check()


async def test_workspaces_with_different_rules_may_write_at_once(stage: Stage) -> None:
    trial = stage.empty_trial()
    settings: list[dict[str, Any]] = [
        {},
        {"versioning": Versioning(max_versions=1)},
        {"versioning": Versioning(max_versions=3), "retention": Retention(ttl_ms=5)},
        {"retention": Retention(ttl_ms=50)},
    ]
    many = [trial.workspace(**s).for_namespace(trial.namespace) for s in settings]
    await asyncio.gather(
        *(ws.append(A, f"{n}" * 90) for ws in many for n in range(4)), return_exceptions=True
    )
    assert (await trial.check()).of("head")
    trial.clock.advance(5)
    for ws in many:
        await ws.gc(dry_run=False)
        await trial.check()


_ONE_COMMIT = [case for case in CASES if not case.steps]
_NO_LOG = [case for case in _ONE_COMMIT if not case.name.startswith("undo a commit")]


@pytest.mark.parametrize("case", chosen(_NO_LOG, "dropping", 0.3), ids=repr)
async def test_a_namespace_dropped_under_a_verb_is_gone_or_begins_anew(
    case: Case, tmp_path: Path
) -> None:
    async with open_stage("memory", tmp_path) as stage:
        for gap in range(1, 30):
            trial = await stage.trial(case)
            namespace = trial.namespace

            gaps = Gaps(gap, partial(trial.workspace().drop_namespace, namespace))
            ws = make(
                TurningRecordStore(stage.bare, gaps), trial.assets, trial.clock, **case.options
            )
            try:
                await case.call(ws, namespace)
            except WorkspaceError:
                assert gaps.count >= gap
            if gaps.count < gap:
                break
            records = await trial.check()
            assert len(records.of("log")) <= 1


class _LateStore(CommitOnlyRecordStore):
    """Answers nothing and applies a commit only when the next one comes."""

    late: tuple[str, Batch] | None = None
    armed = True

    async def commit(self, partition: str, batch: Batch) -> Committed:
        """See `RecordStore.commit`."""
        if self.armed:
            self.armed, self.late = False, (partition, batch)
            raise OutcomeUnknown
        if self.late is not None:
            (where, late), self.late = self.late, None
            await super().commit(where, late)
        return await super().commit(partition, batch)


@pytest.mark.parametrize("case", _ONE_COMMIT, ids=repr)
async def test_a_commit_that_is_applied_late_is_still_the_only_one(
    case: Case, tmp_path: Path
) -> None:
    async with open_stage("memory", tmp_path) as stage:
        expected = await reference(stage, case)
        trial = await stage.trial(case)
        ws = make(_LateStore(stage.bare), trial.assets, trial.clock, **case.options)
        assert await attempt(case.call(ws, trial.namespace)) == expected.result
        assert await trial.dump() == expected.after
        assert await trial.settle(case) == expected.settled_after


async def test_a_lost_answer_in_a_namespace_that_began_anew_commits_once(tmp_path: Path) -> None:
    async with open_stage("memory", tmp_path) as stage:
        trial = await stage.trial()
        store = _DroppingStore(stage.bare)
        ws = make(store, trial.assets, trial.clock).for_namespace(trial.namespace)
        await ws.append(A, "x")
        assert await ws.read_text(A) == "x"
        assert len(await ws.log()) == 1


class _DroppingStore(CommitOnlyRecordStore):
    """Loses a first commit together with its namespace, then the answer of the second one."""

    count = 0

    async def commit(self, partition: str, batch: Batch) -> Committed:
        """See `RecordStore.commit`."""
        self.count += 1
        if self.count == 1:
            await self.inner.drop(partition)
            raise OutcomeUnknown
        done = await super().commit(partition, batch)
        if self.count == 2:
            raise OutcomeUnknown
        return done


@pytest.mark.parametrize("interferer", ["writes", "purges and writes to the same number", "swaps"])
async def test_a_sweep_takes_nothing_that_was_written_meanwhile(
    interferer: str, tmp_path: Path
) -> None:
    async with open_stage("memory", tmp_path) as stage:
        for gap in range(1, 80):
            trial = stage.empty_trial()
            mortal = trial.workspace(retention=Retention(ttl_ms=10)).for_namespace(trial.namespace)
            for path in (A, "/workspace/b.bin"):
                await mortal.write(path, "one\n")
            trial.clock.advance(10)
            other = trial.workspace().for_namespace(trial.namespace)

            gaps = Gaps(gap, partial(_write_again, other, interferer))
            sweeper = make(TurningRecordStore(stage.bare, gaps), trial.assets, trial.clock)
            await sweeper.gc(dry_run=False, namespace=trial.namespace)
            if gaps.count < gap:
                break
            live = [file.path async for file in other.walk("/")]
            assert live == [A, "/workspace/b.bin"], f"gap {gap}"
            await trial.check()


async def _write_again(ws: Workspace, interferer: str) -> None:
    await ws.write("/workspace/b.bin", "b")
    await ws.write(A, "one\nlive\n")
    await INTERFERERS[interferer](ws)
