"""Records and assets in PostgreSQL; needs the extra ``crux-workspace[postgres]``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from crux_workspace.errors import UnsupportedError
from crux_workspace.storage.assets import AssetStore
from crux_workspace.storage.bundle import OpenedRecords

if TYPE_CHECKING:
    from storage_adapters.sql.postgres.assets import PostgresAssetStore
    from storage_adapters.sql.postgres.store import PostgresRecordStore

__all__ = [
    "PostgresAssetStore",
    "PostgresRecordStore",
    "migrate",
    "postgres_assets_backend",
    "postgres_backend",
]

_DRIVERS = frozenset({"asyncpg", "greenlet"})


def __getattr__(name: str) -> object:
    if name == "PostgresRecordStore":
        with _extra():
            from storage_adapters.sql.postgres.store import PostgresRecordStore

            return PostgresRecordStore
    if name == "PostgresAssetStore":
        with _extra():
            from storage_adapters.sql.postgres.assets import PostgresAssetStore

            return PostgresAssetStore
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


async def postgres_backend(url: str, *, create: bool = True) -> OpenedRecords:
    """Open the records of ``postgresql://…``; assets nobody chose a place for go to the same database.

    Args:
        url: The database; `docs/deploy.md` names the options.
        create: Has no meaning here: a schema is only ever made by ``crux-workspace migrate``.
    """
    del create
    with _extra():
        from storage_adapters.sql.postgres.backend import open_records
    return await open_records(url)


async def postgres_assets_backend(url: str) -> AssetStore:
    """Open the assets of ``postgresql://…``, in the database whose tables are there."""
    with _extra():
        from storage_adapters.sql.postgres.backend import open_assets
    return await open_assets(url)


def migrate(url: str) -> None:
    """Create the schema that a ``postgresql://`` URL names, or bring it up to date; one process at a time.

    Raises:
        StateError: A newer version of the library made the schema (``SCHEMA_OUT_OF_DATE``).
        UnsupportedError: The database does not keep text as UTF-8, or the extra is missing (``CAPABILITY_MISSING``).
        StorageError: The server cannot be reached, or refuses.
    """
    with _extra():
        from storage_adapters.sql.postgres.backend import migrate as migrate_url

        import_module("greenlet")  # what SQLAlchemy needs to run Alembic over asyncpg
    migrate_url(url)


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in _DRIVERS:
            raise
        raise UnsupportedError(
            f"PostgreSQL needs the package {error.name}; install crux-workspace[postgres].",
            hint="pip install 'crux-workspace[postgres]'",
        ) from error
