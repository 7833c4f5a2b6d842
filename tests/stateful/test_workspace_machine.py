"""A real workspace and the oracle, side by side, on every bundled store."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from crux_workspace.storage import Storage
from crux_workspace.testing.machines import WorkspaceMachine
from storage_adapters import open_storage
from tests.support.adapted import journaled_storage
from tests.support.postgres import PostgresServer, empty

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module", autouse=True)
def served(postgres_server: PostgresServer) -> None:
    """Tell the machines of the server; a machine takes no fixtures."""
    OnPostgres.server = postgres_server


class Limited(WorkspaceMachine):
    has_limits = True


class ShortHistory(WorkspaceMachine):
    max_versions = 2


class Expiring(WorkspaceMachine):
    ttl_ms = 1_000


class TwoHandles(WorkspaceMachine):
    handles = 2
    max_versions = 3


class OnSqlite(WorkspaceMachine):
    async def open_storage(self) -> Storage:
        self.folder = tempfile.mkdtemp()
        return await open_storage(f"sqlite:///{self.folder}/work.db?durability=normal")

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "folder"):
            shutil.rmtree(Path(self.folder))


class SqliteLimited(OnSqlite, Limited):
    pass


class SqliteShortHistory(OnSqlite, ShortHistory):
    pass


class SqliteExpiring(OnSqlite, Expiring):
    pass


class SqliteTwoHandles(OnSqlite, TwoHandles):
    pass


class OnJournaled(WorkspaceMachine):
    async def open_storage(self) -> Storage:
        return journaled_storage()


class JournaledTwoHandles(OnJournaled, TwoHandles):
    pass


TestJournaled = OnJournaled.TestCase
TestJournaledTwoHandles = JournaledTwoHandles.TestCase


class OnPostgres(WorkspaceMachine):
    server: PostgresServer

    async def open_storage(self) -> Storage:
        await empty(self.server)
        return await open_storage(self.server.url(pool_size=4))


class PostgresLimited(OnPostgres, Limited):
    pass


class PostgresShortHistory(OnPostgres, ShortHistory):
    pass


class PostgresExpiring(OnPostgres, Expiring):
    pass


class PostgresTwoHandles(OnPostgres, TwoHandles):
    pass


TestMemory = WorkspaceMachine.TestCase
TestMemoryLimited = Limited.TestCase
TestMemoryShortHistory = ShortHistory.TestCase
TestMemoryExpiring = Expiring.TestCase
TestMemoryTwoHandles = TwoHandles.TestCase
TestSqlite = OnSqlite.TestCase
TestSqliteLimited = SqliteLimited.TestCase
TestSqliteShortHistory = SqliteShortHistory.TestCase
TestSqliteExpiring = SqliteExpiring.TestCase
TestSqliteTwoHandles = SqliteTwoHandles.TestCase
TestPostgres = OnPostgres.TestCase
TestPostgresLimited = PostgresLimited.TestCase
TestPostgresShortHistory = PostgresShortHistory.TestCase
TestPostgresExpiring = PostgresExpiring.TestCase
TestPostgresTwoHandles = PostgresTwoHandles.TestCase
