"""if_version: numbers, files, and the file that went away and came back."""

from __future__ import annotations

from typing import Any

import pytest

from crux_workspace import Workspace
from crux_workspace.errors import ConflictError, ErrorCode
from crux_workspace.testing.workspace import refused

A, B = "/workspace/a", "/workspace/b"


async def test_zero_means_must_not_exist(ws: Workspace) -> None:
    await ws.write(A, "one", if_version=0)
    with refused(ErrorCode.VERSION_CONFLICT, ConflictError):
        await ws.write(A, "two", if_version=0)
    await ws.delete(A)
    assert (await ws.write(A, "three", if_version=0)).version == 3


async def test_a_number_means_the_head_must_be_that_version(ws: Workspace) -> None:
    await ws.write(A, "one")
    await ws.write(A, "two", if_version=1)
    with refused(ErrorCode.VERSION_CONFLICT) as caught:
        await ws.write(A, "late", if_version=1)
    details = caught.value.details
    assert (details["path"], details["base_version"], details["current_version"]) == (A, 1, 2)
    assert details["last_operation"] == "write"
    assert "last_actor" in details
    assert caught.value.retryable
    assert caught.value.hint == "Read it again and decide again."


async def test_a_missing_file_conflicts_with_any_version(ws: Workspace) -> None:
    with refused(ErrorCode.VERSION_CONFLICT):
        await ws.write(A, "", if_version=1)


async def test_a_conflict_changes_nothing_on_any_verb(ws: Workspace) -> None:
    await ws.write(A, "one")
    await ws.write(A, "two")
    calls: list[Any] = [
        lambda: ws.write(A, "x", if_version=1),
        lambda: ws.edit(A, "two", "x", if_version=1),
        lambda: ws.append(A, "x", if_version=1),
        lambda: ws.set(A, metadata={}, if_version=1),
        lambda: ws.rename(A, B, if_version=1),
        lambda: ws.move(A, B, if_version=1),
        lambda: ws.copy(A, B, if_version=1),
        lambda: ws.delete(A, if_version=1),
        lambda: ws.undo(A, if_version=1),
        lambda: ws.redo(A, if_version=1),
        lambda: ws.finalize(A, if_version=1),
        lambda: ws.withdraw(A, if_version=1),
    ]
    for call in calls:
        with refused(ErrorCode.VERSION_CONFLICT):
            await call()
    assert len(await ws.log()) == 2
    assert await ws.read_text(A) == "two"


async def test_every_verb_goes_through_at_the_current_version(ws: Workspace) -> None:
    await ws.write(A, "one", if_version=0)
    await ws.edit(A, "one", "two", if_version=1)
    await ws.append(A, "x", if_version=2)
    await ws.undo(A, if_version=3)
    await ws.redo(A, if_version=4)
    await ws.set(A, metadata={}, if_version=5)
    await ws.finalize(A, if_version=5)
    await ws.withdraw(A, if_version=5)
    await ws.rename(A, B, if_version=5)
    await ws.move(B, A, if_version=5)
    await ws.copy(A, B, if_version=0)
    await ws.delete(A, if_version=5)


async def test_a_file_means_that_very_file_and_version(ws: Workspace) -> None:
    mine = await ws.write(A, "mine")
    assert (await ws.write(A, "again", if_version=mine)).version == 2
    with refused(ErrorCode.VERSION_CONFLICT):
        await ws.write(A, "late", if_version=mine)


async def test_another_file_at_the_path_conflicts_even_at_the_same_number(ws: Workspace) -> None:
    mine = await ws.write(A, "mine")
    await ws.rename(A, B)
    await ws.write(A, "other")
    for call in (
        lambda: ws.write(A, "x", if_version=mine),
        lambda: ws.edit(A, "other", "x", if_version=mine),
        lambda: ws.delete(A, if_version=mine),
    ):
        with refused(ErrorCode.VERSION_CONFLICT):
            await call()
    await ws.write(A, "by number", if_version=1)


async def test_the_same_file_renamed_away_and_back_does_not_conflict(ws: Workspace) -> None:
    mine = await ws.write(A, "mine")
    await ws.rename(A, B)
    await ws.rename(B, A)
    assert (await ws.write(A, "again", if_version=mine)).version == 2


async def test_a_file_replaced_by_purge_and_rewrite_conflicts(ws: Workspace) -> None:
    mine = await ws.write(A, "mine")
    await ws.delete(A, purge=True)
    await ws.write(A, "other")
    with refused(ErrorCode.VERSION_CONFLICT):
        await ws.write(A, "x", if_version=mine)


async def test_a_namespace_that_was_dropped_and_made_again_conflicts(ws: Workspace) -> None:
    mine = await ws.write(A, "mine")
    await ws.drop_namespace("n")
    await ws.write(A, "other")
    with refused(ErrorCode.VERSION_CONFLICT):
        await ws.write(A, "x", if_version=mine)


async def test_an_attribute_change_is_no_new_version(ws: Workspace) -> None:
    file = await ws.write(A, "one")
    await ws.set(A, metadata={"m": 1})
    await ws.finalize(A)
    assert (await ws.write(A, "two", if_version=file)).version == 2


@pytest.mark.parametrize("value", [-1, True, "1", 1.0])
async def test_nonsense_is_refused(ws: Workspace, value: Any) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT):
        await ws.write(A, "", if_version=value)
