"""Schema migrations, run by Alembic in one transaction, one process at a time. Importing this module is slow."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from alembic import command, context
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from crux_workspace.errors import ErrorCode, StateError, UnsupportedError
from storage_adapters.sql.postgres.address import Address
from storage_adapters.sql.postgres.database import connect
from storage_adapters.sql.postgres.failures import LOST, connection_error, translated
from storage_adapters.sql.postgres.texts import quoted
from storage_adapters.sql.postgres.versions import OLDEST_USER, SCHEMA_VERSION
from storage_adapters.sql.upgrading import migrations_folder

__all__ = ["run", "upgrade"]

_alembic = threading.Lock()
"""Alembic keeps the running migration in module globals."""

_BETWEEN = re.compile(r";\n(?=create |alter |drop |insert )")


def upgrade(address: Address, *, to: str = "head") -> None:
    """Create the schema or bring it up to date; after a crash it is as it was before.

    Args:
        address: The database; a direct way to it is taken where there is one.
        to: A revision of the migrations.

    Raises:
        StateError: A newer version of the library made the schema (``SCHEMA_OUT_OF_DATE``).
        UnsupportedError: The database does not keep text as UTF-8 (``CAPABILITY_MISSING``).
        StorageError: The server cannot be reached, or refuses.
    """
    with _alembic:
        # In a thread of its own it works also where a loop is running.
        working = ThreadPoolExecutor(1)
        try:
            working.submit(asyncio.run, _upgrade(address.direct, to)).result()
        finally:
            working.shutdown()


def run(texts: str) -> None:
    """Run the statements of a migration, with `{schema}` and `{schema_name}` filled in."""
    name: str = context.config.attributes["schema"]
    connection: Connection = context.config.attributes["connection"]
    filled = texts.format(schema=quoted(name), schema_name=name.replace("'", "''"))
    for statement in _BETWEEN.split(filled.strip().rstrip(";")):
        connection.exec_driver_sql(statement)


async def _upgrade(address: Address, to: str) -> None:
    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=lambda: connect(address), poolclass=NullPool
    )
    try:
        async with engine.begin() as connection:
            await connection.run_sync(_migrating(address.options.schema, to))
    except DBAPIError as error:
        cause = _root(error)
        raise translated(cause) from cause
    except LOST as error:
        raise connection_error(error) from error
    finally:
        await engine.dispose()


def _root(error: DBAPIError) -> Exception:
    """Return the driver's own error, which SQLAlchemy wraps twice."""
    origin = error.orig
    cause = None if origin is None else origin.__cause__
    found = cause or origin
    return found if isinstance(found, Exception) else error


def _migrating(schema: str, to: str) -> Callable[[Connection], None]:
    def migrate(connection: Connection) -> None:
        _require_utf8(connection)
        # A migration may wait for what is going on, and for another process that migrates; both end.
        connection.execute(text("set local lock_timeout = 0"))
        connection.execute(text("set local statement_timeout = 0"))
        connection.execute(
            text("select pg_advisory_xact_lock(hashtextextended(:name, 1))"), {"name": schema}
        )
        connection.exec_driver_sql(f"create schema if not exists {quoted(schema)}")
        _refuse_newer(connection, schema)
        config = Config()
        folder = str(migrations_folder() / "postgres").replace("%", "%%")
        config.set_main_option("script_location", folder)
        config.attributes["connection"] = connection
        config.attributes["schema"] = schema
        command.upgrade(config, to)
        _note_version(connection, schema)

    return migrate


def _require_utf8(connection: Connection) -> None:
    encoding = connection.execute(text("show server_encoding")).scalar_one()
    if encoding != "UTF8":
        raise UnsupportedError(
            f"The database keeps text as {encoding}; names need UTF8. Create it with: encoding 'UTF8' template template0.",
        )


def _refuse_newer(connection: Connection, schema: str) -> None:
    name = f"{quoted(schema)}.compatibility"
    if connection.execute(text("select to_regclass(:name)"), {"name": name}).scalar() is None:
        return
    version = connection.exec_driver_sql(f"select max(version) from {name}").scalar()  # noqa: S608 - quoted
    if version is not None and version > SCHEMA_VERSION:
        raise StateError(
            f"the database has schema {version}, this version of the library knows up to {SCHEMA_VERSION}; "
            "migrate with the newer version",
            code=ErrorCode.SCHEMA_OUT_OF_DATE,
            details={"found": version, "known": SCHEMA_VERSION},
        )


def _note_version(connection: Connection, schema: str) -> None:
    name = quoted(schema)
    reached = connection.exec_driver_sql(
        f"select version_num::integer from {name}.alembic_version"  # noqa: S608 - quoted
    ).scalar_one()
    oldest = min(reached, OLDEST_USER)
    connection.exec_driver_sql(f"delete from {name}.compatibility")  # noqa: S608 - quoted
    connection.exec_driver_sql(
        f"insert into {name}.compatibility(version, oldest) values ({reached}, {oldest})"  # noqa: S608 - quoted
    )
