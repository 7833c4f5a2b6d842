"""Several clients and their transactions, interleaved, on every bundled store, side by side with the oracle."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from crux_workspace.storage import Storage
from crux_workspace.testing.transaction_machine import TransactionMachine
from storage_adapters import open_storage
from tests.support.postgres import PostgresServer, empty

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module", autouse=True)
def served(postgres_server: PostgresServer) -> None:
    """Tell the machines of the server; a machine takes no fixtures."""
    OnPostgres.server = postgres_server


class OnSqlite(TransactionMachine):
    async def open_storage(self) -> Storage:
        self.folder = tempfile.mkdtemp()
        return await open_storage(f"sqlite:///{self.folder}/work.db?durability=normal")

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "folder"):
            shutil.rmtree(Path(self.folder))


class OnPostgres(TransactionMachine):
    server: PostgresServer

    async def open_storage(self) -> Storage:
        await empty(self.server)
        return await open_storage(self.server.url(pool_size=4))


TestMemory = TransactionMachine.TestCase
TestSqlite = OnSqlite.TestCase
TestPostgres = OnPostgres.TestCase
