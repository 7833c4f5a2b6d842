"""A bundle of stores: the records, and the assets that go with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from crux_workspace.storage.assets import AssetStore
from crux_workspace.storage.memory import MemoryAssetStore, MemoryRecordStore
from crux_workspace.storage.records import RecordStore

__all__ = ["OpenedRecords", "Storage", "memory_storage", "storage"]


class _Closable(Protocol):
    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class OpenedRecords:
    """What a backend of the entry point group ``crux_workspace.storage`` returns for a URL."""

    records: RecordStore
    assets_url: str | None = None
    """Where assets go when nobody chose a place; None when the backend knows none."""
    assets: AssetStore | None = None
    """Opened together with the records, for when nobody chose a place; closed without use otherwise."""


class Storage:
    """Two stores used together; it closes only what it was told it owns.

    Share one storage among any number of workspaces.
    """

    def __init__(
        self,
        records: RecordStore,
        assets: AssetStore | None = None,
        *,
        owned: Sequence[_Closable] = (),
    ) -> None:
        """Bundle two stores.

        Args:
            records: Where records live.
            assets: Where large and binary content lives; without, such content is refused.
            owned: What `aclose` closes, in this order.
        """
        self._records = records
        self._assets = assets
        self._owned = tuple(owned)

    def __repr__(self) -> str:
        return (
            f"Storage(records={type(self._records).__name__}, assets={type(self._assets).__name__})"
        )

    @property
    def records(self) -> RecordStore:
        """Where records live."""
        return self._records

    @property
    def assets(self) -> AssetStore | None:
        """Where large and binary content lives, if anywhere."""
        return self._assets

    async def aclose(self) -> None:
        """Close every owned store, even when one of them fails; idempotent. The first error is raised at the end."""
        errors: list[Exception] = []
        for store in self._owned:
            try:
                await store.aclose()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


def storage(*, records: RecordStore, assets: AssetStore | None = None) -> Storage:
    """Bundle two stores that the caller opened and will close."""
    return Storage(records, assets)


def memory_storage() -> Storage:
    """Return a fresh storage in memory; gone with the object."""
    return Storage(MemoryRecordStore(), MemoryAssetStore())
