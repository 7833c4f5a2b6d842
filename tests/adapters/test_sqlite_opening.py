# ruff: noqa: ASYNC240 - tests may look at files
"""Opening, upgrading and refusing databases."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crux_workspace.errors import ErrorCode, StateError, StorageError
from storage_adapters.sql import SqliteRecordStore, migrate
from storage_adapters.sql.statements import APPLICATION_ID, SCHEMA_VERSION

PART = "ws\x01n\x01"

_OPEN = """
import asyncio, sys
from storage_adapters.sql import SqliteRecordStore
async def main():
    print("ready", flush=True)
    async with await SqliteRecordStore.open(sys.argv[1]) as store:
        print(await store.sequences(["x"]))
asyncio.run(main())
"""


def _sql(path: Path, *texts: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return [connection.execute(text).fetchall() for text in texts]


async def test_a_fresh_database_is_marked_as_ours(path: Path) -> None:
    async with await SqliteRecordStore.open(path):
        pass
    (application, version, mode) = _sql(
        path, "pragma application_id", "pragma user_version", "pragma journal_mode"
    )
    assert (application, version) == ([(APPLICATION_ID,)], [(SCHEMA_VERSION,)])
    assert mode == [("wal",)]


def test_migrations_lead_to_the_declared_tables(path: Path) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext
    from sqlalchemy import create_engine

    from storage_adapters.sql.schema import metadata

    migrate(path)
    migrate(f"sqlite:///{path}")  # a second time changes nothing
    declared = path.with_name("declared.db")
    for file in (path, declared):
        engine = create_engine(f"sqlite:///{file}")
        metadata.create_all(engine)
        with engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            found = compare_metadata(context, metadata)
        engine.dispose()
        assert [d for d in found if getattr(d[1], "name", "") != "alembic_version"] == []
    tables = "select name, replace(sql, char(9), '') from sqlite_master where name <> 'alembic_version' order by 1"
    assert [row for row in _sql(path, tables)[0] if "alembic" not in row[0]] == _sql(
        declared, tables
    )[0]


def test_the_newest_migration_is_the_schema_version() -> None:
    from storage_adapters.sql.upgrading import migrations_folder

    numbers = [int(f.name[:4]) for f in (migrations_folder() / "versions").glob("[0-9]*.py")]
    assert max(numbers) == SCHEMA_VERSION


async def test_a_file_that_is_no_database_is_left_alone(path: Path) -> None:
    path.write_bytes(b"not a database at all " * 100)
    with pytest.raises(StorageError) as refused:
        await SqliteRecordStore.open(path)
    assert refused.value.code == ErrorCode.RECORD_CORRUPT
    assert path.read_bytes() == b"not a database at all " * 100


async def test_another_programs_database_is_left_alone(path: Path) -> None:
    _sql(path, "create table theirs(x)")
    before = path.read_bytes()
    with pytest.raises(StorageError, match="another program") as refused:
        await SqliteRecordStore.open(path)
    assert refused.value.code == ErrorCode.RECORD_CORRUPT
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_a_newer_schema_is_refused(path: Path) -> None:
    migrate(path)
    _sql(path, "pragma user_version = 99")
    with pytest.raises(StateError) as refused:
        await SqliteRecordStore.open(path)
    assert refused.value.code == ErrorCode.SCHEMA_OUT_OF_DATE


async def test_an_empty_file_becomes_a_database(path: Path) -> None:
    path.touch()
    async with await SqliteRecordStore.open(path) as store:
        assert await store.sequences([PART]) == [0]


async def test_missing_files_and_folders_are_named_as_such(path: Path) -> None:
    with pytest.raises(StorageError, match="folder"):
        await SqliteRecordStore.open(path / "no" / "such.db")
    with pytest.raises(StorageError, match="there is no database"):
        await SqliteRecordStore.open(path, create=False)
    with pytest.raises(StorageError, match="is a folder"):
        await SqliteRecordStore.open(path.parent)
    assert list(path.parent.iterdir()) == []


async def test_a_failed_upgrade_leaves_the_file_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from alembic import command

    def fail(*_: Any) -> None:
        raise RuntimeError("half way")

    with monkeypatch.context() as patched:
        upgrade = command.upgrade

        def half(*arguments: Any) -> None:
            upgrade(*arguments)
            fail()

        patched.setattr(command, "upgrade", half)
        with pytest.raises(RuntimeError):
            await SqliteRecordStore.open(path)
    assert _sql(path, "select count(*) from sqlite_master", "pragma user_version") == [
        [(0,)],
        [(0,)],
    ]
    async with await SqliteRecordStore.open(path) as store:
        assert await store.sequences([PART]) == [0]


def test_processes_that_open_a_fresh_file_at_once_all_succeed(
    path: Path, spawn: Callable[..., Any]
) -> None:
    processes = [spawn(_OPEN, str(path)) for _ in range(3)]
    assert [process.communicate(timeout=40)[0] for process in processes] == ["ready\n[0]\n"] * 3
    assert [process.returncode for process in processes] == [0, 0, 0]


def test_every_read_seeks(path: Path) -> None:
    from storage_adapters.sql import statements

    migrate(path)
    texts = [
        statements.read_records(4, bodies=True),
        statements.read_records(None, bodies=False),
        statements.read_known(2, bodies=True),
        statements.enter(2, bodies=False),
        statements.enter(None, bodies=True),
        statements.any_in_ranges(1),
        statements.page(bodies=True, contains=True, reverse=True),
        statements.page(bodies=False, contains=False, reverse=False),
        statements.boundary(reverse=False),
        statements.any_in_ranges(2),
        statements.CHILDREN,
        statements.SEQUENCES,
        statements.LOG_SINCE,
        statements.PARTITIONS,
    ]
    tables = ("r", "b", "p", "records", "bodies", "partitions")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for text in texts:
            numbered = re.findall(r"\?(\d+)", text)
            bare = len(re.findall(r"\?(?!\d)", text))
            count = max(map(int, numbered), default=0) + bare
            plan = connection.execute(f"explain query plan {text}", ["[]"] * count)
            steps = [row[3] for row in plan.fetchall()]
            scanned = [step.split()[1] for step in steps if step.startswith("SCAN ")]
            assert set(scanned).isdisjoint(tables), steps
            assert not any("TEMP B-TREE" in step for step in steps), steps
