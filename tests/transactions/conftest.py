"""Workspaces that keep little inline and collect at once; after each test the namespace is sound and nothing is left over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from crux_workspace import ContentOptions, Retention, Workspace, workspace
from crux_workspace.storage import Storage
from crux_workspace.testing import FixedClock
from tests.support.transactions import check_settled

MakeWorkspace = Callable[..., Workspace]


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
