"""Which schemas this version of the library can work with."""

from __future__ import annotations

from functools import partial

from crux_workspace.errors import ErrorCode, StateError
from storage_adapters.sql.postgres.database import Database, Query, Rows

__all__ = ["OLDEST_USER", "SCHEMA_VERSION", "check_version"]

SCHEMA_VERSION = 2
"""Number of the newest migration: what this version needs at least."""

OLDEST_USER = 2
"""The oldest `SCHEMA_VERSION` whose code still works on the newest schema. A step that older code cannot live with raises it."""


async def check_version(database: Database) -> bool:
    """Refuse a schema that this version cannot work with; returns whether something waits to be swept.

    Raises:
        StateError: It was never migrated, is older than this version needs, or too new for it (``SCHEMA_OUT_OF_DATE``).
        StorageError: The server cannot be reached, or refuses.
    """

    def query(text: str) -> Query[Rows]:
        return (yield text, ())

    rows = await database.read(partial(query, database.texts.version))
    version, oldest = rows[0] if rows else (0, 0)
    if version < SCHEMA_VERSION:
        raise _out_of_date(
            f"the database has schema {version}, this version needs {SCHEMA_VERSION}; "
            "run: crux-workspace migrate URL",
            version,
        )
    if oldest > SCHEMA_VERSION:
        raise _out_of_date(
            f"the database has schema {version}, which only versions that know schema {oldest} can use, "
            f"this one knows {SCHEMA_VERSION}; upgrade the library",
            version,
        )
    [[waiting]] = await database.read(partial(query, database.texts.waiting))
    return bool(waiting)


def _out_of_date(message: str, found: int) -> StateError:
    return StateError(
        message,
        code=ErrorCode.SCHEMA_OUT_OF_DATE,
        details={"found": found, "known": SCHEMA_VERSION},
    )
