"""The schema: made and brought up to date from any revision, by one process at a time, and told apart when it does not fit."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from crux_workspace.errors import StateError
from storage_adapters import migrate
from storage_adapters.sql.postgres import PostgresRecordStore, versions
from storage_adapters.sql.postgres.address import parse
from storage_adapters.sql.postgres.database import connect
from storage_adapters.sql.postgres.schema import metadata
from storage_adapters.sql.postgres.upgrading import upgrade
from storage_adapters.sql.upgrading import migrations_folder
from tests.adapters.conftest import Writing
from tests.postgres.conftest import Opening
from tests.support.postgres import PostgresServer

pytestmark = pytest.mark.postgres

A = "/workspace/a.md"


def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(migrations_folder() / "postgres"))
    return ScriptDirectory.from_config(config)


REVISIONS = [script.revision for script in reversed(list(scripts().walk_revisions()))]


@pytest.fixture
async def url(postgres_server: PostgresServer) -> AsyncIterator[str]:
    """A database without a schema of ours."""
    admin = await postgres_server.connect("postgres")
    await admin.execute("drop database if exists fresh with (force)")
    await admin.execute("create database fresh")
    yield postgres_server.url("fresh")
    await admin.execute("drop database if exists fresh with (force)")
    await admin.close()


async def execute(url: str, text: str) -> list[asyncpg.Record]:
    connection = await connect(parse(url))
    found = await connection.fetch(text)
    await connection.close()
    return found


def test_the_newest_revision_is_what_this_version_needs() -> None:
    assert int(scripts().get_current_head() or 0) == versions.SCHEMA_VERSION == len(REVISIONS)
    assert versions.OLDEST_USER <= versions.SCHEMA_VERSION


async def test_an_empty_database_becomes_what_the_tables_say(url: str) -> None:
    migrate(url)
    address = parse(url)
    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=lambda: connect(address), poolclass=NullPool
    )

    def differences(connection: Connection) -> list[Any]:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "include_schemas": True,
                "version_table_schema": "crux_workspace",
                "include_name": lambda name, kind, _: kind != "schema" or name == "crux_workspace",
            },
        )
        found: list[Any] = compare_metadata(context, metadata("crux_workspace"))
        return found

    async with engine.connect() as opened:
        assert await opened.run_sync(differences) == []
    await engine.dispose()


@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_revision_comes_to_the_newest_with_its_data(
    url: str, opening: Opening, revision: str
) -> None:
    upgrade(parse(url), to=revision)
    if int(revision) < versions.SCHEMA_VERSION:
        with pytest.raises(StateError, match="crux-workspace migrate") as old:
            await PostgresRecordStore.open(url)
        assert old.value.code == "SCHEMA_OUT_OF_DATE"
        assert old.value.details == {"found": int(revision), "known": versions.SCHEMA_VERSION}
    await execute(
        url,
        "select crux_workspace.commit_1('default' || chr(1) || 'default' || chr(1), 'c1', 5, null, null, null, null, "
        "false, null, null, null, null, null, null, null, null, false, '{}', "
        "array['k' || chr(1), 'log' || chr(1) || chr(4) || chr(1)], "
        'array[\'{}\', \'{"id":"c1","verb":"write"}\']::bytea[], array[\'body\', null]::bytea[], null, null, 1)',
    )
    migrate(url)
    async with await PostgresRecordStore.open(url) as store:
        partition = "default\x01default\x01"
        [record] = await store.get_many(partition, ["k\x01"])
        assert record is not None
        assert (record.value, record.body, record.revision, record.at) == (b"{}", b"body", 1, 5)
    ws = await opening(url)
    await ws.write(A, "2")
    await ws.write("/workspace/b.bin", bytes(400_000))
    assert [entry.sequence for entry in await ws.log()] == [3, 2, 1]


async def test_migrating_again_and_from_many_at_once_is_done_once(
    url: str, opening: Opening
) -> None:
    code = "import sys; from storage_adapters import migrate; migrate(sys.argv[1])"
    command = [sys.executable, "-c", code, url]
    running = [
        await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        for _ in range(3)
    ]
    for process in running:
        _, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()
    migrate(url)
    assert [row[0] for row in await execute(url, "table crux_workspace.alembic_version")] == [
        REVISIONS[-1]
    ]
    assert len(await execute(url, "table crux_workspace.compatibility")) == 1
    await (await opening(url)).write(A, "x")


async def test_who_migrates_waits_for_another_who_does(url: str) -> None:
    other = await connect(parse(url))
    doing = other.transaction()
    await doing.start()
    await other.execute("select pg_advisory_xact_lock(hashtextextended('crux_workspace', 1))")
    migrating = asyncio.create_task(asyncio.to_thread(migrate, url))
    waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    async with asyncio.timeout(20):
        while not await other.fetchval(waiting):
            assert not migrating.done(), "it did not wait"
            await asyncio.sleep(0.01)
    assert await other.fetchval("select to_regnamespace('crux_workspace')") is None
    await doing.commit()
    await migrating
    assert await other.fetchval("select count(*) from crux_workspace.compatibility") == 1
    await other.close()


async def test_migrating_waits_for_commits_and_they_for_it(url: str) -> None:
    migrate(url)
    async with await PostgresRecordStore.open(url) as store:
        writing = Writing()
        await store.commit_planned("p", writing.plan("a"))
        async with store.database.holding("p"):
            await asyncio.wait_for(asyncio.to_thread(migrate, url), 20)
        assert (await store.commit_planned("p", writing.plan("a"))).sequence == 2


async def test_a_migration_that_fails_leaves_everything_as_it_was(url: str) -> None:
    upgrade(parse(url), to="0001")
    await execute(url, "create table crux_workspace.pieces (x integer)")
    with pytest.raises(Exception, match="refused the statement"):
        migrate(url)
    assert [row[0] for row in await execute(url, "table crux_workspace.alembic_version")] == [
        "0001"
    ]
    assert await execute(url, "select 1 from pg_class where relname = 'assets'") == []
    await execute(url, "drop table crux_workspace.pieces")
    migrate(url)


async def test_old_code_works_on_a_newer_schema_that_allows_it_and_refuses_one_that_does_not(
    url: str, opening: Opening
) -> None:
    migrate(url)
    await execute(url, "update crux_workspace.compatibility set version = 9, oldest = 2")
    await (await opening(url)).write(A, "1")
    with pytest.raises(StateError, match="newer version") as downgraded:
        migrate(url)
    assert downgraded.value.code == "SCHEMA_OUT_OF_DATE"
    await execute(url, "update crux_workspace.compatibility set oldest = 9")
    with pytest.raises(StateError, match="upgrade the library") as refused:
        await PostgresRecordStore.open(url)
    assert refused.value.code == "SCHEMA_OUT_OF_DATE"
    assert refused.value.details == {"found": 9, "known": versions.SCHEMA_VERSION}


async def test_code_that_is_running_while_its_functions_go_away_stops_without_harm(
    url: str, opening: Opening
) -> None:
    migrate(url)
    ws = await opening(url)
    await ws.write(A, "1")
    await execute(url, "alter schema crux_workspace rename to moved")
    for call in (ws.read_text(A), ws.append(A, "2")):
        with pytest.raises(StateError) as gone:
            await call
        assert gone.value.code == "SCHEMA_OUT_OF_DATE"
    await execute(url, "alter schema moved rename to crux_workspace")
    await ws.append(A, "3")
    assert await ws.read_text(A) == "13"


async def test_the_command_line_migrates_and_shows_no_credentials(url: str) -> None:
    shown = url.replace("postgres@", "postgres:hunter2@")
    command = [sys.executable, "-m", "crux_workspace.cli", "migrate", shown]
    for _ in range(2):
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        out, _ = await process.communicate()
        assert process.returncode == 0, out.decode()
        assert "is up to date" in out.decode()
        assert "hunter2" not in out.decode()
    async with await PostgresRecordStore.open(url) as store:
        assert await store.sequences(["p"]) == [0]
