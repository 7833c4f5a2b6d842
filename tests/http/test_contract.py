"""The contract kits of whole workspaces, over a real HTTP server: a client is judged as the workspace behind it is."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from crux_workspace import ContentOptions, Workspace, local_runtime, workspace
from crux_workspace.http import HttpWorkspace
from crux_workspace.storage import Storage, memory_storage
from crux_workspace.testing import FixedClock, WatchContract, WorkspaceContract
from crux_workspace.testing.workspace import INLINE_BYTES
from storage_adapters import open_storage
from tests.support.http_workspaces import switchboard


class OverHttp(WorkspaceContract):
    """The kit with clients instead of workspaces."""

    @pytest_asyncio.fixture
    async def make(  # type: ignore[override]  # a client has the methods of a workspace
        self, storage: Storage, clock: FixedClock
    ) -> AsyncIterator[Callable[..., HttpWorkspace]]:
        made: list[Workspace] = []
        fresh = f"contract-{secrets.token_hex(6)}"
        async with switchboard() as board:

            def build(**options: Any) -> HttpWorkspace:
                chosen: dict[str, Any] = {
                    "id": fresh,
                    "namespace": "n:1",
                    "storage": storage,
                    "clock": clock,
                    "content": ContentOptions(inline_text_below_bytes=INLINE_BYTES),
                    **options,
                }
                made.append(workspace(**chosen))
                return board.client(made[-1])

            yield build
        for ws in made:
            await ws.aclose()


class WatchingOverHttp(WatchContract):
    """The kit of watching with clients instead of workspaces."""

    @pytest_asyncio.fixture
    async def make(self) -> AsyncIterator[Callable[..., Any]]:
        made: list[Workspace] = []
        fresh = f"contract-{secrets.token_hex(6)}"
        async with local_runtime() as runtime, switchboard() as board:

            def build(storage: Storage, **options: Any) -> HttpWorkspace:
                chosen = {"id": fresh, "namespace": "n:1", "storage": storage, **options}
                made.append(workspace(**chosen, runtime=runtime))
                return board.client(made[-1])

            yield build
            await board.aclose()
            for ws in made:
                await ws.aclose()


class TestOverHttpOnMemory(OverHttp):
    @pytest.fixture
    def storage(self) -> Storage:
        return memory_storage()


class TestOverHttpOnSqlite(OverHttp):
    @pytest_asyncio.fixture
    async def storage(self, tmp_path: Path) -> AsyncIterator[Storage]:  # type: ignore[override]  # as pytest gives it
        async with open_storage(f"sqlite:///{tmp_path}/served.db?durability=normal") as opened:
            yield opened


class TestWatchingOverHttpOnMemory(WatchingOverHttp):
    @pytest.fixture
    def storage(self) -> Storage:
        return memory_storage()


del OverHttp, WatchingOverHttp
