"""Time to live: files whose time has passed become tombstones, in commits of their own."""

from __future__ import annotations

from crux_workspace.engine.changeset import Changeset
from crux_workspace.engine.codec import Expiry, FilePlace, decode, encode
from crux_workspace.engine.committer import Call, Done, Finished, commit
from crux_workspace.engine.entry import Entry
from crux_workspace.engine.inflight import InFlight
from crux_workspace.engine.keys import EXPIRY_PREFIX, expiry_key, file_key, head_key
from crux_workspace.engine.ports import EnginePorts
from crux_workspace.engine.tree import LiveTree, scan_range
from crux_workspace.storage.layout import FIELD_END, number
from crux_workspace.storage.records import Put, Record, Take

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
    rows = await due_rows(ports, now)
    for start in range(0, len(rows), _PER_COMMIT):
        some = rows[start : start + _PER_COMMIT]
        places = await ports.reader.get_many(
            [file_key(_file_of(row)) for row in some], bodies=False
        )
        paths = [_path_of(row, place) for row, place in zip(some, places, strict=True)]
        known = [(row, path) for row, path in zip(some, paths, strict=True) if path is not None]
        heads = await ports.reader.get_many([head_key(path) for _, path in known], bodies=False)
        for (row, _), head in zip(known, heads, strict=True):
            entry = None if head is None else Entry.of(head)
            if entry is not None and entry.file_id == _file_of(row) and entry.is_expired(now):
                found.append(entry)
    return found


def _file_of(row: Record) -> str:
    """Return the id of the file that an `exp/` record is about."""
    return row.key.split(FIELD_END)[2]


def _path_of(row: Record, place: Record | None) -> str | None:
    """Return where that file is, given its `file/` record; None when it is deleted or purged."""
    if place is None:
        return decode(Expiry, row.value).path
    found = decode(FilePlace, place.value)
    return None if found.gone or found.purged else found.path


async def sweep_due(ports: EnginePorts, in_flight: InFlight) -> int:
    """Expire all due files, at most 100 a commit; returns how many went."""
    swept = 0
    while True:
        rows = await due_rows(ports, ports.clock(), limit=_PER_COMMIT)
        if not rows:
            return swept
        swept += await _sweep(ports, in_flight, rows)


async def _sweep(ports: EnginePorts, in_flight: InFlight, rows: list[Record]) -> int:
    async def plan(tree: LiveTree) -> Changeset | Finished[int]:
        found = await tree.get([row.key for row in rows])
        still = [row for row in found if row is not None]
        places = await tree.get([file_key(_file_of(row)) for row in still])
        paths = [_path_of(row, place) for row, place in zip(still, places, strict=True)]
        await tree.look(*(path for path in paths if path is not None), ways=False)
        changes = Changeset()
        for row, path in zip(still, paths, strict=True):
            _clear(tree, changes, row, path)
        return changes if changes.deltas or changes.extra_deletes else Finished(0)

    def finish(done: Done) -> int:
        return sum(version.operation == "delete" for version in done.built.versions)

    call = Call(verb="expire", paths=(), plan=plan, finish=finish)
    return await commit(ports, in_flight, call)


def _clear(tree: LiveTree, changes: Changeset, row: Record, path: str | None) -> None:
    """Plan what becomes of one due row: its file goes, or the row moves to the file's new due time, or nothing is left of it."""
    entry = None if path is None else tree.entry(path) or tree.expired(path)
    if entry is None or entry.file_id != _file_of(row):
        changes.extra_deletes.append(row.key)
    elif entry.is_expired(tree.now):
        changes.expire(entry)
    else:
        changes.extra_deletes.append(row.key)
        changes.extra_puts += _refile(entry)


def _refile(entry: Entry) -> list[Put]:
    """Move an `exp/` record to its file's due time; the head, rewritten unchanged, writes its stamps out."""
    head = entry.settled()
    head.filed = None
    puts = [Put(head_key(entry.path), encode(head), _own_body(entry))]
    if head.due is not None:
        puts.append(Put(expiry_key(head.due, entry.file_id), encode(Expiry(path=entry.path))))
    return puts


def _own_body(entry: Entry) -> Take | None:
    return Take(head_key(entry.path)) if entry.head.is_inline else None
