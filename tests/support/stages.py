"""Stores that cases are played on: one store, a fresh namespace for each trial."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest

from crux_workspace import Workspace
from crux_workspace.storage.guessing import Guesses
from crux_workspace.storage.layout import partition_name
from crux_workspace.storage.memory import MemoryAssetStore, MemoryRecordStore
from crux_workspace.storage.records import RecordStore
from crux_workspace.testing import (
    CommitOnlyRecordStore,
    FaultyAssetStore,
    FaultyRecordStore,
    FixedClock,
    MemoryMinimalStore,
)
from storage_adapters.journaled import journaled
from storage_adapters.redis import RedisRecordStore
from storage_adapters.sql import SqliteRecordStore
from storage_adapters.sql.postgres import PostgresRecordStore
from tests.conftest import ALL_STORES, CLUSTER, JOURNALED, POSTGRES, REDIS
from tests.support.dumps import dump
from tests.support.guessing_store import GuessingRecordStore
from tests.support.postgres import PostgresServer, empty
from tests.support.redis_cluster import emptied_cluster
from tests.support.redis_servers import emptied_server
from tests.support.soundness import Records, check_sound
from tests.support.verb_cases import Case, make, seed

__all__ = ["EVERYTHING", "KINDS", "Stage", "Trial", "chosen", "open_stage"]

EVERYTHING = os.environ.get("CRUX_FAULTS") == "all"
"""Sweep over everything; by default the larger sweeps take a sample."""

T = TypeVar("T")


def chosen(items: Iterable[T], by: str, share: float) -> list[T]:
    """Return all items, or, in the default profile, a share of them: always the same for the same `by`."""
    every = list(items)
    if EVERYTHING:
        return every
    most = max(1, round(len(every) * share))
    return random.Random(by).sample(every, most)


MORE = [REDIS, JOURNALED, CLUSTER] if ALL_STORES else []
KINDS = ["memory", "commit only", "guessing", "sqlite", POSTGRES, *MORE]


@dataclass
class Trial:
    """A seeded namespace, with assets of its own."""

    stage: Stage
    namespace: str
    clock: FixedClock
    assets: MemoryAssetStore

    @property
    def partition(self) -> str:
        """The namespace's partition."""
        return partition_name("w", self.namespace)

    def workspace(self, **options: Any) -> Workspace:
        """Make a workspace without faults."""
        return make(self.stage.records, self.assets, self.clock, **options)

    def faulty(self, options: dict[str, Any], **fault: Any) -> tuple[Workspace, FaultyRecordStore]:
        """Make a workspace whose record store fails."""
        double = FaultyRecordStore(self.stage.bare, **fault)
        return make(self.stage.dress(double), self.assets, self.clock, **options), double

    def faulty_assets(
        self, options: dict[str, Any], **fault: Any
    ) -> tuple[Workspace, FaultyAssetStore]:
        """Make a workspace whose asset store fails."""
        double = FaultyAssetStore(self.assets, **fault)
        return make(self.stage.records, double, self.clock, **options), double

    def counted(
        self, options: dict[str, Any]
    ) -> tuple[Workspace, FaultyRecordStore, FaultyAssetStore]:
        """Make a workspace whose stores number their calls and fail none."""
        records, assets = FaultyRecordStore(self.stage.bare), FaultyAssetStore(self.assets)
        ws = make(self.stage.dress(records), assets, self.clock, **options)
        return ws, records, assets

    async def dump(self) -> dict[str, Any]:
        """Read everything, and hold the records to their invariants."""
        await self.check()
        return await dump(self.workspace(), self.namespace)

    async def check(self) -> Records:
        """Hold the records to their invariants: whatever is referenced is there."""
        records = await check_sound(self.stage.records, self.partition)
        assert records.referenced <= await self.stored(), "a referenced asset is gone"
        return records

    async def stored(self) -> set[str]:
        """Return the assets of the namespace that exist."""
        prefix = f"w/{self.namespace}/"
        page = await self.assets.list(prefix, limit=10_000)
        return {info.ref for info in page.assets}

    async def settle(self, case: Case) -> dict[str, Any]:
        """Collect what nothing needs; then exactly the referenced assets are there."""
        self.clock.advance(1)
        await self.workspace(**case.options).gc(dry_run=False, namespace=self.namespace)
        records = await self.check()
        assert await self.stored() == records.referenced, "an asset stays that nothing refers to"
        assert not records.of("job")
        return await self.dump()


@dataclass
class Stage:
    """A store, and how the store that a workspace gets is made of a double around it."""

    kind: str
    bare: RecordStore
    dress: Callable[[RecordStore], RecordStore]
    numbers: count[int] = field(default_factory=lambda: count(1))

    @property
    def share(self) -> float:
        """Which share of a larger sweep is played where not everything is."""
        shares = {"memory": 0.4, "commit only": 0.4, "postgres": 0.1}
        return shares.get(self.kind, 0.2)

    @property
    def records(self) -> RecordStore:
        """The store without faults."""
        return self.dress(self.bare)

    async def trial(self, case: Case | None = None) -> Trial:
        """Seed a fresh namespace and bring it to where the case begins."""
        clock = FixedClock()
        trial = Trial(self, f"n{next(self.numbers)}", clock, MemoryAssetStore(clock=clock))
        kept = {} if case is None else case.options
        ws = trial.workspace(**{k: v for k, v in kept.items() if k in ("retention", "content")})
        await seed(ws, trial.namespace)
        if case is not None and case.before is not None:
            await case.before(ws, trial.namespace)
        clock.advance(0 if case is None else case.wait_ms)
        return trial

    def empty_trial(self) -> Trial:
        """Return an empty namespace."""
        clock = FixedClock()
        return Trial(self, f"n{next(self.numbers)}", clock, MemoryAssetStore(clock=clock))


def _as_it_is(store: RecordStore) -> RecordStore:
    return store


@asynccontextmanager
async def open_stage(
    kind: str, folder: Path, request: pytest.FixtureRequest | None = None
) -> AsyncIterator[Stage]:
    """Open a store of one kind; a test's request gives it the server that some kinds need."""
    if kind == "memory":
        yield Stage(kind, MemoryRecordStore(), _as_it_is)
    elif kind == "journaled":
        yield Stage(kind, journaled(MemoryMinimalStore(), durable=True), _as_it_is)
    elif kind == "guessing":
        guesses = Guesses()
        yield Stage(kind, MemoryRecordStore(), lambda store: GuessingRecordStore(store, guesses))
    elif kind == "commit only":
        yield Stage(kind, MemoryRecordStore(), CommitOnlyRecordStore)
    elif kind == "postgres":
        assert request is not None
        server: PostgresServer = request.getfixturevalue("postgres_server")
        await empty(server)
        async with await PostgresRecordStore.open(server.url(pool_size=4)) as records:
            yield Stage(kind, records, _as_it_is)
    elif kind == "redis":
        async with await RedisRecordStore.open(emptied_server().url()) as redis_store:
            yield Stage(kind, redis_store, _as_it_is)
    elif kind == "redis cluster":
        async with await RedisRecordStore.open(emptied_cluster().url()) as redis_store:
            yield Stage(kind, redis_store, _as_it_is)
    else:
        store = await SqliteRecordStore.open(folder / "records.db", durability="normal")
        yield Stage(kind, store, _as_it_is)
        await store.aclose()
