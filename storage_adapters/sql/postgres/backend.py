"""What a ``postgresql://`` URL opens."""

from __future__ import annotations

from crux_workspace.storage.assets import AssetStore
from crux_workspace.storage.bundle import OpenedRecords
from storage_adapters.sql.postgres.address import parse
from storage_adapters.sql.postgres.assets import PostgresAssetStore
from storage_adapters.sql.postgres.store import PostgresRecordStore

__all__ = ["migrate", "open_assets", "open_records"]


async def open_records(url: str) -> OpenedRecords:
    """Open the records of a database, and beside them its assets, over the same connections."""
    store = await PostgresRecordStore.open(url)
    return OpenedRecords(store, assets=PostgresAssetStore(store.database))


async def open_assets(url: str) -> AssetStore:
    """Open the assets of a database whose records nobody asked for."""
    return await PostgresAssetStore.open(url)


def migrate(url: str) -> None:
    """Create the schema that a URL names, or bring it up to date."""
    address = parse(url)
    from storage_adapters.sql.postgres.upgrading import upgrade

    upgrade(address)
