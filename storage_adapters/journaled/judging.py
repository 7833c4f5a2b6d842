"""A batch judged against a snapshot, and made the journal's next entry."""

from __future__ import annotations

from crux_workspace.model.changes import Change
from crux_workspace.storage.layout import (
    META_KEY,
    advance,
    decode_changes,
    decode_log,
    encode_meta,
    judge_ceilings,
    judge_identity,
    log_key,
    log_rows,
    prefix_end,
    quiet_violation,
    resolve_key,
)
from crux_workspace.storage.records import Batch, PreconditionFailed, Take, take_sources
from storage_adapters.journaled.entries import Entry, Packed, Row, pack
from storage_adapters.journaled.snapshot import Snapshot

__all__ = ["end_entry", "make_entry"]

BOUNDARY_ENTRIES = 32
BOUNDARY_WEIGHT = 4 << 20


async def make_entry(snapshot: Snapshot, batch: Batch, identity: str) -> Entry:
    """Return the entry that commits the batch behind the snapshot.

    Raises:
        PreconditionFailed: An expectation of the batch does not hold.
        CeilingExceeded: A counter would pass its ceiling.
    """
    judge_identity(snapshot.meta, batch)
    sources = take_sources(batch.puts)
    held = await snapshot.rows([*batch.expect, *sources.values()])
    _judge_expected(held, batch)
    await _judge_empty(snapshot, batch)
    if batch.expect_quiet:
        await _judge_quiet(snapshot, batch)
    judge_ceilings(snapshot.meta, batch)
    taken = await _taken(snapshot, batch, held)
    return _entry(snapshot, batch, identity, taken)


async def _taken(
    snapshot: Snapshot, batch: Batch, held: dict[str, Row | None]
) -> list[str | bytes | None]:
    """Return what each put takes: a ref that changes owner, or the bytes where the owner before keeps them."""
    keepers = {put.key for put in batch.puts if put.body == Take(put.key)}
    free = ({put.key for put in batch.puts} | set(batch.deletes)) - keepers
    found: list[str | bytes | None] = []
    for put in batch.puts:
        if not isinstance(put.body, Take):
            found.append(None)
            continue
        source = put.body.key
        row = held[source]
        if row is None:
            raise PreconditionFailed("revision", source)
        if row.body is None or source == put.key or source in free:
            free.discard(source)
            found.append(row.body)
        else:
            found.append(await snapshot.body(row.body))
    return found


def _judge_expected(held: dict[str, Row | None], batch: Batch) -> None:
    for key, revision in batch.expect.items():
        row = held[key]
        if (0 if row is None else row.revision) != revision:
            raise PreconditionFailed("revision", key)


async def _judge_empty(snapshot: Snapshot, batch: Batch) -> None:
    for low, high in batch.expect_empty:
        row = await snapshot.seek(low)
        if row is not None and row.key < high:
            raise PreconditionFailed("empty", low)


async def _judge_quiet(snapshot: Snapshot, batch: Batch) -> None:
    for sequence in range((batch.quiet_since or 0) + 1, snapshot.sequence + 1):
        changes = await _changes_of(snapshot, sequence)
        if changes is None:
            raise PreconditionFailed("quiet", batch.expect_quiet[0][0])
        touched = quiet_violation(changes, batch.expect_quiet)
        if touched is not None:
            raise PreconditionFailed("quiet", touched)


async def _changes_of(snapshot: Snapshot, sequence: int) -> list[Change] | None:
    """Return what a commit did, or None when the log no longer tells."""
    stem = log_key(sequence)
    page = await snapshot.scan(
        stem,
        after=None,
        before=prefix_end(stem),
        reverse=False,
        limit=1 << 30,
        bodies=True,
        delimiter=None,
    )
    if not page.records or page.records[0].key != stem:
        return None
    changes = decode_log(page.records[0].value).inline_changes()
    for record in page.records:
        changes += decode_changes(record.body or b"[]")
    return changes


def _entry(
    snapshot: Snapshot, batch: Batch, identity: str, taken: list[str | bytes | None]
) -> Entry:
    meta = advance(snapshot.meta, batch)
    position = snapshot.position + 1
    stamp = (meta.sequence, meta.at)
    rows: dict[str, Row] = {}
    bodies: list[Packed] = []

    def add(key: str, value: bytes, body: bytes | str | None) -> None:
        if isinstance(body, bytes):
            bodies.append(pack(body))
            body = f"{position}.{len(bodies) - 1}"
        rows[key] = Row(key, pack(value), *stamp, body)

    for put, given in zip(batch.puts, taken, strict=True):
        body = given if isinstance(put.body, Take) else put.body
        add(resolve_key(put.key, meta.sequence), put.value, body)
    for key, value, log_body in log_rows(batch, meta.sequence):
        add(key, value, log_body)
    encoded = encode_meta(meta)
    add(META_KEY, encoded, None)
    weight = sum(row.weight for row in rows.values()) + sum(
        len(body if isinstance(body, str) else body["b64"]) for body in bodies
    )
    base, before = _boundary_before(snapshot)
    weight += before
    return Entry(
        id=identity,
        sequence=meta.sequence,
        at=meta.at,
        base=base,
        boundary=position - base >= BOUNDARY_ENTRIES or weight >= BOUNDARY_WEIGHT,
        weight=weight,
        meta=encoded.decode(),
        rows=list(rows.values()),
        gone=[key for key in dict.fromkeys(batch.deletes) if key not in rows],
        bodies=bodies,
    )


def _boundary_before(snapshot: Snapshot) -> tuple[int, int]:
    """Return the last boundary's position, and the weight of the entries behind it."""
    last = snapshot.last
    if last is None or last.boundary:
        return snapshot.position, 0
    return last.base, last.weight


def end_entry(snapshot: Snapshot, identity: str) -> Entry:
    """Return the entry that ends the partition behind the snapshot."""
    base, _ = _boundary_before(snapshot)
    return Entry(id=identity, sequence=0, base=base, boundary=True)
