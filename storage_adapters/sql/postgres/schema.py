"""The tables, as SQLAlchemy sees them; read by migrations and tests, never on the way of a request."""

from __future__ import annotations

from functools import partial

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    text,
)

__all__ = ["metadata"]

_needed = partial(Column, nullable=False)


def _ordered() -> Text:
    """Text in code point order, whatever the database's own order is."""
    return Text(collation="C")


def metadata(schema: str) -> MetaData:
    """Describe the tables of one schema."""
    tables = MetaData(schema=schema)
    Table(
        "partitions",
        tables,
        Column("id", BigInteger, Identity(always=True), primary_key=True),
        _needed("name", _ordered(), unique=True),
    )
    Table(
        "records",
        tables,
        Column("part", BigInteger, primary_key=True, autoincrement=False),
        Column("key", _ordered(), primary_key=True),
        _needed("revision", BigInteger),
        _needed("at", BigInteger),
        _needed("value", LargeBinary),
        Column("body", BigInteger),
    )
    Table(
        "bodies",
        tables,
        Column("part", BigInteger, primary_key=True, autoincrement=False),
        Column("id", BigInteger, primary_key=True, autoincrement=False),
        _needed("data", LargeBinary),
    )
    Table("dropped", tables, Column("part", BigInteger, primary_key=True, autoincrement=False))
    Table("compatibility", tables, _needed("version", Integer), _needed("oldest", Integer))
    Table(
        "assets",
        tables,
        Column("id", BigInteger, Identity(always=True), primary_key=True),
        _needed("ref", _ordered(), unique=True),
        _needed("size", BigInteger),
        _needed("sha256", _ordered()),
        _needed("created_at", BigInteger),
        _needed("ready", Boolean),
        Index("assets_unready", "id", postgresql_where=text("not ready")),
    )
    Table(
        "pieces",
        tables,
        Column("asset", BigInteger, primary_key=True, autoincrement=False),
        Column("n", Integer, primary_key=True, autoincrement=False),
        _needed("data", LargeBinary),
    )
    return tables
