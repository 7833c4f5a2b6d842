"""What a ``sqlite://`` URL means."""

from __future__ import annotations

from pathlib import Path
from typing import cast
from urllib.parse import parse_qsl, unquote, urlsplit

from crux_workspace.errors import InvalidInputError
from crux_workspace.storage.bundle import OpenedRecords
from storage_adapters.sql.opening import Durability, ensure_current
from storage_adapters.sql.store import SqliteRecordStore

__all__ = ["migrate", "sqlite_backend"]

_DURABILITIES = ("full", "normal")


async def sqlite_backend(url: str, *, create: bool = True) -> OpenedRecords:
    """Open the records of ``sqlite:///relative.db`` or ``sqlite:////absolute.db``, with ``?durability=full|normal``.

    Assets nobody chose a place for go to a folder beside the file.
    """
    path, durability = _parse(url)
    store = await SqliteRecordStore.open(path, durability=durability, create=create)
    beside = path.absolute()
    return OpenedRecords(store, beside.with_name(beside.name + ".assets").as_uri())


def migrate(target: str | Path) -> None:
    """Bring a database's schema up to date, creating the database where there is none.

    Args:
        target: A path, or a ``sqlite://`` URL.

    Raises:
        StorageError: The file is no database of this library, or cannot be opened.
        StateError: A newer version of the library wrote the database (``SCHEMA_OUT_OF_DATE``).
    """
    path = _parse(target)[0] if isinstance(target, str) and "://" in target else Path(target)
    ensure_current(path)


def _parse(url: str) -> tuple[Path, Durability]:
    parts = urlsplit(url)
    if parts.netloc or len(parts.path) < 2 or parts.path.endswith("/"):
        raise InvalidInputError(
            "A SQLite URL names a file: sqlite:///relative.db or sqlite:////absolute.db."
        )
    if parts.path == "/:memory:":
        raise InvalidInputError("SQLite's :memory: is not offered; use memory://.")
    durability = "full"
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name != "durability":
            raise InvalidInputError("A SQLite URL knows one option: durability=full|normal.")
        if value not in _DURABILITIES:
            raise InvalidInputError("The durability of a SQLite URL is full or normal.")
        durability = value
    return Path(unquote(parts.path[1:])), cast("Durability", durability)
