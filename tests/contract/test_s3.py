"""The asset kit on S3, by boto3, against a real server and with the rights that the documents ask for."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest

from crux_workspace.testing import AssetStoreContract
from storage_adapters.s3 import S3AssetStore
from tests.support.s3_server import s3_server

pytestmark = pytest.mark.s3


class TestS3AssetStore(AssetStoreContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[S3AssetStore]:
        server = s3_server()
        client = server.client()
        prefix = f"{secrets.token_hex(4)}/pre fix+ä%20"
        async with S3AssetStore(client, server.bucket, prefix) as store:
            yield store
