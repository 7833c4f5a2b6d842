"""Blocking code has every method that asynchronous code has, with the same parameters."""

from __future__ import annotations

import inspect
from types import FunctionType

import pytest

from crux_workspace import (
    SyncTransaction,
    SyncView,
    SyncWorkspace,
    Transaction,
    Workspace,
    WorkspaceView,
)
from tests.architecture.public_surface import members

PAIRS = {
    "Workspace": (Workspace, SyncWorkspace),
    "WorkspaceView": (WorkspaceView, SyncView),
    "Transaction": (Transaction, SyncTransaction),
}
RENAMED = {"aclose": "close"}
MEANINGLESS = {"as_sync"}


def attributes(kind: type) -> dict[str, object]:
    return {
        RENAMED.get(name, name): value for name, value in members(kind) if name not in MEANINGLESS
    }


def parameters(call: object) -> list[inspect.Parameter]:
    # What a transaction hands to its callback is of the same form as the transaction.
    found = list(inspect.signature(call).parameters.values())[1:]  # type: ignore[arg-type]
    return [p.replace(annotation=None) if p.name == "callback" else p for p in found]


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
    assert parameters(blocks[name]) == parameters(waits[name])
    assert (inspect.getdoc(blocks[name]) or "").splitlines()
