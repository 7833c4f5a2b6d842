"""Workspaces whose texts stay in the record store, and what is below them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from crux_workspace import ContentOptions, Workspace, workspace
from crux_workspace.engine.entry import PastState
from crux_workspace.storage import Storage
from crux_workspace.storage.layout import partition_name
from crux_workspace.testing import CountingRecordStore, FixedClock
from tests.support.long_texts import kept_states
from tests.support.soundness import Records, check_sound

INLINE = ContentOptions(inline_text_below_bytes=200_000)
FILE = "/workspace/h.md"


@dataclass
class House:
    """A store, and the workspaces made on it."""

    storage: Storage
    records: CountingRecordStore
    make: Callable[..., Workspace]
    partition: str = partition_name("w", "n")

    async def states(self) -> dict[int, PastState]:
        """Return the kept ended states that have content, by version; for a namespace with one file."""
        found = await kept_states(self.storage.records, self.partition)
        return {state.version: state for state in found if state.body is not None}

    async def encodings(self) -> dict[int, str | None]:
        """Return how the body of each kept ended version is written."""
        return {version: state.state.enc for version, state in (await self.states()).items()}

    async def check(self) -> Records:
        """Hold the records to their invariants: each kept version is whole."""
        return await check_sound(self.storage.records, self.partition)


@pytest.fixture
def house(storage: Storage, clock: FixedClock) -> House:
    """A counted store of each bundled kind in turn."""
    records = CountingRecordStore(storage.records)

    def make(**options: Any) -> Workspace:
        settings = {"content": INLINE, "clock": clock, **options}
        return workspace(id="w", namespace="n", records=records, assets=storage.assets, **settings)

    return House(storage, records, make)
