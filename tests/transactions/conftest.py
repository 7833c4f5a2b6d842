"""Workspaces that keep little inline and collect at once; after each test the namespace is sound and nothing is left over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from crux_workspace import ContentOptions, Retention, Transaction, Workspace, workspace
from crux_workspace.storage import Storage
from crux_workspace.storage import storage as bundle
from crux_workspace.testing import CommitOnlyRecordStore, FixedClock
from tests.support.transactions import check_settled

MakeWorkspace = Callable[..., Workspace]
Steps = Callable[[Transaction], Awaitable[Any]]
Act = Callable[[Workspace], Awaitable[Any]]


@pytest.fixture
async def make_ws(storage: Storage, clock: FixedClock) -> AsyncIterator[MakeWorkspace]:
    """Makes workspaces over the one storage; at the end the records are sound and only referenced assets are left."""
    made: list[Workspace] = []

    def make(**options: Any) -> Workspace:
        chosen = {
            "id": "w",
            "namespace": "n",
            "storage": storage,
            "clock": clock,
            "content": ContentOptions(inline_text_below_bytes=100),
            "retention": Retention(asset_grace_ms=0),
            **options,
        }
        made.append(workspace(**chosen))
        return made[-1]

    yield make
    await check_settled(make(), storage, clock)
    for ws in made:
        await ws.aclose()


@pytest.fixture
def other(make_ws: MakeWorkspace) -> Workspace:
    """Somebody else on the same namespace."""
    return make_ws().acting_as("somebody else")


@pytest.fixture(params=["as it is", "between plan and commit"])
def interfere(request: pytest.FixtureRequest, make_ws: Any, storage: Storage) -> Any:
    """Runs a transaction into which somebody commits: before its end, or between its plan and its commit."""
    weak = CommitOnlyRecordStore(storage.records)
    is_late = request.param == "between plan and commit"
    ws = make_ws(storage=bundle(records=weak, assets=storage.assets)) if is_late else make_ws()

    async def run(steps: Steps, act: Act) -> Transaction:
        other = make_ws().acting_as("somebody else")
        acted = False

        async def once() -> None:
            nonlocal acted
            if not acted:
                acted = True
                await act(other)

        async with ws.transaction() as tx:
            await steps(tx)
            if is_late:
                weak.between = once
            else:
                await once()
        return tx  # type: ignore[no-any-return]

    return run
