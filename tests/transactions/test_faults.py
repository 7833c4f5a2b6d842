"""A store fails at each call of a transaction: all or nothing, nothing poisoned, nothing left over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crux_workspace import Workspace
from crux_workspace.errors import StorageError
from tests.support.stages import KINDS, Stage, chosen, open_stage
from tests.support.transaction_cases import TRANSACTIONS
from tests.support.verb_cases import Case
from tests.support.verdicts import Reference, attempt, judge, reference, sweep_calls

FAULTS: dict[str, dict[str, Any]] = {
    "refused": {"when": "before"},
    "answer lost": {"when": "after"},
    "answer lost in the driver's way": {"when": "after", "error": ConnectionResetError("gone")},
    "down from then on": {"when": "before", "and_later": True},
    "down after a last effect": {"when": "after", "and_later": True},
}


@pytest.fixture(params=KINDS)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with open_stage(request.param, tmp_path, request) as opened:
        yield opened


@pytest.mark.parametrize("case", TRANSACTIONS, ids=repr)
async def test_a_failing_record_store_leaves_all_or_nothing(stage: Stage, case: Case) -> None:
    expected = await reference(stage, case)
    for fault in chosen(FAULTS, f"{stage.kind} {case}", stage.share):
        calls = await sweep_calls(partial(_play, stage, case, expected, FAULTS[fault]))
        assert calls >= expected.record_calls


@pytest.mark.parametrize("case", TRANSACTIONS, ids=repr)
async def test_a_failing_asset_store_leaves_all_or_nothing(stage: Stage, case: Case) -> None:
    expected = await reference(stage, case)
    assert expected.asset_calls
    for fault in chosen(FAULTS, f"{stage.kind} {case} assets", stage.share):
        options = {**FAULTS[fault], "assets": True}
        calls = await sweep_calls(partial(_play, stage, case, expected, options))
        assert calls >= 1


async def _play(
    stage: Stage, case: Case, expected: Reference, fault: dict[str, Any], number: int
) -> bool:
    trial = await stage.trial(case)
    options = {name: value for name, value in fault.items() if name != "assets"}
    breaks = trial.faulty_assets if fault.get("assets") else trial.faulty
    ws, double = breaks(case.options, fail_on_call=number, **options)
    outcome = await attempt(case.call(ws, trial.namespace))
    failed = bool(double.failed)
    if failed and isinstance(outcome, BaseException):
        assert isinstance(outcome, StorageError), repr(outcome)
    await judge(trial, case, expected, outcome)
    again = ws if failed and not options.get("and_later") else trial.workspace()
    next_file = await again.write("/workspace/next.md", "n", namespace=trial.namespace)
    assert next_file.version == 1
    return failed


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_repeated_key_finds_out_whether_a_lost_commit_landed(
    stage: Stage, when: str
) -> None:
    for number in range(1, 12):
        trial = await stage.trial()
        ws, double = trial.faulty({}, fail_on_call=number, when=when, and_later=True)
        first = await attempt(_append_once(ws, trial.namespace))
        await _append_once(trial.workspace(), trial.namespace)
        text = await trial.workspace().read_text("/workspace/n.txt", namespace=trial.namespace)
        assert text == "x"
        await trial.check()
        if not double.failed:
            assert not isinstance(first, BaseException)
            return
    pytest.fail("the sweep does not end")


async def _append_once(ws: Workspace, namespace: str) -> Any:
    return await ws.transaction(
        lambda tx: tx.append("/workspace/n.txt", "x"), idempotency_key="k", namespace=namespace
    )
