"""Stores that processes share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crux_workspace import open_workspace_sync
from tests.support.crew import Crew, Shared, SharedDatabase, SharedServer


@pytest.fixture(params=["full", "normal", pytest.param("redis", marks=pytest.mark.redis)])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Shared:
    """A store that exists: a database file with each durability, and a server."""
    if request.param == "redis":
        return SharedServer(request.getfixturevalue("redis_server").url())
    database = SharedDatabase(tmp_path / "work.db", request.param)
    with open_workspace_sync(database.url):
        pass
    return database


@pytest.fixture
def crew() -> Iterator[Crew]:
    """Starts processes; none outlives the test."""
    with Crew().at_work() as starting:
        yield starting
