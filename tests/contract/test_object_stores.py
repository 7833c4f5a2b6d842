"""The asset kit on obstore: a real S3 server, a local folder, and memory."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from crux_workspace.testing import AssetStoreContract
from storage_adapters.object_stores import ObstoreAssetStore, obstore_backend
from tests.support.azurite import KEY, azurite
from tests.support.gcs_server import gcs_front
from tests.support.s3_server import s3_server


@pytest.mark.s3
class TestObstoreOnS3(AssetStoreContract):
    @pytest.fixture
    async def store(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[object]:
        server = s3_server()
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", server.member.access_key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", server.member.secret_key)
        url = f"obstore+s3://{server.bucket}/{secrets.token_hex(4)}/pre%20fix+%C3%A4"
        store = await obstore_backend(f"{url}?endpoint_url={server.endpoint}&region=us-east-1")
        yield store
        await store.aclose()


@pytest.mark.s3
class TestObstoreOnGoogle(AssetStoreContract):
    """By Google's own ways and names; what keeps the objects is the S3 server."""

    @pytest.fixture
    async def store(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[object]:
        server = s3_server()
        async with gcs_front(server) as front:
            monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", front.service_account_key)
            url = f"gs://{server.bucket}/{secrets.token_hex(4)}/pre%20fix+%C3%A4"
            store = await obstore_backend(f"{url}?endpoint_url={front.url}")
            yield store
            await store.aclose()


class TestObstoreOnAzure(AssetStoreContract):
    @pytest.fixture
    async def store(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[object]:
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
        store = await obstore_backend(azurite().url(f"{secrets.token_hex(4)}/pre%20fix+%C3%A4"))
        yield store
        await store.aclose()


class TestObstoreOnAFolder(AssetStoreContract):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[object]:
        store = await obstore_backend(f"obstore+file://{tmp_path}/ass%20ets")
        yield store
        await store.aclose()


class TestObstoreInMemory(AssetStoreContract):
    @pytest.fixture
    async def store(self) -> ObstoreAssetStore:
        return ObstoreAssetStore(MemoryStore(), "a prefix")
