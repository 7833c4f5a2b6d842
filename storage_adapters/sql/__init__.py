"""Records in SQL databases."""

from storage_adapters.sql.backend import migrate, sqlite_backend
from storage_adapters.sql.store import SqliteRecordStore

__all__ = ["SqliteRecordStore", "migrate", "sqlite_backend"]
