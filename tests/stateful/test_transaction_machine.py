"""Several clients and their transactions, interleaved, on every bundled store, side by side with the oracle."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from crux_workspace.storage import Storage
from crux_workspace.testing.transaction_machine import TransactionMachine
from storage_adapters import open_storage

pytestmark = pytest.mark.timeout(600)


class OnSqlite(TransactionMachine):
    async def open_storage(self) -> Storage:
        self.folder = tempfile.mkdtemp()
        return await open_storage(f"sqlite:///{self.folder}/work.db?durability=normal")

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "folder"):
            shutil.rmtree(Path(self.folder))


TestMemory = TransactionMachine.TestCase
TestSqlite = OnSqlite.TestCase
