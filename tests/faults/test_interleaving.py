"""Somebody else changes the namespace between two store calls of a verb: the outcome is that of some serial order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crux_workspace import Workspace
from crux_workspace.errors import WorkspaceError
from tests.support.dumps import Names, plain
from tests.support.interferers import INTERFERERS
from tests.support.slow_stores import Gaps, TurningRecordStore
from tests.support.stages import Stage, Trial, chosen, open_stage
from tests.support.verb_cases import CASES, Case, make

_SHARES = {"memory": 0.25, "guessing": 0.05}


@dataclass
class Outcome:
    """What the verb gave, and what everything looks like."""

    result: Any
    state: dict[str, Any]


async def attempt(call: Any) -> Any:
    try:
        return plain(await call, Names())
    except WorkspaceError as error:
        return str(error.code)


async def serial(stage: Stage, case: Case, interferer: str, *, verb_first: bool) -> Outcome:
    trial = await stage.trial(case)
    ws = make(stage.bare, trial.assets, trial.clock, **case.options)
    result = await attempt(case.call(ws, trial.namespace)) if verb_first else None
    await attempt(INTERFERERS[interferer](somebody_else(trial)))
    if not verb_first:
        result = await attempt(case.call(ws, trial.namespace))
    return Outcome(result, await trial.dump())


async def interleaved(trial: Trial, case: Case, interferer: str, gap: int) -> tuple[bool, Outcome]:
    """Interfere in a gap between two store calls, or, in gap 0, right before the verb, whose store knows only what was before."""
    other = somebody_else(trial)

    async def interfere() -> None:
        await attempt(INTERFERERS[interferer](other))

    if gap == 0:
        await interfere()
    gaps = Gaps(gap, interfere)
    store = trial.stage.dress(TurningRecordStore(trial.stage.bare, gaps))
    ws = make(store, trial.assets, trial.clock, **case.options)
    result = await attempt(case.call(ws, trial.namespace))
    return gaps.count >= gap, Outcome(result, await trial.dump())


def somebody_else(trial: Trial) -> Workspace:
    """Return the namespace as another process has it: nothing that it does is known before it is read."""
    ws = make(trial.stage.bare, trial.assets, trial.clock)
    return ws.for_namespace(trial.namespace)


@pytest.mark.parametrize("kind", _SHARES)
@pytest.mark.parametrize("case", [case for case in CASES if not case.steps], ids=repr)
async def test_an_interrupted_verb_ends_as_in_some_serial_order(case: Case, kind: str) -> None:
    async with open_stage(kind, Path()) as stage:
        for interferer in chosen(INTERFERERS, f"interfering with {case}", _SHARES[kind]):
            orders = [
                await serial(stage, case, interferer, verb_first=first) for first in (True, False)
            ]
            gap, reached = -1, True
            while reached:
                gap += 1
                trial = await stage.trial(case)
                reached, outcome = await interleaved(trial, case, interferer, gap)
                allowed = orders if gap else orders[1:]
                assert not reached or outcome in allowed, f"{interferer} in gap {gap}"
