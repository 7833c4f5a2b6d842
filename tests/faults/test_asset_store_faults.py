"""The asset store fails at each call of each verb: no reference without its asset, no asset left that nothing refers to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crux_workspace.errors import ErrorCode, StorageError
from tests.support.stages import Stage, chosen, open_stage
from tests.support.verb_cases import CASES, Case
from tests.support.verdicts import (
    Reference,
    attempt,
    judge,
    judge_settled,
    reference,
    sweep_calls,
)

FAULTS: dict[str, dict[str, Any]] = {
    "refused": {"when": "before"},
    "answer lost": {"when": "after"},
    "down from then on": {"when": "before", "and_later": True},
}


# These call the asset store; a test holds the list.
WITH_ASSETS = [case for case in CASES if case.assets]


@pytest.mark.parametrize("case", WITH_ASSETS, ids=repr)
async def test_a_failing_asset_store_leaves_all_or_nothing(stage: Stage, case: Case) -> None:
    expected = await reference(stage, case)
    assert expected.asset_calls
    for fault in chosen(FAULTS, f"{stage.kind} {case}", stage.share):
        await _play_all(stage, case, expected, FAULTS[fault])


async def _play_all(stage: Stage, case: Case, expected: Reference, options: dict[str, Any]) -> None:
    async def play(number: int) -> bool:
        trial = await stage.trial(case)
        ws, double = trial.faulty_assets(case.options, fail_on_call=number, **options)
        outcome = await attempt(case.call(ws, trial.namespace))
        await judge(trial, case, expected, outcome)
        return bool(double.failed)

    assert await sweep_calls(play) >= expected.asset_calls


@pytest.mark.parametrize("case", [case for case in WITH_ASSETS if not case.steps], ids=repr)
async def test_an_upload_of_a_refused_commit_goes_though_deleting_it_fails_at_first(
    stage: Stage, case: Case
) -> None:
    expected = await reference(stage, case)
    number = expected.record_calls
    trial = await stage.trial(case)
    ws, records = trial.faulty(case.options, fail_on_call=number, and_later=True)
    down, _ = trial.faulty_assets(case.options, fail_on_call=expected.asset_calls + 1)
    ws._core.assets = down._core.assets
    outcome = await attempt(case.call(ws, trial.namespace))
    assert records.failed
    assert isinstance(outcome, StorageError)
    await trial.check()
    await judge_settled(trial, case, expected, may_be_undone=True)


async def test_the_cases_that_call_the_asset_store_are_known() -> None:
    async with open_stage("memory", Path()) as stage:
        calling = [case.name for case in CASES if (await reference(stage, case)).asset_calls]
    assert calling == [case.name for case in WITH_ASSETS]


async def test_an_asset_that_is_gone_is_said_to_be_missing(stage: Stage) -> None:
    trial = await stage.trial()
    ws, to = trial.workspace(), trial.namespace
    file = await ws.stat("/workspace/b.bin", namespace=to)
    assert file is not None
    for ref in await trial.stored():
        await trial.assets.delete(ref)
    for read in (
        ws.read_bytes("/workspace/b.bin", namespace=to),
        ws.read_text("/workspace/large.txt", namespace=to),
    ):
        with pytest.raises(StorageError) as caught:
            await read
        assert caught.value.code == ErrorCode.ASSET_MISSING
