"""Nothing private is exported where a server holds the records or the assets, while it answers and when it is gone.

``CRUX_STORES=all make privacy`` plays much more of the suite on them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import pytest

from crux_workspace import Workspace
from crux_workspace.errors import StorageError
from crux_workspace.storage import MemoryRecordStore, Storage
from crux_workspace.testing import FixedClock
from storage_adapters import open_storage
from storage_adapters.s3 import S3Settings
from tests.http.test_equality import everything, outcome
from tests.support.adapted import s3_assets
from tests.support.fault_proxy import fault_proxy
from tests.support.postgres import PostgresServer, empty
from tests.support.privacy_sweep import Sweep
from tests.support.redis_servers import RedisServer
from tests.support.s3_server import s3_server
from tests.support.stages import chosen
from tests.support.verb_cases import CASES, make, seed

QUICK = S3Settings(connect_timeout_s=1, read_timeout_s=1, max_attempts=1)
NAMESPACE = "hushed namespace"


async def _on_postgres(request: pytest.FixtureRequest, stack: AsyncExitStack) -> Storage:
    server: PostgresServer = request.getfixturevalue("postgres_server")
    await empty(server)
    proxy = await stack.enter_async_context(fault_proxy(server.socket))
    return await open_storage(f"postgresql://postgres@127.0.0.1:{proxy.port}/crux?pool_size=2")


async def _on_redis(request: pytest.FixtureRequest, stack: AsyncExitStack) -> Storage:
    server: RedisServer = request.getfixturevalue("redis_server")
    proxy = await stack.enter_async_context(fault_proxy(("127.0.0.1", server.port)))
    return await open_storage(f"redis://127.0.0.1:{proxy.port}/0?timeout_ms=500")


async def _in_s3(request: pytest.FixtureRequest, stack: AsyncExitStack) -> Storage:
    server = urlsplit((await asyncio.to_thread(s3_server)).endpoint)
    assert server.hostname is not None
    assert server.port is not None
    proxy = await stack.enter_async_context(fault_proxy((server.hostname, server.port)))
    endpoint = f"http://127.0.0.1:{proxy.port}"
    records, assets = MemoryRecordStore(), await s3_assets(settings=QUICK, endpoint=endpoint)
    return Storage(records, assets, owned=(records, assets))


Opening = Callable[[pytest.FixtureRequest, AsyncExitStack], Awaitable[Storage]]
WHERE = [
    pytest.param(_on_postgres, marks=pytest.mark.postgres, id="postgres"),
    pytest.param(_on_redis, marks=pytest.mark.redis, id="redis"),
    pytest.param(_in_s3, marks=pytest.mark.s3, id="s3"),
]


async def _fail(ws: Workspace) -> int:
    """Make calls that cannot be served; returns how many said so."""
    to = ws.for_namespace(NAMESPACE)
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: to.write("/workspace/hush.bin", b"\xff" * 1_000),
        lambda: to.read_bytes("/workspace/b.bin"),
        lambda: to.append("/workspace/large.txt", "more that is hushed"),
        lambda: to.copy("/workspace/b.bin", "/outputs/hush.bin"),
        lambda: to.delete("/workspace", recursive=True, purge=True),
        lambda: to.grep("line that makes"),
        lambda: to.gc(dry_run=False),
    ]
    told = [await outcome(call()) for call in calls]
    return sum(isinstance(each, tuple) and issubclass(each[0], StorageError) for each in told)


@pytest.mark.parametrize("opening", WHERE)
async def test_nothing_private_is_exported(
    request: pytest.FixtureRequest, sweep: Sweep, opening: Opening
) -> None:
    async with AsyncExitStack() as way:
        storage = await opening(request, way)
        assert storage.assets is not None
        clock = FixedClock()
        stores = storage.records, storage.assets, clock
        for number, case in enumerate(chosen(CASES, "privacy", 0.15)):
            namespace = NAMESPACE if number == 0 else f"{NAMESPACE} {number}"
            await seed(make(*stores), namespace)
            if case.before is not None:
                await case.before(make(*stores), namespace)
            clock.advance(case.wait_ms)
            ws = make(*stores, **case.options)
            await outcome(case.call(ws, namespace))
            await everything(ws, namespace)
        assert len(sweep.exporter.get_finished_spans()) > 500
        assert len(sweep.secrets) > 100
        assert sweep.leaks() == []
        await way.aclose()  # the server is out of reach from now on
        assert await _fail(make(*stores)) >= 3
        assert sweep.exporter.get_finished_spans()
        assert sweep.leaks() == []
        await storage.aclose()
