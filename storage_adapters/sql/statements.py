# ruff: noqa: S608 - the texts are put together from constants of this module
"""Every SQL text that a request runs, in one place.

The texts are plain SQL for the DBAPI: importing SQLAlchemy costs more than opening a database. A test prepares each of them against
the tables of `storage_adapters.sql.schema`. Texts that depend on a count are built once per count.

Two conventions: a range is always ``key >= low and key < high``, where an empty blob as `high` means "no end" (a blob sorts behind
every text); and a read finds its partition by name inside the statement, so no id is ever remembered beyond one transaction.
"""

from __future__ import annotations

from functools import lru_cache

__all__ = [
    "APPLICATION_ID",
    "BODY",
    "CHILDREN",
    "DROP",
    "LOG_SINCE",
    "MAX_LISTED",
    "NEW_PARTITION",
    "PARTITIONS",
    "ROWS_PER_INSERT",
    "SCHEMA_VERSION",
    "SEQUENCES",
    "any_in_ranges",
    "boundary",
    "delete_bodies",
    "delete_records",
    "enter",
    "insert_bodies",
    "padded_count",
    "page",
    "put_records",
    "read_known",
    "read_records",
]

SCHEMA_VERSION = 1
"""`user_version` of a current database: the number of the newest migration."""

APPLICATION_ID = 0x43525857
"""`application_id` of our databases, so that another program's file is never taken for ours."""

MAX_LISTED = 64
"""Most values written out as parameters of one ``in (…)``; longer lists travel as one JSON array."""

ROWS_PER_INSERT = 32

_EXACTLY = 8
"""Parameters up to which each count has its own text: every one more is bound and looked up."""

_PART = "(select id from partitions where name = ?1)"

NEW_PARTITION = "insert into partitions(name) values (?)"

BODY = "select data from bodies where id = ?"

LOG_SINCE = (
    "select r.key, r.value, b.data from records r left join bodies b on b.id = r.body_id "
    "where r.part = ? and r.key >= ? and r.key < ? order by r.key"
)

DROP = (
    "delete from bodies where id in (select body_id from records where part = ?)",
    "delete from records where part = ?",
    "delete from partitions where id = ?",
)

SEQUENCES = (
    "select p.name, r.revision from partitions p join records r on r.part = p.id and r.key = ? "
    "where p.name in (select value from json_each(?))"
)

PARTITIONS = "select name from partitions where name >= ? and name < ? order by name limit ?"

CHILDREN = f"""
with recursive s(k) as (
  select * from (
    select key from records where part = {_PART} and key >= ?2 and key < ?3 order by key limit 1)
  union all
  select (select key from records where part = {_PART} and key < ?3 and key >= case
      when instr(substr(k, ?4), ?5) > 0 then substr(k, 1, ?4 + instr(substr(k, ?4), ?5) - 2) || ?6
      else k || char(1) end
    order by key limit 1)
  from s where k is not null)
select k from s where k is not null limit ?7
"""
"""The first key of each child of a folder, by seeking over what lies below it.

Parameters: partition, low, high, 1-based start behind the prefix, delimiter, the string behind the delimiter, limit.
"""


def padded_count(count: int) -> int:
    """Round a number of parameters above 8 up to a power of two, so that few texts serve all counts."""
    return count if count <= _EXACTLY else 1 << (count - 1).bit_length()


def _marks(count: int) -> str:
    return ",".join("?" * count)


@lru_cache(maxsize=64)
def read_records(count: int | None, *, bodies: bool) -> str:
    """Text that reads records by key: partition, then `count` keys, or (None) one JSON array of keys."""
    listed = "select value from json_each(?)" if count is None else _marks(count)
    part = "(select id from partitions where name = ?)"
    if bodies:
        return (
            "select r.key, r.value, b.data, r.revision, r.at from records r "
            f"left join bodies b on b.id = r.body_id where r.part = {part} and r.key in ({listed})"
        )
    return f"select key, value, null, revision, at from records where part = {part} and key in ({listed})"


@lru_cache(maxsize=64)
def read_known(count: int | None, *, bodies: bool) -> str:
    """Text that reads what a commit must know of keys: partition id, then the keys as in `read_records`."""
    return _known("?1", count, bodies=bodies)


@lru_cache(maxsize=64)
def enter(count: int | None, *, bodies: bool) -> str:
    """Text of a group's first read of a partition: as `read_known`, but by the partition's name.

    One more row comes last, without a key: the partition's id (null: there is none) and the last body id in use stand in the columns
    of revision and time.
    """
    return (
        f"{_known(_PART, count, bodies=bodies)} "
        f"union all select null, null, null, {_PART}, (select max(id) from bodies), null"
    )


def _known(part: str, count: int | None, *, bodies: bool) -> str:
    marks = ",".join(f"(?{number})" for number in range(2, (count or 0) + 2))
    listed = "select value from json_each(?2)" if count is None else f"values {marks}"
    # A list as the outer table is looked up row by row; ``key in (…)`` would sort it first.
    body, joined = ("b.data", "left join bodies b on b.id = r.body_id") if bodies else ("null", "")
    return (
        f"with asked(key) as ({listed}) "
        f"select r.key, r.value, {body}, r.revision, r.at, r.body_id from asked "
        f"cross join records r on r.part = {part} and r.key = asked.key {joined}"
    )


@lru_cache(maxsize=16)
def page(*, bodies: bool, contains: bool, reverse: bool) -> str:
    """Text that reads a page of a range: partition, low, high, limit and, with `contains`, the needle."""
    joined = "left join bodies b on b.id = r.body_id" if bodies or contains else ""
    body = "b.data" if bodies else "null"
    passes = "and (r.body_id is null or instr(b.data, ?5) > 0)" if contains else ""
    order = "desc" if reverse else "asc"
    return (
        f"select r.key, r.value, {body}, r.revision, r.at from records r {joined} "
        f"where r.part = {_PART} and r.key >= ?2 and r.key < ?3 {passes} "
        f"order by r.key {order} limit ?4"
    )


@lru_cache(maxsize=2)
def boundary(*, reverse: bool) -> str:
    """Text that finds the key `offset` records into a range: partition, low, high, offset."""
    order = "desc" if reverse else "asc"
    return (
        f"select key from records where part = {_PART} and key >= ?2 and key < ?3 "
        f"order by key {order} limit 1 offset ?4"
    )


@lru_cache(maxsize=16)
def any_in_ranges(count: int) -> str:
    """Text that returns the low ends of the ranges that hold a record: partition id, then `count` pairs."""
    if count == 1:
        return "select ?2 from records where part = ?1 and key >= ?2 and key < ?3 limit 1"
    ranges = ",".join(f"(?{2 * i + 2},?{2 * i + 3})" for i in range(count))
    return (
        f"with ranges(low, high) as (values {ranges}) select low from ranges where exists "
        "(select 1 from records where part = ?1 and key >= low and key < high)"
    )


@lru_cache(maxsize=ROWS_PER_INSERT)
def put_records(count: int) -> str:
    """Text that creates or replaces `count` records: part, key, revision, at, value, body id each."""
    rows = ",".join(["(?,?,?,?,?,?)"] * count)
    return (
        f"insert into records(part, key, revision, at, value, body_id) values {rows} "
        "on conflict do update set revision = excluded.revision, at = excluded.at, "
        "value = excluded.value, body_id = excluded.body_id"
    )


@lru_cache(maxsize=ROWS_PER_INSERT)
def insert_bodies(count: int) -> str:
    """Text that inserts `count` bodies: id and data each."""
    return f"insert into bodies(id, data) values {','.join(['(?,?)'] * count)}"


@lru_cache(maxsize=16)
def delete_records(count: int) -> str:
    """Text that deletes records: partition id, then `count` keys."""
    return f"delete from records where part = ? and key in ({_marks(count)})"


@lru_cache(maxsize=16)
def delete_bodies(count: int) -> str:
    """Text that deletes `count` bodies by id."""
    return f"delete from bodies where id in ({_marks(count)})"
