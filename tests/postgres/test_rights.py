"""What a service needs of the server: the rights and the connections that the page about running a fleet tells, and no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from crux_workspace import Retention
from crux_workspace.errors import WorkspaceError
from storage_adapters import migrate
from tests.postgres.conftest import Opening
from tests.support.postgres import PostgresServer
from tests.watch.conftest import take

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(120)]

POOL = 3
_ROLE = f"""
create role service login connection limit {POOL + 1};
revoke execute on all functions in schema crux_workspace from public;
grant usage on schema crux_workspace to service;
grant select, insert, update, delete on all tables in schema crux_workspace to service;
grant execute on all functions in schema crux_workspace to service
"""
_BACK = """
drop owned by service;
drop role service;
grant execute on all functions in schema crux_workspace to public
"""


@pytest.fixture
async def url(postgres_server: PostgresServer, postgres_url: str) -> AsyncIterator[str]:
    """The URL of a user who has the rights of a service, and as many connections as one needs."""
    admin = await postgres_server.connect()
    await admin.execute(_ROLE)
    yield postgres_server.url(pool_size=POOL).replace("postgres@", "service@", 1)
    await admin.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'service'"
    )
    await admin.execute(_BACK)
    await admin.close()


async def test_a_service_does_everything_with_the_rights_that_it_is_told_to_have(
    url: str, opening: Opening
) -> None:
    ws = await opening(url, retention=Retention(asset_grace_ms=0))
    async with ws.watch(recursive=True, poll_interval_ms=3_600_000) as events:
        await events.ready()
        async with ws.transaction() as tx:
            await tx.write("/workspace/a.md", "one")
            await tx.write("/workspace/b.bin", bytes(700_000))
        assert len(await take(events, 2)) == 2
    await ws.copy("/workspace/b.bin", "/workspace/c.bin", to_namespace="other")
    await ws.delete("/workspace/b.bin")
    await ws.undo("/workspace/b.bin")
    await ws.finalize("/workspace/a.md")
    assert len(await ws.read_bytes("/workspace/b.bin")) == 700_000
    await ws.drop_namespace("other")
    await ws.gc(dry_run=False)
    assert (await ws.namespaces()).names == ["default"]
    with pytest.raises(WorkspaceError) as refused:
        await asyncio.to_thread(migrate, url.replace("?", "?schema=another&", 1))
    assert "no right" in str(refused.value)


async def test_a_process_needs_one_connection_more_than_its_pool_has(
    url: str, opening: Opening
) -> None:
    """The server lets this user have no more: whoever wanted another one would be refused."""
    ws = await opening(url)
    async with ws.watch(recursive=True, poll_interval_ms=3_600_000) as events:
        await events.ready()
        following = asyncio.create_task(take(events, 20, within=30))
        work = [ws.append(f"/workspace/{n % 4}", "x") for n in range(20)]
        work += [ws.append("/workspace/a", "x", namespace=f"n{n}") for n in range(20)]
        work += [ws.write(f"/workspace/{n}.bin", bytes(600_000), namespace="b") for n in range(4)]
        await asyncio.gather(*work)
        assert len(await following) == 20
        reads = [ws.read_text("/workspace/a", namespace=f"n{n}") for n in range(20)]
        assert await asyncio.gather(*reads) == ["x"] * 20
