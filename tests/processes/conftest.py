"""Stores that processes share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crux_workspace import open_workspace_sync
from tests.conftest import SERVERS
from tests.support.crew import Crew, Shared, SharedDatabase, SharedServer
from tests.support.postgres import PostgresServer


@pytest.fixture(params=["full", "normal", *SERVERS])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Shared:
    """A store that exists: a database file with each durability, and servers."""
    if request.param == "redis":
        return SharedServer(request.getfixturevalue("redis_server").url(), share=8)
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        server.empty()
        return SharedServer(server.url(pool_size=4), share=16)
    database = SharedDatabase(tmp_path / "work.db", request.param)
    with open_workspace_sync(database.url):
        pass
    return database


@pytest.fixture
def crew() -> Iterator[Crew]:
    """Starts processes; none outlives the test."""
    with Crew().at_work() as starting:
        yield starting
