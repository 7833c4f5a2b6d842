"""Schema migrations, run by Alembic. Importing this module is slow; only an outdated database needs it."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from storage_adapters.sql.opening import BUSY_TIMEOUT_S, connect
from storage_adapters.sql.statements import APPLICATION_ID, SCHEMA_VERSION

__all__ = ["migrations_folder", "upgrade"]

_alembic = threading.Lock()
"""Alembic keeps the running migration in module globals."""


def migrations_folder() -> Path:
    """Return where the migrations are: in the installed package, or at the top of a checkout."""
    installed = Path(__file__).with_name("migrations")
    return installed if installed.is_dir() else Path(__file__).parents[2] / "migrations"


def upgrade(path: Path) -> None:
    """Bring a database to the newest schema, in one transaction: after a crash it is as it was before.

    The caller holds the write lock.
    """
    connection = connect(path, "rwc", timeout_s=BUSY_TIMEOUT_S)
    try:
        connection.execute("pragma journal_mode = wal").fetchall()
        _migrate(connection)
    except DBAPIError as error:
        raise error.orig or error from error
    finally:
        connection.close()


def _migrate(connection: sqlite3.Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    engine = _engine(connection)
    try:
        with _alembic, engine.connect() as ours:
            ours.exec_driver_sql("begin exclusive")
            try:
                ((version,),) = ours.exec_driver_sql("pragma user_version").fetchall()
                if version != SCHEMA_VERSION:
                    config.attributes["connection"] = ours
                    command.upgrade(config, "head")
                    ours.execute(text(f"pragma application_id = {APPLICATION_ID}"))
                    ours.execute(text(f"pragma user_version = {SCHEMA_VERSION}"))
                ours.exec_driver_sql("commit")
            except BaseException:
                if connection.in_transaction:
                    connection.rollback()
                raise
    finally:
        engine.dispose()


def _engine(connection: sqlite3.Connection) -> Engine:
    """An engine on our connection, which is in autocommit mode: BEGIN and COMMIT are ours."""
    return create_engine(
        "sqlite://", creator=lambda: connection, poolclass=StaticPool, isolation_level=None
    )
