"""One SQLite file and the processes that share it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crux_workspace import open_workspace_sync
from tests.support.crew import Crew


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database that exists."""
    with open_workspace_sync(f"sqlite:///{tmp_path}/work.db"):
        pass
    return tmp_path / "work.db"


@pytest.fixture
def crew() -> Iterator[Crew]:
    """Starts processes; none outlives the test."""
    with Crew().at_work() as starting:
        yield starting
