"""Workspaces whose stores count, over assets that a test can damage."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from crux_workspace import ContentOptions, Retention, Workspace, workspace
from crux_workspace.engine import measuring
from crux_workspace.engine.entry import Entry
from crux_workspace.engine.keys import head_key
from crux_workspace.storage import MemoryAssetStore, MemoryRecordStore, PutOptions, StoredAsset
from crux_workspace.storage.layout import partition_name
from crux_workspace.testing import FixedClock
from crux_workspace.testing.delegating import DelegatingAssetStore
from tests.support.soundness import Records, check_sound

SMALL = 16
"""Bytes of text that stay in the record."""


class MeasuringAssetStore(DelegatingAssetStore):
    """Counts the bytes that go in and out."""

    def __init__(self, inner: MemoryAssetStore) -> None:
        super().__init__(inner)
        self.inner: MemoryAssetStore = inner
        self.put_bytes = 0
        self.read_bytes = 0

    def reset(self) -> None:
        self.put_bytes = self.read_bytes = 0

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        stored = await self.inner.put(data, options)
        self.put_bytes += stored.size
        return stored

    async def get(self, ref: str) -> bytes:
        data = await self.inner.get(ref)
        self.read_bytes += len(data)
        return data

    async def stream(
        self, ref: str, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        async for chunk in self.inner.stream(ref, offset, length):
            self.read_bytes += len(chunk)
            yield chunk

    def flip(self, ref: str, at: int) -> None:
        """Flip one bit of an asset."""
        data, created_at = self.inner._assets[ref]
        changed = bytearray(data)
        changed[at] ^= 1
        self.inner._assets[ref] = (bytes(changed), created_at)

    def cut(self, ref: str) -> None:
        """Lose the last byte of an asset."""
        data, created_at = self.inner._assets[ref]
        self.inner._assets[ref] = (data[:-1], created_at)


@dataclass
class Heavy:
    """One namespace, its stores, and what must hold of them."""

    records: MemoryRecordStore = field(default_factory=MemoryRecordStore)
    clock: FixedClock = field(default_factory=FixedClock)
    assets: MeasuringAssetStore = field(init=False)

    def __post_init__(self) -> None:
        self.assets = MeasuringAssetStore(MemoryAssetStore(clock=self.clock))

    def open(self, small: int = SMALL, **options: Any) -> Workspace:
        """Make a workspace that keeps little text inline."""
        return workspace(
            **{
                "id": "w",
                "namespace": "n",
                "records": self.records,
                "assets": self.assets,
                "content": ContentOptions(inline_text_below_bytes=small),
                "retention": Retention(asset_grace_ms=0),
                "clock": self.clock,
                **options,
            }
        )

    async def check(self) -> Records:
        """Hold the records to their invariants."""
        return await check_sound(self.records, partition_name("w", "n"))

    async def settle(self, ws: Workspace) -> Records:
        """Collect; then exactly the referenced assets are there."""
        self.clock.advance(1)
        await ws.gc(dry_run=False)
        records = await self.check()
        assert set(self.assets.inner._assets) == records.referenced
        return records

    async def refs(self, path: str) -> tuple[str, ...]:
        """Return the assets that hold a file's newest content, in order."""
        [record] = await self.records.get_many(partition_name("w", "n"), [head_key(path)])
        assert record is not None
        return Entry.of(record).head.refs


@pytest.fixture
def heavy() -> Heavy:
    return Heavy()


@pytest.fixture
def forget() -> Callable[[], None]:
    """Give what makes the process forget the texts that it wrote, as another process does not know them."""
    return measuring._remembered._states.clear
