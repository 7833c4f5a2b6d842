"""Time to live: files whose time has passed become tombstones, in commits of their own."""

from __future__ import annotations

from crux_workspace.engine.changeset import Changeset
from crux_workspace.engine.codec import Expiry, FilePlace, decode, encode
from crux_workspace.engine.committer import Call, Finished, InFlight, commit
from crux_workspace.engine.entry import Entry
from crux_workspace.engine.keys import EXPIRY_PREFIX, expiry_key, file_key, head_key
from crux_workspace.engine.ports import EnginePorts
from crux_workspace.engine.tree import LiveTree, scan_range
from crux_workspace.storage.layout import FIELD_END, number
from crux_workspace.storage.records import Put, Reader, Record, Take

__all__ = ["due_rows", "expired_files", "sweep_due"]

_PER_COMMIT = 100


async def due_rows(ports: EnginePorts, now: int, limit: int | None = None) -> list[Record]:
    """Return `exp/` records whose time has passed."""
    before = EXPIRY_PREFIX + number(now + 1)
    rows: list[Record] = []
    async for record in scan_range(ports.reader, EXPIRY_PREFIX, before=before):
        rows.append(record)
        if limit is not None and len(rows) == limit:
            break
    return rows


async def expired_files(ports: EnginePorts, now: int) -> list[Entry]:
    """Return files that are due and not swept yet: they still stand in the counters."""
    found: list[Entry] = []
    for row in await due_rows(ports, now):
        entry = await _entry_of(ports.reader, row)
        if entry is not None and entry.is_expired(now):
            found.append(entry)
    return found


async def _entry_of(reader: Reader, row: Record) -> Entry | None:
    """Return the head that an `exp/` record is about, expired or not."""
    file_id = row.key.split(FIELD_END)[2]
    path = decode(Expiry, row.value).path
    [place] = await reader.get_many([file_key(file_id)], bodies=False)
    if place is not None:
        found = decode(FilePlace, place.value)
        if found.gone or found.purged:
            return None
        path = found.path
    [head] = await reader.get_many([head_key(path)], bodies=False)
    if head is None:
        return None
    entry = Entry.of(head)
    return entry if entry.file_id == file_id else None


async def sweep_due(ports: EnginePorts, in_flight: InFlight) -> int:
    """Expire all due files, at most 100 a commit; returns how many went."""
    swept = 0
    while True:
        rows = await due_rows(ports, ports.clock(), limit=_PER_COMMIT)
        if not rows:
            return swept
        swept += await _sweep(ports, in_flight, rows)


async def _sweep(ports: EnginePorts, in_flight: InFlight, rows: list[Record]) -> int:
    refiled: list[tuple[str, Entry]] = []
    gone_rows: list[str] = []
    expired: list[Entry] = []

    async def plan(tree: LiveTree) -> Changeset | Finished[int]:
        for kept in (refiled, gone_rows, expired):
            kept.clear()
        found = await tree.get([row.key for row in rows])
        changes = Changeset()
        for row in found:
            if row is None:
                continue
            entry = await _entry_of(tree.reader, row)
            if entry is None:
                gone_rows.append(row.key)
                continue
            await tree.look(entry.path, ways=False)
            if entry.is_expired(tree.now):
                expired.append(entry)
                changes.expire(entry)
            else:
                refiled.append((row.key, entry))
        if not (expired or refiled or gone_rows):
            return Finished(0)
        changes.extra_deletes = [*gone_rows, *(key for key, _ in refiled)]
        changes.extra_puts = [put for _, entry in refiled for put in _refile(entry)]
        return changes

    call = Call(verb="expire", paths=(), plan=plan, finish=lambda _: len(expired))
    return await commit(ports, in_flight, call)


def _refile(entry: Entry) -> list[Put]:
    """Move an `exp/` record to its file's due time; the head, rewritten unchanged, writes its stamps out."""
    head = entry.settled()
    head.filed = None
    puts = [Put(head_key(entry.path), encode(head), _own_body(entry))]
    if head.due is not None:
        puts.append(Put(expiry_key(head.due, entry.file_id), encode(Expiry(path=entry.path))))
    return puts


def _own_body(entry: Entry) -> Take | None:
    return Take(head_key(entry.path)) if entry.head.asset is None else None
