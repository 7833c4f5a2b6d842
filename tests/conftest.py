"""Stores, workspaces and clocks for every test, and how hard Hypothesis tries."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from crux_workspace.testing import FixedClock

if TYPE_CHECKING:
    from crux_workspace import Workspace
    from crux_workspace.storage import Storage
    from tests.support.postgres import PostgresServer
    from tests.support.redis_cluster import RedisCluster
    from tests.support.redis_servers import RedisServer

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
        "more_stores: plays a suite of the engine on a store beyond memory, SQLite and PostgreSQL",
    ):
        config.addinivalue_line("markers", marker)


@pytest.fixture
def clock() -> FixedClock:
    """A clock that stands still until told otherwise."""
    return FixedClock()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server of this test process, with a migrated database `crux`."""
    from tests.support.postgres import serving

    with serving() as server:
        yield server


@pytest.fixture
async def postgres_url(postgres_server: PostgresServer) -> str:
    """The URL of a migrated database that holds nothing."""
    from tests.support.postgres import empty

    await empty(postgres_server)
    return postgres_server.url()


@pytest.fixture
def redis_server() -> RedisServer:
    """The server that the tests of this process share; its databases hold nothing."""
    from tests.support.redis_servers import emptied_server

    return emptied_server()


POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)
REDIS = pytest.param("redis", marks=[pytest.mark.redis, pytest.mark.more_stores])
JOURNALED = pytest.param("journaled", marks=pytest.mark.more_stores)
S3 = pytest.param("s3", marks=[pytest.mark.s3, pytest.mark.more_stores])
CLUSTER = pytest.param("redis cluster", marks=[pytest.mark.redis, pytest.mark.more_stores])
OBSTORE = pytest.param("obstore", marks=[pytest.mark.s3, pytest.mark.more_stores])
BUNDLED = ["memory", "sqlite", POSTGRES]
SERVERS = [POSTGRES, REDIS]
EVERY_STORE = os.environ.get("CRUX_STORES") == "every"
ALL_STORES = EVERY_STORE or os.environ.get("CRUX_STORES") == "all"
"""Play on Redis, on journaled stores, and on assets in S3 too: `CRUX_STORES=all`, as ``make test`` does in a run of its own.

It plays a sample of the tests on a Redis Cluster and on assets by obstore; `CRUX_STORES=every` plays them all there.
"""
SAMPLED = {"redis cluster", "obstore"}
ONE_OF = 25
RECORDS_ON_DEMAND = [REDIS, CLUSTER] if ALL_STORES else []
ON_DEMAND = [REDIS, JOURNALED, S3, CLUSTER, OBSTORE] if ALL_STORES else []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is no part of the sample; it is the same one in every run."""
    left_out = {item for item in items if not EVERY_STORE and _is_left_out(item)}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def _is_left_out(item: pytest.Item) -> bool:
    played = getattr(item, "callspec", None)
    stores = (
        () if played is None else [one for one in played.params.values() if isinstance(one, str)]
    )
    if SAMPLED.isdisjoint(stores):
        return False
    return crc32(item.nodeid.encode()) % ONE_OF != 0


@pytest.fixture(params=[*BUNDLED, *RECORDS_ON_DEMAND])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store, of each bundled kind in turn."""
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        server.empty()
        return server.url(pool_size=4)
    if request.param == "redis":
        url: str = request.getfixturevalue("redis_server").url()
        return url
    if request.param == "redis cluster":
        return _emptied_cluster().url()
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/work.db"


@pytest.fixture(params=[*BUNDLED, *ON_DEMAND])
async def storage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Storage]:
    """An empty storage, of each bundled kind in turn."""
    from crux_workspace.storage import memory_storage
    from storage_adapters import open_storage
    from tests.support.adapted import journaled_storage, obstore_storage, s3_storage
    from tests.support.postgres import empty

    if request.param == "memory":
        opened = memory_storage()
    elif request.param == "journaled":
        opened = journaled_storage()
    elif request.param == "s3":
        opened = await s3_storage()
    elif request.param == "obstore":
        opened = await obstore_storage()
    elif request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        await empty(server)
        opened = await open_storage(server.url(pool_size=4))
    elif request.param == "redis":
        redis: RedisServer = request.getfixturevalue("redis_server")
        opened = await open_storage(redis.url())
    elif request.param == "redis cluster":
        opened = await open_storage(_emptied_cluster().url())
    else:
        opened = await open_storage(f"sqlite:///{tmp_path}/work.db?durability=normal")
    yield opened
    await opened.aclose()


def _emptied_cluster() -> RedisCluster:
    from tests.support.redis_cluster import emptied_cluster

    return emptied_cluster()


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
