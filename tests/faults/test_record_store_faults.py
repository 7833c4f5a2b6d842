"""The record store fails at each call of each verb: afterwards all of it is visible, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from crux_workspace.errors import ErrorCode, StorageError
from tests.support.dumps import Names, plain
from tests.support.stages import EVERYTHING, Stage, Trial
from tests.support.verb_cases import CASES, Case

_STORE_ERRORS = {ErrorCode.STORE_UNAVAILABLE, ErrorCode.STORE_TIMEOUT}

FAULTS: dict[str, dict[str, Any]] = {
    "refused": {"when": "before"},
    "answer lost": {"when": "after"},
    "answer lost in the driver's way": {"when": "after", "error": ConnectionResetError("gone")},
    "down from then on": {"when": "before", "and_later": True},
    "down after a last effect": {"when": "after", "and_later": True},
}
if EVERYTHING:
    FAULTS["timed out"] = {"when": "after", "error": TimeoutError()}
    FAULTS["timed out from then on"] = {"when": "after", "error": TimeoutError(), "and_later": True}


@dataclass
class Reference:
    """How the namespace looks before the call and after it, and what the call returns."""

    before: dict[str, Any]
    after: dict[str, Any]
    settled_before: dict[str, Any]
    settled_after: dict[str, Any]
    result: Any
    calls: int


async def reference(stage: Stage, case: Case) -> Reference:
    untouched = await stage.trial(case)
    before = await untouched.dump()
    settled_before = await untouched.settle(case)
    trial = await stage.trial(case)
    ws, double = trial.faulty(case.options)
    result = plain(await case.call(ws, trial.namespace), Names())
    after = await trial.dump()
    return Reference(
        before, after, settled_before, await trial.settle(case), result, len(double.calls)
    )


async def judge(trial: Trial, case: Case, expected: Reference, outcome: Any) -> None:
    found = await trial.dump()
    if isinstance(outcome, BaseException):
        assert isinstance(outcome, StorageError)
        assert outcome.code in _STORE_ERRORS
        assert outcome.__cause__ is not None
        allowed = [expected.before]
        if outcome.code == ErrorCode.STORE_TIMEOUT:
            allowed.append(expected.after)
        assert case.steps or found in allowed
    else:
        assert outcome == expected.result
        assert found == expected.after
    settled = await trial.settle(case)
    if case.steps:
        wanted = [_seen(expected.settled_before), _seen(expected.settled_after)]
        assert _seen(settled) in wanted
    elif not isinstance(outcome, BaseException):
        assert settled == expected.settled_after


def _seen(dumped: dict[str, Any]) -> dict[str, Any]:
    from tests.support.dumps import visible

    return visible(dumped)


async def attempt(call: Any) -> Any:
    try:
        return plain(await call, Names())
    except Exception as error:
        return error


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("case", CASES, ids=repr)
async def test_a_failing_store_leaves_all_or_nothing(stage: Stage, case: Case, fault: str) -> None:
    expected = await reference(stage, case)
    options = FAULTS[fault]
    number, failed = 0, 1
    while failed and number < 200:
        number += 1
        trial = await stage.trial(case)
        ws, double = trial.faulty(case.options, fail_on_call=number, **options)
        outcome = await attempt(case.call(ws, trial.namespace))
        failed = double.failed
        await judge(trial, case, expected, outcome)
        again = ws if failed and not options.get("and_later") else trial.workspace()
        assert (
            await again.write("/workspace/next.md", "n", namespace=trial.namespace)
        ).version == 1
    assert number > expected.calls
