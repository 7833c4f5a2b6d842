"""A call is cancelled at each of its steps: it is wholly there or absent, and nothing is left running."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from crux_workspace import Workspace, workspace
from crux_workspace.storage import (
    Committed,
    MemoryAssetStore,
    MemoryRecordStore,
    Plan,
)
from tests.support.dumps import Names, plain
from tests.support.slow_stores import TurningAssetStore, TurningRecordStore
from tests.support.stages import EVERYTHING, Stage, Trial, chosen, open_stage
from tests.support.verb_cases import CASES, Case, make
from tests.support.verdicts import Reference, judge_settled, reference

_PATIENCE = 5_000


async def cancelled_after(steps: int, call: Any, *, twice: bool) -> tuple[bool, Any]:
    """Cancel a call after some turns of the loop; return whether it ended before, and what it gave."""
    task = asyncio.ensure_future(call)
    for _ in range(steps):
        await asyncio.sleep(0)
    finished = task.done()
    task.cancel()
    if twice:
        await asyncio.sleep(0)
        task.cancel()
    try:
        return finished, plain(await task, Names())
    except asyncio.CancelledError:
        return finished, None


async def judge(
    trial: Trial, case: Case, expected: Reference, ws: Workspace, outcome: Any, *, settle: bool
) -> None:
    await ws.aclose()
    assert not ws._core.in_flight.tasks
    for _ in range(20):  # iterators that were left in the middle are closed by the loop
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    found = await trial.dump()
    if outcome is not None:
        assert outcome == expected.result
        assert found == expected.after
    elif not case.steps:
        assert found in (expected.before, expected.after)
    if settle:
        await judge_settled(trial, case, expected, may_be_undone=outcome is None)
    next_file = await trial.workspace().write("/workspace/next.md", "n", namespace=trial.namespace)
    assert next_file.version == 1


@pytest.mark.parametrize("case", CASES, ids=repr)
async def test_a_cancelled_call_is_wholly_there_or_absent(case: Case) -> None:
    async with open_stage("memory", Path()) as stage:
        expected = await reference(stage, case)
        await _cancel_at_each_step(stage, case, expected, twice=False)
        await _cancel_at_each_step(stage, case, expected, twice=True)
    gc.collect()


async def _cancel_at_each_step(
    stage: Stage, case: Case, expected: Reference, *, twice: bool
) -> None:
    step, finished = 0, False
    while not finished:
        trial = await stage.trial(case)
        ws = make(
            TurningRecordStore(stage.bare),
            TurningAssetStore(trial.assets),
            trial.clock,
            **case.options,
        )
        call = case.call(ws, trial.namespace)
        finished, outcome = await cancelled_after(step, call, twice=twice)
        await judge(trial, case, expected, ws, outcome, settle=case.steps or step % 4 == 0)
        step += 1 if EVERYTHING or step < 12 else max(3, step // 6)
        assert step < _PATIENCE


_BEYOND_MEMORY = chosen(CASES, "cancelling on sqlite", 0.25)


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("redis", marks=pytest.mark.redis)])
@pytest.mark.parametrize("case", _BEYOND_MEMORY, ids=repr)
async def test_a_call_cancelled_while_the_writer_works_is_wholly_there_or_absent(
    case: Case, kind: str, tmp_path: Path
) -> None:
    async with open_stage(kind, tmp_path) as stage:
        expected = await reference(stage, case)
        step, finished = 0, False
        while not finished:
            trial = await stage.trial(case)
            ws = make(stage.bare, trial.assets, trial.clock, **case.options)
            call = case.call(ws, trial.namespace)
            finished, outcome = await cancelled_after(step, call, twice=False)
            await judge(trial, case, expected, ws, outcome, settle=True)
            step = step * 2 if step > 4 else step + 1
            assert step < 1 << 20
    gc.collect()


class _LandingRecordStore(MemoryRecordStore):
    """Commits in a task of its own, as a store with a thread does: who waits can be cancelled, the commit cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.handed_over = asyncio.Event()
        self.landing: asyncio.Task[Committed] | None = None

    async def commit_planned(self, partition: str, plan: Plan) -> Committed:
        """See `RecordStore.commit_planned`."""

        async def land() -> Committed:
            await asyncio.sleep(0)
            return await MemoryRecordStore.commit_planned(self, partition, plan)

        self.landing = asyncio.ensure_future(land())
        self.handed_over.set()
        return await asyncio.shield(self.landing)


async def test_a_commit_whose_task_the_closing_loop_cancels_keeps_its_upload() -> None:
    """`asyncio.run` cancels every task at its end, the one that waits for the store too."""
    records = _LandingRecordStore()
    ws = workspace(id="w", namespace="n", records=records, assets=MemoryAssetStore())
    call = asyncio.ensure_future(ws.write("/workspace/a.bin", b"abc"))
    await records.handed_over.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    [left] = ws._core.in_flight.tasks
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    assert records.landing is not None
    await records.landing
    assert await ws.read_bytes("/workspace/a.bin") == b"abc"
