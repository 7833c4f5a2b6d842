"""A transaction is cancelled at each of its steps: it is wholly there or absent, and nothing is left open."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from crux_workspace import Transaction, Workspace
from crux_workspace.errors import ErrorCode, StateError
from tests.support.dumps import visible
from tests.support.slow_stores import TurningAssetStore, TurningRecordStore
from tests.support.stages import EVERYTHING, Stage, Trial, open_stage
from tests.support.transaction_cases import TRANSACTIONS
from tests.support.verb_cases import Case, make
from tests.support.verdicts import Reference, judge_settled, reference

ROUNDS = 100
"""At least so many cancellations a case."""


async def cancelled_after(steps: int, task: asyncio.Task[object], *, twice: bool) -> bool:
    """Cancel after some turns of the loop; tell whether it had ended before."""
    for _ in range(steps):
        await asyncio.sleep(0)
    finished = task.done()
    task.cancel()
    if twice:
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.wait([task])
    return finished


async def judge(trial: Trial, case: Case, expected: Reference, ws: Workspace, step: int) -> None:
    await ws.aclose()
    assert not ws._core.in_flight.tasks
    for _ in range(20):  # iterators that were left in the middle are closed by the loop
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert await trial.dump() in (expected.before, expected.after)
    if step % 4 == 0:
        await judge_settled(trial, case, expected, may_be_undone=True)
    next_file = await trial.workspace().write("/workspace/next.md", "n", namespace=trial.namespace)
    assert next_file.version == 1


@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize("case", TRANSACTIONS, ids=repr)
async def test_a_cancelled_transaction_is_wholly_there_or_absent(case: Case, twice: bool) -> None:
    async with open_stage("memory", Path()) as stage:
        expected = await reference(stage, case)
        step, finished = 0, False
        while not finished:
            trial, ws = await _on_slow_stores(stage, case)
            task = asyncio.ensure_future(case.call(ws, trial.namespace))
            finished = await cancelled_after(step, task, twice=twice)
            await judge(trial, case, expected, ws, step)
            step += 1 if EVERYTHING or step < 20 else 3
        assert step > 12
    gc.collect()


async def _on_slow_stores(stage: Stage, case: Case) -> tuple[Trial, Workspace]:
    trial = await stage.trial(case)
    records, assets = TurningRecordStore(stage.bare), TurningAssetStore(trial.assets)
    return trial, make(records, assets, trial.clock, **case.options)


async def test_a_cancelled_rollback_leaves_nothing_that_gc_does_not_find() -> None:
    case = TRANSACTIONS[0]

    async def fail(ws: Workspace, namespace: str, opened: list[Transaction]) -> None:
        async with ws.transaction(namespace=namespace) as tx:
            opened.append(tx)
            for number in range(3):
                await tx.write(f"/workspace/{number}.bin", bytes(300))
            raise ZeroDivisionError

    async with open_stage("memory", Path()) as stage:
        expected = await reference(stage, case)
        step, finished, rolled = 0, False, 0
        while not finished:
            trial, ws = await _on_slow_stores(stage, case)
            opened: list[Transaction] = []
            task = asyncio.ensure_future(fail(ws, trial.namespace, opened))
            finished = await cancelled_after(step, task, twice=False)
            rolled += not task.cancelled()
            for tx in opened:
                with pytest.raises(StateError) as caught:
                    await tx.stat("/workspace/0.bin")
                assert caught.value.code == ErrorCode.TRANSACTION_CLOSED
            await ws.aclose()
            await asyncio.sleep(
                0
            )  # for the finalisers of generators that the stage has left behind
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert await trial.dump() == expected.before
            settled = visible(await trial.settle(case))
            assert settled == visible(expected.settled_before)
            step += 1
        assert rolled


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("redis", marks=pytest.mark.redis)])
async def test_a_hundred_cancellations_leave_no_thread_and_no_connection(
    kind: str, tmp_path: Path
) -> None:
    case = TRANSACTIONS[1]
    async with open_stage(kind, tmp_path) as stage:
        expected = await reference(stage, case)
        threads = None
        trial = await stage.trial(case)
        for number in range(ROUNDS):
            ws = make(stage.bare, trial.assets, trial.clock, **case.options)
            task = asyncio.ensure_future(case.call(ws, trial.namespace))
            await cancelled_after(number * number // 40, task, twice=number % 2 == 0)
            await ws.aclose()
            if await trial.dump() != expected.before:
                trial = await stage.trial(case)
            if number == 5:
                threads = threading.active_count()
        assert threads is not None
        assert threading.active_count() <= threads
        assert asyncio.all_tasks() == {asyncio.current_task()}
    gc.collect()


_LEAVING = """
import asyncio, sys
from crux_workspace import open_workspace
async def main():
    ws = await open_workspace(sys.argv[1])
    async def work():
        async with ws.transaction() as tx:
            await tx.write("/workspace/a", b"x" * 200_000)
            entered.set()
            await asyncio.sleep(3600)
    entered = asyncio.Event()
    task = asyncio.create_task(work())
    await entered.wait()
    how = sys.argv[2]
    if how == "cancelled":
        task.cancel()
        await asyncio.wait([task])
        await ws.aclose()
    elif how == "closed":
        await ws.aclose()
    elif how == "raised":
        raise SystemExit(0)
asyncio.run(main())
"""


@pytest.mark.parametrize("how", ["cancelled", "closed", "raised", "forgotten"])
def test_a_process_with_an_open_transaction_ends(tmp_path: Path, how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LEAVING, f"sqlite:///{tmp_path}/work.db", how],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
