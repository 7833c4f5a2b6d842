"""Partitions, records and bodies, and the function that commits."""

from __future__ import annotations

from storage_adapters.sql.postgres.upgrading import run

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TABLES = """
create table {schema}.partitions (
    id bigint generated always as identity primary key,
    name text collate "C" not null unique
);
create table {schema}.records (
    part bigint not null,
    key text collate "C" not null,
    revision bigint not null,
    at bigint not null,
    value bytea not null,
    body bigint,
    primary key (part, key)
) with (fillfactor = 85);
create table {schema}.bodies (
    part bigint not null,
    id bigint not null,
    data bytea not null,
    primary key (part, id)
);
create table {schema}.dropped (
    part bigint primary key
);
create table {schema}.compatibility (
    version integer not null,
    oldest integer not null
);
"""

_ENTER = """
create function {schema}.enter_1(
    p_name text, out part bigint, out meta bytea, out sequence bigint
) language plpgsql as $function$
begin
    -- Its own statement: whatever is asked later sees what was committed before the lock was given.
    select p.id, m.value, m.revision into part, meta, sequence
        from {schema}.partitions p join {schema}.records m on m.part = p.id and m.key = e'meta\\x01'
        where p.name = p_name
        for no key update of m;
    if part is null then
        -- Those who make a partition queue here; who comes second finds it made.
        perform pg_advisory_xact_lock(hashtextextended('{schema_name}' || chr(1) || p_name, 0));
        select p.id, m.value, m.revision into part, meta, sequence
            from {schema}.partitions p join {schema}.records m on m.part = p.id and m.key = e'meta\\x01'
            where p.name = p_name
            for no key update of m;
    end if;
end
$function$
"""

_DROP = """
create function {schema}.drop_1(p_name text) returns void language plpgsql as $function$
declare
    v_part bigint;
begin
    select e.part into v_part from {schema}.enter_1(p_name) e;
    if v_part is not null then
        insert into {schema}.dropped(part) values (v_part);
        delete from {schema}.partitions where id = v_part;
        delete from {schema}.records where part = v_part and key = e'meta\\x01';
    end if;
end
$function$;
create function {schema}.sweep_1(p_rows integer) returns boolean language plpgsql as $function$
declare
    v_part bigint;
    v_count bigint;
    v_total bigint := 0;
begin
    -- Whoever sweeps holds its partition; others pass over it.
    select part into v_part from {schema}.dropped order by part limit 1 for update skip locked;
    if v_part is null then
        return false;
    end if;
    delete from {schema}.bodies where part = v_part and id in (
        select id from {schema}.bodies where part = v_part limit p_rows for update skip locked);
    get diagnostics v_count = row_count;
    v_total := v_total + v_count;
    delete from {schema}.records where part = v_part and key in (
        select key from {schema}.records where part = v_part limit p_rows for update skip locked);
    get diagnostics v_count = row_count;
    if v_total + v_count = 0 then
        delete from {schema}.dropped where part = v_part;
    end if;
    return true;
end
$function$
"""

_COMMIT = """
create function {schema}.commit_1(
    p_name text,
    p_commit_id text,
    p_now bigint,
    p_incarnation text,
    p_epoch bigint,
    p_oldest_upload bigint,
    p_sweeping_to bigint,
    p_protects boolean,
    p_quiet_at bigint,
    p_expect text[],
    p_revisions bigint[],
    p_lows text[],
    p_highs text[],
    p_counters text[],
    p_adds bigint[],
    p_ceilings bigint[],
    p_replaces boolean,
    p_deletes text[],
    p_keys text[],
    p_values bytea[],
    p_bodies bytea[],
    p_takes text[],
    p_copies text[],
    p_format integer,
    out verdict text,
    out subject text,
    out sequence bigint,
    out stamp bigint,
    out used bigint
) language plpgsql as $function$
declare
    v_part bigint;
    v_raw bytea;
    v_last bigint;
    v_meta jsonb;
    v_counters jsonb;
    v_keys text[];
    v_taken bigint[];
begin
    select * into v_part, v_raw, v_last from {schema}.enter_1(p_name);
    v_meta := convert_from(v_raw, 'UTF8')::jsonb;
    sequence := coalesce(v_last, 0);

    if p_incarnation is distinct from v_meta ->> 'inc' then
        verdict := 'incarnation'; subject := ''; return;
    end if;
    if p_epoch <> coalesce((v_meta ->> 'epoch')::bigint, 0) then
        verdict := 'epoch'; subject := ''; return;
    end if;
    if v_part is not null and p_oldest_upload <= coalesce((v_meta ->> 'swept')::bigint, 0) then
        verdict := 'upload'; subject := ''; return;
    end if;
    if p_expect is not null then
        select e.key into subject
            from unnest(p_expect, p_revisions) with ordinality e(key, revision, n)
            where coalesce((
                select r.revision from {schema}.records r
                where r.part = v_part and r.key = e.key), 0) <> e.revision
            order by e.n limit 1;
        if found then
            verdict := 'revision'; return;
        end if;
    end if;
    if p_takes is not null or p_copies is not null then
        select t.key into subject
            from unnest(p_takes || p_copies) with ordinality t(key, n)
            where t.key is not null and (
                select true from {schema}.records r where r.part = v_part and r.key = t.key) is null
            order by (t.n - 1) % cardinality(p_keys) limit 1;
        if found then
            verdict := 'revision'; return;
        end if;
    end if;
    if p_lows is not null then
        select e.low into subject
            from unnest(p_lows, p_highs) with ordinality e(low, high, n)
            where (
                select true from {schema}.records r
                where r.part = v_part and r.key >= e.low and r.key < e.high limit 1)
            order by e.n limit 1;
        if found then
            verdict := 'empty'; return;
        end if;
    end if;
    if p_quiet_at <> sequence then
        verdict := 'moved'; return;
    end if;
    v_counters := coalesce(v_meta -> 'n', '{{}}');
    for i in 1 .. coalesce(cardinality(p_counters), 0) loop
        used := coalesce((v_counters ->> p_counters[i])::bigint, 0);
        if p_adds[i] > 0 and used + p_adds[i] > p_ceilings[i] then
            verdict := 'ceiling'; subject := p_counters[i]; return;
        end if;
        v_counters := v_counters || jsonb_build_object(p_counters[i], used + p_adds[i]);
    end loop;

    sequence := sequence + 1;
    stamp := greatest(p_now, (v_meta ->> 'at')::bigint);
    if v_part is null then
        insert into {schema}.partitions(name) values (p_name) returning id into v_part;
        v_meta := jsonb_build_object('inc', p_commit_id);
        if p_format <> 1 then
            v_meta := v_meta || jsonb_build_object('fmt', p_format);
        end if;
    end if;
    v_meta := v_meta || jsonb_build_object('seq', sequence, 'at', stamp, 'n', v_counters);
    if p_protects then
        v_meta := v_meta || jsonb_build_object('epoch', coalesce((v_meta ->> 'epoch')::bigint, 0) + 1);
    end if;
    if p_sweeping_to > coalesce((v_meta ->> 'swept')::bigint, 0) then
        v_meta := v_meta || jsonb_build_object('swept', p_sweeping_to);
    end if;

    v_keys := p_keys;
    for i in 1 .. cardinality(v_keys) loop
        if strpos(v_keys[i], e'\\x04') > 0 then
            v_keys[i] := replace(v_keys[i], e'\\x04', lpad(sequence::text, 16, '0'));
        end if;
    end loop;
    if p_takes is not null then
        select array_agg((
                select r.body from {schema}.records r
                where r.part = v_part and r.key = t.key) order by t.n)
            into v_taken
            from unnest(p_takes) with ordinality t(key, n);
    end if;
    if p_copies is not null then
        insert into {schema}.bodies(part, id, data)
            select v_part, (sequence << 20) | c.n, (
                    select b.data from {schema}.records r, {schema}.bodies b
                    where r.part = v_part and r.key = c.key and b.part = v_part and b.id = r.body)
                from unnest(p_copies) with ordinality c(key, n)
                where (
                    select r.body from {schema}.records r
                    where r.part = v_part and r.key = c.key) is not null;
    end if;
    if p_replaces then
        delete from {schema}.bodies b
            where b.part = v_part and b.id = any(array(
                select r.body from {schema}.records r
                where r.part = v_part and r.key = any(p_deletes || v_keys) and r.body is not null
                and r.body not in (
                    select t.body from unnest(v_taken) t(body) where t.body is not null)));
        delete from {schema}.records r where r.part = v_part and r.key = any(p_deletes);
    end if;
    if p_bodies is not null then
        insert into {schema}.bodies(part, id, data)
            select v_part, (sequence << 20) | b.n, b.data
                from unnest(p_bodies) with ordinality b(data, n)
                where b.data is not null;
    end if;
    insert into {schema}.records as r (part, key, revision, at, value, body)
        select v_part, p.key, sequence, stamp, p.value,
                case when p.data is not null then (sequence << 20) | p.n
                    when p.copied is not null then (
                        select b.id from {schema}.bodies b
                        where b.part = v_part and b.id = ((sequence << 20) | p.n))
                    else p.taken end
            from unnest(
                v_keys || text e'meta\\x01',
                p_values || convert_to(v_meta::text, 'UTF8'),
                p_bodies,
                v_taken,
                p_copies
            ) with ordinality p(key, value, data, taken, copied, n)
        on conflict (part, key) do update set
            revision = excluded.revision, at = excluded.at, value = excluded.value, body = excluded.body;
    verdict := 'done';
end
$function$
"""


def upgrade() -> None:
    """Apply the step."""
    for text in (_TABLES, _ENTER, _DROP, _COMMIT):
        run(text)
