"""Was a call that something went wrong with all or nothing?"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from crux_workspace.errors import ErrorCode, StorageError
from tests.support.dumps import Names, plain, visible
from tests.support.stages import Stage, Trial
from tests.support.verb_cases import Case

__all__ = ["Reference", "attempt", "judge", "judge_settled", "reference", "sweep_calls"]

_STORE_ERRORS = {ErrorCode.STORE_UNAVAILABLE, ErrorCode.STORE_TIMEOUT}


@dataclass
class Reference:
    """How the namespace looks before a call and after it, and what the call returns, when nothing goes wrong."""

    before: dict[str, Any]
    after: dict[str, Any]
    settled_before: dict[str, Any]
    settled_after: dict[str, Any]
    result: Any
    record_calls: int
    asset_calls: int


async def reference(stage: Stage, case: Case) -> Reference:
    """Make the call without faults."""
    untouched = await stage.trial(case)
    before = await untouched.dump()
    settled_before = await untouched.settle(case)
    trial = await stage.trial(case)
    ws, records, assets = trial.counted(case.options)
    result = plain(await case.call(ws, trial.namespace), Names())
    after = await trial.dump()
    settled_after = await trial.settle(case)
    calls = len(records.calls), len(assets.calls)
    return Reference(before, after, settled_before, settled_after, result, *calls)


async def attempt(call: Awaitable[Any]) -> Any:
    """Return what a call returns or raises."""
    try:
        return plain(await call, Names())
    except Exception as error:
        return error


async def judge(trial: Trial, case: Case, expected: Reference, outcome: Any) -> None:
    """Hold the namespace to the outcome: the error says whether it may be applied, a result that it is, once."""
    found = await trial.dump()
    failed = isinstance(outcome, BaseException)
    if isinstance(outcome, BaseException):
        _check_error(outcome)
        allowed = [expected.before]
        if isinstance(outcome, StorageError) and outcome.code == ErrorCode.STORE_TIMEOUT:
            allowed.append(expected.after)
        assert case.steps or found in allowed
    else:
        assert outcome == expected.result
        assert found == expected.after
    await judge_settled(trial, case, expected, may_be_undone=failed)


def _check_error(error: BaseException) -> None:
    assert isinstance(error, StorageError), repr(error)
    assert error.code in _STORE_ERRORS
    assert error.__cause__ is not None
    assert error.retryable


async def judge_settled(
    trial: Trial, case: Case, expected: Reference, *, may_be_undone: bool
) -> None:
    """Hold the namespace, and its assets, to what it must be once gc has run."""
    settled = visible(await trial.settle(case))
    wanted = [visible(expected.settled_after)]
    if may_be_undone:
        wanted.append(visible(expected.settled_before))
    assert settled in wanted


Sweep = Callable[[int], Awaitable[bool]]


async def sweep_calls(play: Sweep, *, at_most: int = 200) -> int:
    """Play with the first, second, … call failing until no call is left to fail; returns how many there were."""
    for number in range(1, at_most):
        if not await play(number):
            return number - 1
    raise AssertionError("the sweep does not end")
