"""The tables, as SQLAlchemy sees them; read by migrations and tests, never on the way of a request.

A record's body stands in a table of its own, so that a scan of keys and values never walks over bodies.
"""

from __future__ import annotations

from sqlalchemy import BLOB, Column, Integer, MetaData, Table, Text

__all__ = ["bodies", "metadata", "partitions", "records"]

metadata = MetaData()

partitions = Table(
    "partitions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)

records = Table(
    "records",
    metadata,
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("key", Text, primary_key=True),
    Column("revision", Integer, nullable=False),
    Column("at", Integer, nullable=False),
    Column("value", BLOB, nullable=False),
    Column("body_id", Integer),
    sqlite_with_rowid=False,
)

bodies = Table(
    "bodies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("data", BLOB, nullable=False),
)
