"""Storages over adapters that need no file: a journaled minimal store, assets in a real S3 bucket by boto3 or obstore."""

from __future__ import annotations

import asyncio
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from obstore.store import S3Store

from crux_workspace.model.clocks import Clock, wall_clock_ms
from crux_workspace.storage import MemoryAssetStore, MemoryRecordStore, Storage
from crux_workspace.testing import MemoryMinimalStore
from storage_adapters.journaled import journaled
from storage_adapters.object_stores import ObstoreAssetStore
from storage_adapters.s3 import S3AssetStore, S3Settings
from tests.support.s3_server import S3Server, s3_server

if TYPE_CHECKING:
    from obstore.store import ClientConfig

__all__ = ["journaled_storage", "obstore_of", "obstore_storage", "s3_assets", "s3_storage"]


def journaled_storage(below: MemoryMinimalStore | None = None) -> Storage:
    """Records in a journaled minimal store, assets in memory."""
    records, assets = journaled(below or MemoryMinimalStore(), durable=True), MemoryAssetStore()
    return Storage(records, assets, owned=(records, assets))


async def s3_storage() -> Storage:
    """Records in memory, assets in S3 below a prefix of their own."""
    records, assets = MemoryRecordStore(), await s3_assets()
    return Storage(records, assets, owned=(records, assets))


async def obstore_storage() -> Storage:
    """Records in memory, assets in S3 by obstore, below a prefix of their own."""
    server = await asyncio.to_thread(s3_server)
    records = MemoryRecordStore()
    assets = ObstoreAssetStore(obstore_of(server), secrets.token_hex(6))
    return Storage(records, assets, owned=(records, assets))


def obstore_of(server: S3Server, *, timeout: timedelta | None = None, **options: Any) -> S3Store:
    """Open a server's bucket by obstore; `options` are those of its `S3Store`."""
    settings: ClientConfig = {"allow_http": True}
    if timeout is not None:
        settings["timeout"] = timeout
    return S3Store(
        server.bucket,
        endpoint=server.endpoint,
        region="us-east-1",
        access_key_id=server.member.access_key,
        secret_access_key=server.member.secret_key,
        client_options=settings,
        **options,
    )


async def s3_assets(
    prefix: str | None = None,
    *,
    settings: S3Settings | None = None,
    endpoint: str | None = None,
    clock: Clock = wall_clock_ms,
) -> S3AssetStore:
    """Open assets in the test server's bucket, by default below a prefix of their own."""
    server = await asyncio.to_thread(s3_server)
    client = server.client(settings=settings, endpoint=endpoint)
    place = prefix or secrets.token_hex(6)
    return S3AssetStore(client, server.bucket, place, settings=settings, clock=clock)
