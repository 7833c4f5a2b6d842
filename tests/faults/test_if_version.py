"""Preconditions hold at the commit, not when they were looked at; numbers that come back fool nobody."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from crux_workspace import Workspace, WorkspaceFile
from crux_workspace.errors import (
    ConflictError,
    LimitExceededError,
    PathNotFoundError,
    WorkspaceError,
)
from crux_workspace.model.settings import Limits
from tests.support.interferers import INTERFERERS
from tests.support.slow_stores import Gaps, TurningRecordStore
from tests.support.stages import Stage, open_stage
from tests.support.verb_cases import make

A = "/workspace/a.md"
Expected = int | WorkspaceFile
Guarded = Callable[[Workspace, Expected], Awaitable[Any]]

GUARDED: dict[str, Guarded] = {
    "write": lambda ws, v: ws.write(A, "mine", if_version=v),
    "edit": lambda ws, v: ws.edit(A, "one", "mine", if_version=v),
    "append": lambda ws, v: ws.append(A, "mine", if_version=v),
    "update": lambda ws, v: ws.update(A, lambda _: "mine", if_version=v),
    "set": lambda ws, v: ws.set(A, metadata={"mine": 1}, if_version=v),
    "rename": lambda ws, v: ws.rename(A, "/outputs/mine", if_version=v),
    "copy": lambda ws, v: ws.copy("/workspace/u.md", A, overwrite=True, if_version=v),
    "delete": lambda ws, v: ws.delete(A, if_version=v),
    "purge": lambda ws, v: ws.delete(A, purge=True, if_version=v),
    "undo": lambda ws, v: ws.undo(A, if_version=v),
    "finalize": lambda ws, v: ws.finalize(A, if_version=v),
}
CHANGES = ("writes", "deletes", "deletes and writes", "renames away", "renames over", "swaps")
SAME_FILE_AND_VERSION = ("sets", "finalizes", "renames away and back")


@pytest.mark.parametrize(
    "interferer", [*CHANGES, *SAME_FILE_AND_VERSION, "purges and writes to the same number"]
)
@pytest.mark.parametrize("verb", GUARDED)
async def test_a_file_expected_by_identity_is_still_that_file_at_the_commit(
    verb: str, interferer: str, tmp_path: Path
) -> None:
    codes: set[str] = set()
    async with open_stage("memory", tmp_path) as stage:
        for gap in range(1, 30):
            trial = await stage.trial()
            plain = trial.workspace().for_namespace(trial.namespace)
            expected = await plain.stat(A)
            assert expected is not None

            async def interfere(ws: Workspace = plain) -> None:
                with contextlib.suppress(WorkspaceError):  # it came too late
                    await INTERFERERS[interferer](ws)

            gaps = Gaps(gap, interfere)
            store = TurningRecordStore(stage.bare, gaps)
            ws = make(store, trial.assets, trial.clock).for_namespace(trial.namespace)
            try:
                await GUARDED[verb](ws, expected)
                refused = False
            except (ConflictError, PathNotFoundError) as error:
                codes.add(str(error.code))
                refused = True
            if gaps.count < gap:
                break
            log = [entry.verb for entry in await plain.log(limit=100)]
            mine = log.index(_verb_of(verb)) if not refused else None
            if interferer in SAME_FILE_AND_VERSION:
                assert not refused, f"gap {gap}"
            elif not refused:
                assert mine is not None
                await _came_first(plain, verb, expected)
            await trial.check()
    # update reads the file first, and says so when there is none.
    assert codes <= {"VERSION_CONFLICT", "FILE_NOT_FOUND" if verb == "update" else ""}


def _verb_of(verb: str) -> str:
    return "delete" if verb == "purge" else verb


async def _came_first(ws: Workspace, verb: str, expected: WorkspaceFile) -> None:
    """The call was not refused, so its commit lies before the other's: it changed the expected version of the expected file."""
    log = await ws.log(limit=100)
    commits = [e for e in log if e.verb == _verb_of(verb) and e.sequence > 18]
    touched = [c for e in commits for c in e.changes if c.file_id == expected.id]
    assert any(c.previous_version == expected.version for c in touched)


@pytest.mark.parametrize("verb", GUARDED)
async def test_another_file_with_the_same_number_conflicts(stage: Stage, verb: str) -> None:
    trial = await stage.trial()
    ws = trial.workspace().for_namespace(trial.namespace)
    expected = await ws.stat(A)
    assert expected is not None
    await INTERFERERS["purges and writes to the same number"](ws)
    now = await ws.stat(A)
    assert now is not None
    assert now.version == expected.version
    before = await trial.dump()
    with pytest.raises(ConflictError):
        await GUARDED[verb](ws, expected)
    assert await trial.dump() == before


@pytest.mark.parametrize("verb", GUARDED)
async def test_a_file_that_was_away_is_still_the_file(stage: Stage, verb: str) -> None:
    trial = await stage.trial()
    ws = trial.workspace().for_namespace(trial.namespace)
    expected = await ws.stat(A)
    assert expected is not None
    await INTERFERERS["renames away and back"](ws)
    await GUARDED[verb](ws, expected)
    await trial.check()


async def test_a_conflict_names_who_came_between(stage: Stage) -> None:
    trial = await stage.trial()
    ws = trial.workspace().for_namespace(trial.namespace)
    await ws.acting_as("somebody").append(A, "x")
    with pytest.raises(ConflictError) as caught:
        await ws.edit(A, "one", "two", if_version=2)
    assert caught.value.details == {
        "path": A,
        "base_version": 2,
        "current_version": 3,
        "last_operation": "append",
        "last_actor": "somebody",
    }


async def test_a_quota_is_kept_though_somebody_else_fills_it_between_plan_and_commit() -> None:
    async with open_stage("memory", Path()) as stage:
        for gap in range(1, 12):
            trial = stage.empty_trial()
            limits = {"limits": Limits(max_namespace_bytes=10, max_files=2)}
            other = trial.workspace(**limits).for_namespace(trial.namespace)
            await other.write("/workspace/first", "12345")

            async def fill(ws: Workspace = other) -> None:
                await ws.write("/workspace/other", "123")

            gaps = Gaps(gap, fill)
            store = TurningRecordStore(stage.bare, gaps)
            ws = make(store, trial.assets, trial.clock, **limits).for_namespace(trial.namespace)
            try:
                await ws.write("/workspace/mine", "1234")
                refused = False
            except LimitExceededError:
                refused = True
            usage = await other.usage()
            assert usage.live_bytes <= 10
            assert usage.live_files <= 2
            assert refused or gaps.count < gap or usage.live_bytes == 9
            await trial.check()
