"""What the server refuses is a typed error of ours, and no credential is ever repeated."""

from __future__ import annotations

import logging
import traceback
from collections.abc import AsyncIterator
from typing import Any

import pytest

from crux_workspace import open_workspace
from crux_workspace.errors import InvalidInputError, StateError, StorageError, WorkspaceError
from storage_adapters import migrate, open_storage
from storage_adapters.sql.postgres import PostgresRecordStore
from storage_adapters.sql.postgres.address import parse
from tests.postgres.conftest import Opening
from tests.support.postgres import PostgresServer

pytestmark = pytest.mark.postgres

SECRET = "hunter2-s3cret"  # noqa: S105 - to be found where it must not be


@pytest.fixture
async def own_rules(postgres_server: PostgresServer) -> AsyncIterator[PostgresServer]:
    """The server with a user that needs a password, and one that may only read."""
    rules = postgres_server.data / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text("local all guarded scram-sha-256\n" + before)
    admin = await postgres_server.connect()
    await admin.execute(f"create role guarded login password '{SECRET}'; create role reader login")
    await admin.execute(
        "grant usage on schema crux_workspace to guarded, reader;"
        "grant select on all tables in schema crux_workspace to guarded, reader"
    )
    await admin.execute("select pg_reload_conf()")
    yield postgres_server
    rules.write_text(before)
    await admin.execute("drop owned by guarded, reader; drop role guarded, reader")
    await admin.execute("select pg_reload_conf()")
    await admin.close()


def _url(server: PostgresServer, user: str, password: str = SECRET, **options: Any) -> str:
    return server.url(**options).replace("postgres@", f"{user}:{password}@", 1)


async def test_credentials_are_in_no_error_no_repr_and_no_log(
    own_rules: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[str] = []
    async with open_storage(_url(own_rules, "guarded")) as opened:
        told += [repr(opened), repr(opened.records), repr(opened.assets)]
        records = opened.records
        assert isinstance(records, PostgresRecordStore)
        told += [repr(records.database), repr(records.database.address)]
        told.append(str(records.database.address))
        with pytest.raises(StorageError) as unable:
            await records.drop("p")
        told += _all_of(unable.value)
    wrong = [
        _url(own_rules, "guarded", f"{SECRET}-wrong"),
        _url(own_rules, "guarded", SECRET, schema="unheard_of"),
        f"postgresql://guarded:{SECRET}@127.0.0.1:1/crux",
        f"postgresql://guarded:{SECRET}@no-such-host.invalid/crux",
        f"postgresql://guarded:{SECRET}@localhost:99999/crux",
        f"postgresql://guarded:p@{SECRET}:x@localhost/crux",
        f"postgresql://guarded:{SECRET}@localhost/crux?{SECRET}=1",
        f"postgresql://guarded@localhost/crux?password={SECRET}&pool_size={SECRET}",
        f"postgresql://localhost/crux?listen_url=postgresql://guarded:{SECRET}@localhost:{SECRET}/crux",
        f"postgresql://localhost/crux?listen_url={SECRET}",
        f"postgresql://guarded:{SECRET}@localhost/crux?sslmode={SECRET}",
        f"postgresql://guarded:{SECRET}@localhost/crux?target_session_attrs={SECRET}",
    ]
    for url in wrong:
        with pytest.raises(WorkspaceError) as refused:
            await open_workspace(url)
        told += _all_of(refused.value)
    told += [record.getMessage() + str(record.args) for record in caplog.records]
    assert len(told) > len(wrong)
    for line in told:
        assert SECRET not in line


def _all_of(error: WorkspaceError) -> list[str]:
    """Return everything that an error says, what it was raised from included."""
    return [
        repr(error),
        str(error.to_dict()),
        "".join(traceback.format_exception(error, limit=0)),
    ]


@pytest.mark.parametrize(
    ("user", "password", "database", "code", "words"),
    [
        ("guarded", "wrong", "crux", "STORE_UNAVAILABLE", "password"),
        ("nobody-at-all", "", "crux", "STORE_UNAVAILABLE", "refused this user"),
        ("postgres", "", "no_such_database", "STORE_UNAVAILABLE", "no database of this name"),
    ],
)
async def test_who_is_not_let_in_is_told_why_and_need_not_try_again(
    own_rules: PostgresServer, user: str, password: str, database: str, code: str, words: str
) -> None:
    url = own_rules.url(database).replace("postgres@", f"{user}:{password}@", 1)
    with pytest.raises(StorageError, match=words) as refused:
        await open_workspace(url)
    assert refused.value.code == code
    assert not refused.value.retryable


async def test_a_user_who_may_only_read_reads(own_rules: PostgresServer, opening: Opening) -> None:
    await own_rules_written(own_rules, opening)
    ws = await opening(_url(own_rules, "reader", ""))
    assert await ws.read_text("/workspace/a") == "1"
    with pytest.raises(StorageError, match="no right"):
        await ws.write("/workspace/a", "2")


async def own_rules_written(server: PostgresServer, opening: Opening) -> None:
    server.empty()
    ws = await opening(server.url())
    await ws.write("/workspace/a", "1")


async def test_a_server_that_is_full_says_so(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    admin = await postgres_server.connect()
    await admin.execute("create role few login connection limit 1")
    await admin.execute("grant usage on schema crux_workspace to few")
    await admin.execute("grant select on all tables in schema crux_workspace to few")
    url = _url(postgres_server, "few", "")
    async with await PostgresRecordStore.open(url):
        with pytest.raises(StorageError, match="no more connections") as full:
            await PostgresRecordStore.open(url)
    assert full.value.code == "STORE_UNAVAILABLE"
    await admin.execute("drop owned by few; drop role few")
    await admin.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:crux",
        "postgresql://host:0/crux",
        "postgresql://host/crux?pool_size=0",
        "postgresql://host/crux?pool_size=1001",
        "postgresql://host/crux?pool_size=x",
        "postgresql://host/crux?lock_timeout_ms=-1",
        "postgresql://host/crux?search_path=x",
        "postgresql://host/crux?listen_url=http://host",
        "postgresql://host/crux?listen_url=postgresql://host/crux%3Fpool_size%3D3",
    ],
)
def test_urls_that_nobody_can_open(url: str) -> None:
    with pytest.raises(InvalidInputError):
        parse(url)


def test_what_a_url_says() -> None:
    address = parse(
        "postgres://u:p%40ss@[::1]:6432,second:5432/crux?schema=s&pool_size=7&lock_timeout_ms=1&statement_timeout_ms=2"
        "&connect_timeout_ms=3&sslmode=require&application_name=fleet&listen_url=postgresql://u:q@direct/crux"
    )
    assert address.dsn == (
        "postgresql://u:p%40ss@[::1]:6432,second:5432/crux?sslmode=require&application_name=fleet"
    )
    assert address.shown == "postgresql://[::1]:6432,second:5432/crux"
    assert address.direct.dsn == "postgresql://u:q@direct/crux"
    assert (address.options.proxied, address.direct.options.proxied) == (True, False)
    options = address.options
    assert (options.schema, options.pool_size) == ("s", 7)
    assert (options.lock_timeout_ms, options.statement_timeout_ms) == (1, 2)
    assert options.connect_timeout_ms == 3


async def test_a_database_that_was_not_migrated_is_told_apart(
    postgres_server: PostgresServer,
) -> None:
    for url in (postgres_server.url("postgres"), postgres_server.url(schema="never_made")):
        with pytest.raises(StateError, match="crux-workspace migrate") as unmigrated:
            await open_workspace(url)
        assert unmigrated.value.code == "SCHEMA_OUT_OF_DATE"


def test_a_server_that_is_away_cannot_be_migrated() -> None:
    with pytest.raises(StorageError, match="cannot be reached") as away:
        migrate(f"postgresql://u:{SECRET}@127.0.0.1:1/crux")
    assert SECRET not in "".join(traceback.format_exception(away.value, limit=0))
