"""PostgreSQL broken on purpose: every test here runs on the real server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any, Protocol

import pytest

from crux_workspace import Workspace, open_workspace
from storage_adapters.sql.postgres import PostgresRecordStore
from tests.support.crew import Crew
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.postgres import PostgresServer, serving


class Opening(Protocol):
    """Opens a workspace that is closed when the test ends."""

    async def __call__(self, url: str, **options: Any) -> Workspace: ...


@pytest.fixture
async def opening() -> AsyncIterator[Opening]:
    async with AsyncExitStack() as stack:

        async def open_one(url: str, **options: Any) -> Workspace:
            return await stack.enter_async_context(open_workspace(url, **options))

        yield open_one


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresRecordStore]:
    """A record store over an empty database."""
    async with await PostgresRecordStore.open(postgres_url) as opened:
        yield opened


@pytest.fixture
async def proxy(postgres_server: PostgresServer, postgres_url: str) -> AsyncIterator[FaultProxy]:
    """A way to the empty database that can be broken."""
    async with fault_proxy(postgres_server.socket) as made:
        yield made


def through(proxy: FaultProxy, **options: object) -> str:
    """Return the URL that leads to the empty database through a proxy."""
    query = "&".join(f"{name}={value}" for name, value in options.items())
    return f"postgresql://postgres@127.0.0.1:{proxy.port}/crux" + (f"?{query}" if query else "")


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server of this test alone, which it may kill; it writes to disk as servers do."""
    with serving(durable=True) as server:
        yield server


@pytest.fixture
def crew() -> Iterator[Crew]:
    """Starts processes; none outlives the test."""
    with Crew().at_work() as starting:
        yield starting
