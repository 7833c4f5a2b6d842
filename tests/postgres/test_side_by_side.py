"""Two schemas, two databases, other orders of text: nothing is shared, and order is by code point everywhere."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from crux_workspace.errors import InvalidInputError, UnsupportedError
from storage_adapters import migrate
from storage_adapters.sql.postgres import PostgresRecordStore
from tests.adapters.conftest import Writing
from tests.postgres.conftest import Opening
from tests.support.postgres import PostgresServer, serving
from tests.watch.conftest import nothing_from, take

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(120)]

A = "/workspace/a.md"
ODD = 'sché\'ma "x"; --'


async def test_two_schemas_and_two_databases_share_nothing(
    postgres_server: PostgresServer, postgres_url: str, opening: Opening
) -> None:
    await postgres_server.create("second")
    others = [postgres_server.url(schema=ODD), postgres_server.url("second")]
    for url in others:
        migrate(url)
    first = await opening(postgres_url)
    second, third = [await opening(url) for url in others]
    async with first.watch(recursive=True, poll_interval_ms=20) as feed:
        for number, ws in enumerate((first, second, third), 1):
            await ws.write(A, f"{number}")
            await ws.write("/workspace/b.bin", bytes([number]) * 400_000)
        assert [event.sequence for event in await take(feed, 2)] == [1, 2]
        await nothing_from(feed, for_s=0.2)
    for number, ws in enumerate((first, second, third), 1):
        assert await ws.read_text(A) == f"{number}"
        assert await ws.read_bytes("/workspace/b.bin") == bytes([number]) * 400_000
        assert [entry.sequence for entry in await ws.log()] == [2, 1]
    await second.drop_namespace("default")
    assert (await second.namespaces()).names == []
    assert (await first.namespaces()).names == (await third.namespaces()).names == ["default"]


async def test_locks_of_two_schemas_do_not_meet(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    other_url = postgres_server.url(schema="other", lock_timeout_ms=200)
    migrate(other_url)
    async with (
        await PostgresRecordStore.open(postgres_url) as one,
        await PostgresRecordStore.open(other_url) as other,
        one.database.holding("p"),
    ):
        assert (await other.commit_planned("p", Writing().plan("a"))).sequence == 1


@pytest.mark.parametrize("schema", ["", "pg_catalog", "x" * 64])
async def test_names_that_no_schema_can_have_are_refused(schema: str) -> None:
    with pytest.raises(InvalidInputError, match="schema"):
        await PostgresRecordStore.open(f"postgresql://localhost/crux?schema={schema}")


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A server whose own order of text is the other way round."""
    localedef = shutil.which("localedef")
    assert localedef is not None, "localedef comes with the C library"
    folder = tmp_path_factory.mktemp("locales")
    folder.chmod(0o755)
    for parent in folder.parents:
        if parent.stat().st_uid == os.geteuid():
            parent.chmod(parent.stat().st_mode | 0o011)
    here = Path(__file__).parent / "locales"
    made = subprocess.run(
        [
            localedef,
            "-c",
            "-f",
            here / "charmap",
            "-i",
            here / "upside_down",
            folder / "xx_XX.UTF-8",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (folder / "xx_XX.UTF-8" / "LC_COLLATE").exists(), made.stderr
    with serving(
        init=("--locale=C", "--lc-collate=xx_XX.UTF-8"), environment={"LOCPATH": str(folder)}
    ) as server:
        yield server


async def test_order_is_by_code_point_whatever_the_database_orders_by(
    elsewhere: PostgresServer, opening: Opening
) -> None:
    plain = await elsewhere.connect()
    names = ["B", "a", "b", "A"]
    ordered = await plain.fetch("select x from unnest($1::text[]) x order by x", names)
    assert [row[0] for row in ordered] != sorted(names), "the database has an order of its own"
    await plain.close()
    ws = await opening(elsewhere.url())
    for name in (*names, "é", "z/1", "z.md", "Ä"):
        await ws.write(f"/workspace/{name}", name)
    expected = sorted(["/workspace/" + n for n in (*names, "é", "z.md", "Ä", "z")])
    assert [entry.path for entry in await ws.list("/workspace")] == expected
    await ws.delete("/workspace/z", recursive=True)
    found = [entry.path async for entry in ws.walk("/workspace")]
    assert found == sorted(found)
    files = [file async for file in ws.walk("/workspace")]
    assert len(files) == 7
    for name in ("n:B", "n:a", "n:b", "n:A"):
        await ws.write(A, "x", namespace=name)
    assert (await ws.namespaces("n:")).names == ["n:A", "n:B", "n:a", "n:b"]
    page = await ws.list("/workspace", limit=2)
    paths = [entry.path for entry in page]
    while page.cursor:
        page = await ws.list("/workspace", limit=2, cursor=page.cursor)
        paths += [entry.path for entry in page]
    assert paths == found


async def test_every_column_of_text_is_ordered_by_code_point(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    connection = await postgres_server.connect()
    rows = await connection.fetch(
        "select c.relname, a.attname, l.collname from pg_attribute a join pg_class c on c.oid = a.attrelid "
        "join pg_collation l on l.oid = a.attcollation "
        "where c.relnamespace = 'crux_workspace'::regnamespace and c.relkind in ('r', 'i') and a.attnum > 0 "
        "and c.relname not like 'alembic%'"
    )
    await connection.close()
    assert {row[2] for row in rows} == {"C"}
    assert ("records", "key") in {(row[0], row[1]) for row in rows}


async def test_a_database_that_does_not_keep_utf8_is_refused(
    postgres_server: PostgresServer,
) -> None:
    await postgres_server.create(
        "latin", "encoding 'LATIN1' template template0 lc_collate 'C' lc_ctype 'C'"
    )
    with pytest.raises(UnsupportedError, match="LATIN1") as refused:
        await asyncio.to_thread(migrate, postgres_server.url("latin"))
    assert refused.value.code == "CAPABILITY_MISSING"
