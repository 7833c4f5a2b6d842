# ruff: noqa: S608 - the texts are put together from constants of this module and a quoted schema name
"""Every SQL text that a request runs, for one schema.

Tables are named with their schema, never by ``search_path``: nothing has to be set on a connection, so a transaction-pooling proxy
may hand out any. Ranges without an upper end are texts of their own, because ``$3 is null or key < $3`` is no condition for an index.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

__all__ = ["Texts", "quoted"]

_COMMIT_PARAMETERS = 24


def quoted(name: str) -> str:
    """Write an identifier so that any name is one."""
    return '"' + name.replace('"', '""') + '"'


class Texts:
    """The texts of one schema; two of the same schema are interchangeable."""

    def __init__(self, schema: str) -> None:
        self.schema = schema
        self._in = quoted(schema)

    def _part(self) -> str:
        return f"(select id from {self._in}.partitions where name = $1)"

    def _body(self) -> str:
        """The body of the record `r`, looked for by its whole key.

        Not a join: where most namespaces are small, the planner joins by reading all bodies of the namespace, be it a large one.
        """
        return f"(select b.data from {self._in}.bodies b where b.part = r.part and b.id = r.body)"

    @cached_property
    def known(self) -> tuple[str, str]:
        """Texts that read records by key, without and with bodies: partition, keys."""
        return (
            f"select key, value, null::bytea, revision, at from {self._in}.records "
            f"where part = {self._part()} and key = any($2::text[])",
            f"select r.key, r.value, {self._body()}, r.revision, r.at from {self._in}.records r "
            f"where r.part = {self._part()} and r.key = any($2::text[])",
        )

    @cached_property
    def known_together(self) -> str:
        """Text that reads records by key without bodies, with a number that tells whose they are: partition, keys, number."""
        return (
            f"select $3::integer, key, value, revision, at from {self._in}.records "
            f"where part = {self._part()} and key = any($2::text[])"
        )

    @lru_cache(maxsize=16)  # noqa: B019 - a handful of texts live as long as the process
    def page(self, *, bodies: bool, contains: bool, reverse: bool, bounded: bool) -> str:
        """Text that reads a page of a range: partition, low, limit, then high if bounded, then the needle with `contains`."""
        high = "and r.key < $4" if bounded else ""
        needle = "$5" if bounded else "$4"
        joined = ""
        if bodies or contains:
            joined = f"left join lateral (select {self._body()} as data offset 0) b on true"
        passes = (
            f"and (r.body is null or position({needle}::bytea in b.data) > 0)" if contains else ""
        )
        return (
            f"select r.key, r.value, {'b.data' if bodies else 'null::bytea'}, r.revision, r.at "
            f"from {self._in}.records r {joined} where r.part = {self._part()} and r.key >= $2 {high} {passes} "
            f"order by r.key {'desc' if reverse else 'asc'} limit $3"
        )

    @lru_cache(maxsize=4)  # noqa: B019 - as above
    def boundary(self, *, reverse: bool, bounded: bool) -> str:
        """Text that finds the key some records into a range: partition, low, how many, then high if bounded."""
        high = "and key < $4" if bounded else ""
        return (
            f"select key from {self._in}.records where part = {self._part()} and key >= $2 {high} "
            f"order by key {'desc' if reverse else 'asc'} limit 1 offset $3"
        )

    @lru_cache(maxsize=2)  # noqa: B019 - as above
    def children(self, *, bounded: bool) -> str:
        """Text that finds the first key of each child of a folder, by seeking over what lies below it.

        Parameters: partition, low, limit, start behind the prefix (from 1), delimiter, what follows the delimiter, high if bounded.
        """
        high = "and key < $7" if bounded else ""
        seek = f"select key from {self._in}.records where part = {self._part()} and key >="
        behind = (
            "case when strpos(substr(s.key, $4), $5) > 0 "
            "then substr(s.key, 1, $4 + strpos(substr(s.key, $4), $5) - 2) || $6::text "
            "else s.key || chr(1) end"
        )
        return (
            f"with recursive s(key) as ((select * from ({seek} $2 {high} order by key limit 1) first) union all "
            f"select ({seek} ({behind}) {high} order by key limit 1) from s where s.key is not null) "
            "select key from s where key is not null limit $3"
        )

    @cached_property
    def sequences(self) -> str:
        """Text that reads the last sequence of partitions: the key of `meta`, names."""
        return (
            f"select p.name, m.revision from {self._in}.partitions p "
            f"join {self._in}.records m on m.part = p.id and m.key = $1 where p.name = any($2::text[])"
        )

    @lru_cache(maxsize=2)  # noqa: B019 - as above
    def partitions(self, *, bounded: bool) -> str:
        """Text that reads a page of partition names: low, limit, then high if bounded."""
        high = "and name < $3" if bounded else ""
        return (
            f"select name from {self._in}.partitions where name >= $1 {high} order by name limit $2"
        )

    @cached_property
    def log_since(self) -> str:
        """Text that reads the log: partition, first key, key behind the last."""
        return (
            f"select r.key, r.value, {self._body()} from {self._in}.records r "
            f"where r.part = {self._part()} and r.key >= $2 and r.key < $3 order by r.key"
        )

    @cached_property
    def enter(self) -> str:
        """Text that takes the write lock of a partition until the transaction ends: partition."""
        return f"select from {self._in}.enter_1($1)"

    @cached_property
    def commit(self) -> str:
        """Text that judges and applies a batch; its parameters are those of the function."""
        marks = ", ".join(f"${n}" for n in range(1, _COMMIT_PARAMETERS + 1))
        return f"select verdict, subject, sequence, stamp, used from {self._in}.commit_1({marks})"

    @cached_property
    def commit_if_free(self) -> str:
        """Text that does the same where the partition is there and its lock is free, else returns no row.

        One more parameter, a number, comes back as the last column. The lock is taken before the function begins, for that is given
        the name of the row that was locked; each of its statements sees what was committed before the lock was given.
        """
        marks = ", ".join(f"${n}" for n in range(2, _COMMIT_PARAMETERS + 1))
        return (
            f"select c.verdict, c.subject, c.sequence, c.stamp, c.used, ${_COMMIT_PARAMETERS + 1}::integer "
            f"from (select p.name from {self._in}.partitions p "
            f"join {self._in}.records m on m.part = p.id and m.key = e'meta\\x01' where p.name = $1 "
            f"for no key update of m skip locked) held, lateral {self._in}.commit_1(held.name, {marks}) c"
        )

    @cached_property
    def follow(self) -> str:
        """Text that judges and applies a batch which follows the commit that is known to be the last, else returns no row; see `following`.

        Its row is that of `commit`. What is locked is the newest `meta`, whatever the snapshot shows; when both are of the same
        revision, nobody has committed since the snapshot was taken, and nobody can.
        """
        meta = "e'meta\\x01'"
        return (
            f"with held as materialized (select m.part, m.value from {self._in}.partitions p "
            f"join {self._in}.records m on m.part = p.id and m.key = {meta} "
            "where p.name = $1 and m.revision = $2::bigint for no key update of m skip locked), "
            "ok as materialized (select h.part, convert_from(h.value, 'UTF8')::jsonb as meta from held h where "
            f"(select s.revision from {self._in}.records s where s.part = h.part and s.key = {meta}) = $2::bigint "
            "and convert_from(h.value, 'UTF8')::jsonb ->> 'inc' = $3::text "
            "and not exists (select from unnest($4::text[], $5::bigint[]) e(key, revision) where coalesce(("
            f"select r.revision from {self._in}.records r where r.part = h.part and r.key = e.key), 0) <> e.revision) "
            "and not exists (select from unnest($6::text[], $7::text[]) e(low, high) where ("
            f"select true from {self._in}.records r where r.part = h.part and r.key >= e.low and r.key < e.high limit 1))), "
            f"kept as (insert into {self._in}.bodies(part, id, data) select ok.part, (($2::bigint + 1) << 20) | b.n, b.data "
            "from ok, unnest($10::bytea[]) with ordinality b(data, n) where b.data is not null), "
            f"put as (insert into {self._in}.records as r (part, key, revision, at, value, body) "
            "select ok.part, p.key, $2::bigint + 1, $12::bigint, p.value, "
            "case when p.data is not null then (($2::bigint + 1) << 20) | p.n else ("
            f"select t.body from {self._in}.records t where t.part = ok.part and t.key = p.taken) end "
            "from ok, unnest($8::text[], $9::bytea[], $10::bytea[], $11::text[]) "
            "with ordinality p(key, value, data, taken, n) union all "
            f"select ok.part, {meta}, $2::bigint + 1, $12::bigint, convert_to((ok.meta || $13::text::jsonb)::text, 'UTF8'), null from ok "
            "on conflict (part, key) do update set "
            "revision = excluded.revision, at = excluded.at, value = excluded.value, body = excluded.body) "
            "select 'done', '', $2::bigint + 1, $12::bigint, null::bigint from ok"
        )

    @cached_property
    def drop(self) -> str:
        """Text that removes a partition at once: partition."""
        return f"select {self._in}.drop_1($1)"

    @cached_property
    def sweep(self) -> str:
        """Text that deletes some rows of a dropped partition and tells whether there may be more: how many."""
        return f"select {self._in}.sweep_1($1)"

    @cached_property
    def version(self) -> str:
        """Text that tells the schema's version, and the oldest version that can use it."""
        return f"select version, oldest from {self._in}.compatibility"

    @cached_property
    def waiting(self) -> str:
        """Text that tells whether something may wait to be swept."""
        return (
            f"select exists (select from {self._in}.dropped) "
            f"or exists (select from {self._in}.assets where not ready)"
        )

    # -- assets

    @cached_property
    def put_whole(self) -> str:
        """Text that stores an asset of one piece: ref, size, hash, data."""
        return (
            f"with made as (insert into {self._in}.assets(ref, size, sha256, created_at, ready) "
            f"values ($1, $2, $3, {_NOW_MS}, true) returning id, created_at), "
            f"kept as (insert into {self._in}.pieces(asset, n, data) select id, 0, $4::bytea from made) "
            "select created_at from made"
        )

    @cached_property
    def begin_upload(self) -> str:
        """Text that begins an asset of many pieces: ref."""
        return (
            f"insert into {self._in}.assets(ref, size, sha256, created_at, ready) "
            f"values ($1, 0, '', {_NOW_MS}, false) returning id"
        )

    @cached_property
    def add_piece(self) -> str:
        """Text that adds a piece to an upload that is still there, and tells when it came: asset, number, data."""
        return (
            f"with goes_on as (update {self._in}.assets set created_at = {_NOW_MS} "
            "where id = $1 and not ready returning id) "
            f"insert into {self._in}.pieces(asset, n, data) "
            "select id, $2::integer, $3::bytea from goes_on returning n"
        )

    @cached_property
    def end_upload(self) -> str:
        """Text that makes an upload an asset: asset, size, hash."""
        return (
            f"update {self._in}.assets set size = $2, sha256 = $3, created_at = {_NOW_MS}, ready = true "
            "where id = $1 and not ready returning created_at"
        )

    @cached_property
    def give_up(self) -> str:
        """Text that removes an upload: asset."""
        return (
            f"with gone as (delete from {self._in}.assets where id = $1 returning id) "
            f"delete from {self._in}.pieces where asset in (select id from gone)"
        )

    @cached_property
    def sweep_uploads(self) -> str:
        """Text that removes one upload to which nothing came for some time; others that sweep pass over it: that time in ms."""
        return (
            f"with gone as (delete from {self._in}.assets where id = ("
            f"select id from {self._in}.assets where not ready and created_at <= {_NOW_MS} - $1::bigint "
            "order by id limit 1 for update skip locked) returning id), "
            f"freed as (delete from {self._in}.pieces where asset in (select id from gone)) "
            "select id from gone"
        )

    @cached_property
    def asset(self) -> str:
        """Text that finds an asset: ref."""
        return f"select id, size from {self._in}.assets where ref = $1 and ready"

    @cached_property
    def pieces(self) -> str:
        """Text that reads all pieces of an asset: ref."""
        return (
            f"select a.size, p.data from {self._in}.assets a "
            f"left join {self._in}.pieces p on p.asset = a.id where a.ref = $1 and a.ready order by p.n"
        )

    @cached_property
    def piece(self) -> str:
        """Text that reads part of a piece: asset, number, start (from 1), length."""
        return (
            f"select substring(data from $3::integer for $4::integer) from {self._in}.pieces "
            "where asset = $1 and n = $2"
        )

    @cached_property
    def delete_asset(self) -> str:
        """Text that removes an asset: ref."""
        return (
            f"with gone as (delete from {self._in}.assets where ref = $1 and ready returning id) "
            f"delete from {self._in}.pieces where asset in (select id from gone)"
        )

    @lru_cache(maxsize=2)  # noqa: B019 - as above
    def assets(self, *, bounded: bool) -> str:
        """Text that lists assets: low, limit, then high if bounded."""
        high = "and ref < $3" if bounded else ""
        return (
            f"select ref, size, created_at from {self._in}.assets "
            f"where ref >= $1 {high} and ready order by ref limit $2"
        )


_NOW_MS = "(extract(epoch from clock_timestamp()) * 1000)::bigint"
