"""Blocking code has every method that asynchronous code has, with the same parameters."""

from __future__ import annotations

import inspect
from types import FunctionType

import pytest

from crux_workspace import SyncView, SyncWorkspace, Workspace, WorkspaceView
from tests.architecture.public_surface import members

PAIRS = {"Workspace": (Workspace, SyncWorkspace), "WorkspaceView": (WorkspaceView, SyncView)}
RENAMED = {"aclose": "close"}
MEANINGLESS = {"as_sync"}


def attributes(kind: type) -> dict[str, object]:
    return {
        RENAMED.get(name, name): value for name, value in members(kind) if name not in MEANINGLESS
    }


@pytest.mark.parametrize("pair", PAIRS)
def test_every_name_is_there(pair: str) -> None:
    waits, blocks = PAIRS[pair]
    assert set(attributes(blocks)) == set(attributes(waits))


@pytest.mark.parametrize(
    ("pair", "name"),
    [
        (pair, name)
        for pair, (waits, _) in PAIRS.items()
        for name, value in attributes(waits).items()
        if isinstance(value, FunctionType)
    ],
)
def test_parameters_are_the_same(pair: str, name: str) -> None:
    waits, blocks = (attributes(kind) for kind in PAIRS[pair])
    of_waiting = inspect.signature(waits[name]).parameters  # type: ignore[arg-type]
    of_blocking = inspect.signature(blocks[name]).parameters  # type: ignore[arg-type]
    assert list(of_blocking.values())[1:] == list(of_waiting.values())[1:]
    assert (inspect.getdoc(blocks[name]) or "").splitlines()
