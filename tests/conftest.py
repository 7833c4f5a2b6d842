"""Stores, workspaces and clocks for every test, and how hard Hypothesis tries."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from crux_workspace.testing import FixedClock

if TYPE_CHECKING:
    from crux_workspace import Workspace
    from crux_workspace.storage import Storage

_CALM = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
for _name, _examples, _steps in (("dev", 10, 25), ("ci", 15, 30), ("nightly", 1_000, 60)):
    settings.register_profile(
        _name,
        max_examples=_examples,
        stateful_step_count=_steps,
        deadline=None,
        print_blob=True,
        report_multiple_bugs=False,
        suppress_health_check=_CALM,
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

MakeWorkspace = Callable[..., "Workspace"]


def pytest_configure(config: pytest.Config) -> None:
    for marker in (
        "postgres: needs a PostgreSQL server",
        "redis: needs a Redis server",
        "s3: needs an S3 server",
        "benchmark: measures time or memory",
    ):
        config.addinivalue_line("markers", marker)


@pytest.fixture
def clock() -> FixedClock:
    """A clock that stands still until told otherwise."""
    return FixedClock()


_KINDS = ["memory", "sqlite"]
if os.environ.get("CRUX_STORES") == "all":  # see tests/support/stages.py
    _KINDS += ["journaled", "s3"]


@pytest.fixture(params=_KINDS)
async def storage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Storage]:
    """An empty storage, of each bundled kind in turn."""
    from crux_workspace.storage import memory_storage
    from storage_adapters import open_storage
    from tests.support.adapted import journaled_storage, s3_storage

    if request.param == "memory":
        opened = memory_storage()
    elif request.param == "journaled":
        opened = journaled_storage()
    elif request.param == "s3":
        opened = await s3_storage()
    else:
        opened = await open_storage(f"sqlite:///{tmp_path}/work.db?durability=normal")
    yield opened
    await opened.aclose()


@pytest.fixture
async def make_ws(storage: Storage, clock: FixedClock) -> AsyncIterator[MakeWorkspace]:
    """Makes workspaces over the one storage; closes them at the end."""
    from crux_workspace import workspace

    made: list[Workspace] = []

    def make(**options: Any) -> Workspace:
        chosen = {"id": "w", "namespace": "n", "storage": storage, "clock": clock, **options}
        made.append(workspace(**chosen))
        return made[-1]

    yield make
    for ws in made:
        await ws.aclose()


@pytest.fixture
def ws(make_ws: MakeWorkspace) -> Workspace:
    """A workspace with every setting at its default but the clock."""
    return make_ws()
