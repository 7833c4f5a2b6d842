"""Opening a database: look before touching, upgrade under a lock, then connect."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from crux_workspace.errors import ErrorCode, StateError, StorageError, UnsupportedError
from storage_adapters.sql.locking import WriteLock
from storage_adapters.sql.statements import APPLICATION_ID, SCHEMA_VERSION

__all__ = [
    "BUSY_TIMEOUT_S",
    "Connections",
    "Durability",
    "connect",
    "ensure_current",
    "open_connections",
]

Durability = Literal["full", "normal"]

BUSY_TIMEOUT_S = 30.0
_READER_CACHE_KIB = 16_384
"""Pages that reads in place keep: listing a thousand folders comes by as many leaves, more than the 2 MB that SQLite keeps by itself."""
_CHECKPOINT_PAGES = 4000
_LARGEST_IDLE_WAL_BYTES = 64 << 20
_CACHED_STATEMENTS = 256
_OLDEST_SQLITE = (3, 38, 0)


@dataclass(slots=True)
class Connections:
    """What a store holds open: the writer's connection, the one for reads in place, and the write lock."""

    writer: sqlite3.Connection
    reader: sqlite3.Connection
    lock: WriteLock

    def close(self) -> None:
        """Close everything; the writer last, so that its checkpoint finds nobody in its way."""
        self.reader.close()
        self.writer.close()
        self.lock.close()


def connect(
    path: Path, mode: Literal["ro", "rw", "rwc"], *, timeout_s: float
) -> sqlite3.Connection:
    """Open one connection in autocommit mode; it may move between threads, one at a time."""
    return sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=timeout_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_CACHED_STATEMENTS,
    )


def open_connections(path: Path, *, durability: Durability, create: bool) -> Connections:
    """Bring the schema up to date and connect.

    Raises:
        StorageError: The file or its folder is missing, is no database, or cannot be opened.
        StateError: A newer version of the library wrote the database (``SCHEMA_OUT_OF_DATE``).
    """
    ensure_current(path, create=create)
    lock = WriteLock(path)
    opened: list[sqlite3.Connection] = []
    try:
        writer = connect(path, "rw", timeout_s=BUSY_TIMEOUT_S)
        opened.append(writer)
        writer.execute(f"pragma synchronous = {durability}")
        writer.execute(f"pragma wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        writer.execute(f"pragma journal_size_limit = {_LARGEST_IDLE_WAL_BYTES}").fetchall()
        reader = connect(path, "rw", timeout_s=0)
        opened.append(reader)
        reader.execute("pragma query_only = 1")
        reader.execute(f"pragma cache_size = -{_READER_CACHE_KIB}")
    except BaseException:
        for connection in opened:
            connection.close()
        lock.close()
        raise
    return Connections(writer, reader, lock)


def ensure_current(path: Path, *, create: bool = True) -> None:
    """Create or upgrade the schema where needed; a current database costs one look."""
    _require_sqlite()
    if _version(path, create) == SCHEMA_VERSION:
        return
    from storage_adapters.sql.upgrading import upgrade

    lock = WriteLock(path)
    try:
        lock.acquire(BUSY_TIMEOUT_S)
        if _version(path, create) != SCHEMA_VERSION:
            upgrade(path)
    finally:
        lock.release()
        lock.close()


def _version(path: Path, create: bool) -> int:
    """Return the schema version of a database of ours, 0 for one that is empty or missing."""
    if not path.exists():
        if not path.absolute().parent.is_dir():
            raise StorageError("the folder of the database does not exist; create it first")
        if not create:
            raise StorageError("there is no database at this path; create it first")
        return 0
    if path.is_dir():
        raise StorageError("the path of the database is a folder; name a file in it")
    application, version, tables = _look(path)
    if version == 0 and tables == 0:
        return 0
    if application != APPLICATION_ID:
        raise StorageError(
            "the file is a database of another program; choose another path",
            code=ErrorCode.RECORD_CORRUPT,
        )
    if version > SCHEMA_VERSION:
        raise StateError(
            f"the database has schema {version}, this library knows up to {SCHEMA_VERSION}; upgrade it",
            code=ErrorCode.SCHEMA_OUT_OF_DATE,
            details={"found": version, "known": SCHEMA_VERSION},
        )
    return version


def _look(path: Path) -> tuple[int, int, int]:
    """Return (application id, user version, number of tables), changing nothing where that can be had."""
    try:
        return _headers(path, "ro")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            raise
        # What a crash left behind must be rolled back before it can be read.
        return _headers(path, "rw")


def _headers(path: Path, mode: Literal["ro", "rw"]) -> tuple[int, int, int]:
    connection = connect(path, mode, timeout_s=BUSY_TIMEOUT_S)
    try:
        ((application,),) = connection.execute("pragma application_id").fetchall()
        ((version,),) = connection.execute("pragma user_version").fetchall()
        ((tables,),) = connection.execute("select count(*) from sqlite_master").fetchall()
    finally:
        connection.close()
    return application, version, tables


def _require_sqlite() -> None:
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        wanted = ".".join(map(str, _OLDEST_SQLITE))
        raise UnsupportedError(f"SQLite {sqlite3.sqlite_version} is too old; {wanted} is needed")
