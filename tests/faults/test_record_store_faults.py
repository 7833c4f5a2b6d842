"""The record store fails at each call of each verb: afterwards all of it is visible, or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stages import Stage, chosen
from tests.support.verb_cases import CASES, Case
from tests.support.verdicts import Reference, attempt, judge, reference, sweep_calls

FAULTS: dict[str, dict[str, Any]] = {
    "refused": {"when": "before"},
    "answer lost": {"when": "after"},
    "answer lost in the driver's way": {"when": "after", "error": ConnectionResetError("gone")},
    "down from then on": {"when": "before", "and_later": True},
    "down after a last effect": {"when": "after", "and_later": True},
}


@pytest.mark.parametrize("case", CASES, ids=repr)
async def test_a_failing_record_store_leaves_all_or_nothing(stage: Stage, case: Case) -> None:
    expected = await reference(stage, case)
    for fault in chosen(FAULTS, f"{stage.kind} {case}", stage.share):
        await _play_all(stage, case, expected, FAULTS[fault])


async def _play_all(stage: Stage, case: Case, expected: Reference, options: dict[str, Any]) -> None:
    async def play(number: int) -> bool:
        trial = await stage.trial(case)
        ws, double = trial.faulty(case.options, fail_on_call=number, **options)
        outcome = await attempt(case.call(ws, trial.namespace))
        failed = bool(double.failed)
        await judge(trial, case, expected, outcome)
        again = ws if failed and not options.get("and_later") else trial.workspace()
        next_file = await again.write("/workspace/next.md", "n", namespace=trial.namespace)
        assert next_file.version == 1
        return failed

    assert await sweep_calls(play) >= expected.record_calls
