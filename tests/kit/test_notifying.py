"""The checks of `notify`: a store that tells passes them, one that tells nothing or everybody does not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from crux_workspace.storage import (
    Batch,
    Committed,
    MemoryRecordStore,
    RecordStore,
    StoreCapabilities,
)
from crux_workspace.testing import DelegatingRecordStore, Hooks, check_record_store

Heard = Callable[[int], None]


class Telling(DelegatingRecordStore):
    """One of several stores over the same memory; each hears what any of them commits."""

    ears: list[tuple[str, Heard]]

    def __init__(self, inner: RecordStore, ears: list[tuple[str, Heard]]) -> None:
        super().__init__(inner)
        self.ears = ears

    @property
    def capabilities(self) -> StoreCapabilities:
        return replace(self.inner.capabilities, notify=True)

    async def commit(self, partition: str, batch: Batch) -> Committed:
        committed = await super().commit(partition, batch)
        self.tell(partition, committed.sequence)
        return committed

    async def drop(self, partition: str) -> None:
        await super().drop(partition)
        self.tell(partition, 0)

    def tell(self, partition: str, sequence: int) -> None:
        for of, heard in list(self.ears):
            if of == partition:
                asyncio.get_running_loop().call_soon(heard, sequence)

    def listen(self, partition: str, heard: Heard) -> Callable[[], None]:
        entry = (partition, heard)
        self.ears.append(entry)
        return lambda: self.ears.remove(entry)


class TellsNothing(Telling):
    def tell(self, partition: str, sequence: int) -> None:
        """Keep it secret."""


class ForgetsDrops(Telling):
    def tell(self, partition: str, sequence: int) -> None:
        if sequence:
            super().tell(partition, sequence)


class TellsEverybody(Telling):
    def tell(self, partition: str, sequence: int) -> None:
        for _, heard in list(self.ears):
            heard(sequence)


class NeverLeaves(Telling):
    def listen(self, partition: str, heard: Heard) -> Callable[[], None]:
        super().listen(partition, heard)
        return lambda: None


@pytest.mark.parametrize(
    ("kind", "failing"),
    [
        (Telling, []),
        (TellsNothing, ["R-136", "R-137"]),
        (ForgetsDrops, ["R-136"]),
        (TellsEverybody, ["R-137"]),
        (NeverLeaves, ["R-137"]),
    ],
)
async def test_what_a_store_tells_is_judged(kind: type[Telling], failing: list[str]) -> None:
    memory, ears = MemoryRecordStore(), list[tuple[str, Heard]]()

    async def another(_: RecordStore) -> RecordStore:
        return kind(memory, ears)

    report = await check_record_store(
        lambda: kind(memory, ears), hooks=Hooks(another=another), only=["R-136", "R-137"]
    )
    assert [outcome.id for outcome in report.failures] == failing, str(report)
    assert len(report.outcomes) == 2
