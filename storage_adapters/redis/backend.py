"""What a ``redis://`` URL opens."""

from __future__ import annotations

from crux_workspace.storage.assets import AssetStore
from crux_workspace.storage.bundle import OpenedRecords
from storage_adapters.redis.assets import RedisAssetStore
from storage_adapters.redis.store import RedisRecordStore

__all__ = ["redis_assets_backend", "redis_backend"]


async def redis_backend(url: str, *, create: bool = True) -> OpenedRecords:
    """Open the records of ``redis://[user:password@]host[:port][/database]``, ``rediss://…`` or ``redis+unix:///path/to.sock``.

    Options: ``db``, ``prefix`` (of all keys, default ``crux``), ``timeout_ms`` (default 5000), and for ``rediss://`` ``ssl_ca_certs``,
    ``ssl_certfile`` and ``ssl_keyfile``. A server of a Cluster leads to the other nodes. Nothing is created by opening, so `create`
    changes nothing. Assets nobody chose a place for go to the same database.
    """
    del create
    return OpenedRecords(await RedisRecordStore.open(url), url)


async def redis_assets_backend(url: str) -> AssetStore:
    """Open the assets of a ``redis://`` URL; see `redis_backend`."""
    return await RedisAssetStore.open(url)
