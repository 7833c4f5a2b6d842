"""What must hold of a namespace's records whatever happened: counters, log, references, indexes."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field

from crux_workspace.engine.bodies import readable
from crux_workspace.engine.codec import (
    IN_PARTS,
    ArtifactRecord,
    AssetCount,
    Expiry,
    FilePlace,
    Head,
    State,
    Was,
    decode,
)
from crux_workspace.engine.compression import group_end
from crux_workspace.engine.entry import Entry, PastState
from crux_workspace.engine.keys import path_in_key, state_key
from crux_workspace.storage.layout import decode_meta, is_log_head
from crux_workspace.storage.planning import PartitionReader
from crux_workspace.storage.records import Reader, Record, RecordStore

__all__ = ["Records", "check_sound", "read_records"]


@dataclass
class Records:
    """All records of a partition, by the first field of their keys."""

    kinds: dict[str, list[Record]] = field(default_factory=dict)

    def of(self, kind: str) -> list[Record]:
        """Return the records of one kind."""
        return self.kinds.get(kind, [])

    @property
    def referenced(self) -> set[str]:
        """Assets that a version holds."""
        holders = [decode(Head, r.value) for r in self.of("head")]
        ended = [decode(State, r.value) for r in self.of("state")]
        return {ref for holder in [*holders, *ended] for ref in holder.refs}

    @property
    def trashed(self) -> set[str]:
        """Assets that gc may delete when their grace is over."""
        return {record.key.split("\x01")[2] for record in self.of("trash")}


async def read_records(store: RecordStore, partition: str) -> Records:
    """Read a whole partition."""
    reader, after, found = PartitionReader(store, partition), None, Records()
    while True:
        page = await reader.scan("", after=after, limit=500, bodies=True)
        for record in page.records:
            found.kinds.setdefault(record.key.split("\x01")[0], []).append(record)
        if page.next is None:
            return found
        after = page.next


async def check_sound(store: RecordStore, partition: str) -> Records:
    """Hold a partition's records to their invariants; returns them."""
    records = await read_records(store, partition)
    if not records.of("meta"):
        assert not records.kinds
        return records
    _check_log(records)
    _check_counters(records)
    _check_assets(records)
    _check_files(records)
    await _check_histories(PartitionReader(store, partition), records)
    _check_artifacts(records)
    _check_expiry(records)
    return records


def _check_log(records: Records) -> None:
    meta = decode_meta(records.of("meta")[0].value)
    sequences = [int(r.key.split("\x01")[1]) for r in records.of("log") if is_log_head(r.key)]
    assert sequences == list(range(sequences[0], meta.sequence + 1)), "the log is dense"
    newest = next(r for r in records.of("log") if r.revision == meta.sequence)
    assert newest.at == meta.at


def _check_counters(records: Records) -> None:
    meta = decode_meta(records.of("meta")[0].value)
    heads = [decode(Head, r.value) for r in records.of("head")]
    kept = [s for r in records.of("state") if not (s := decode(State, r.value)).partial]
    expected = {
        "live_files": len(heads),
        "live_bytes": sum(head.size for head in heads),
        "versions": len(heads) + len(kept),
        "history_bytes": sum(state.size for state in kept),
    }
    if records.of("job"):
        return
    assert {name: meta.counters.get(name, 0) for name in expected} == expected


def _check_assets(records: Records) -> None:
    holders = [decode(Head, r.value) for r in records.of("head")]
    ended = [decode(State, r.value) for r in records.of("state")]
    expected = Counter(ref for holder in [*holders, *ended] for ref in holder.refs)
    counted = {
        r.key.split("\x01")[1]: decode(AssetCount, r.value).count for r in records.of("asset")
    }
    assert counted == dict(expected), "each asset is counted as often as versions hold it"
    assert not records.trashed & set(counted), "nothing that is held is in the trash"
    for record in records.of("head"):
        head = decode(Head, record.value)
        assert (record.body is None) == bool(head.refs), "content is in one place"
    for holder in [*holders, *ended]:
        assert (holder.enc == IN_PARTS) == bool(holder.parts)
        assert not (holder.parts and holder.asset)
        if holder.refs:
            assert sum(piece.size for piece in holder.pieces()) == holder.size


def _check_files(records: Records) -> None:
    entries = [Entry.of(record) for record in records.of("head")]
    ids = [entry.file_id for entry in entries]
    assert len(ids) == len(set(ids)), "a file is at one path"
    paths = [entry.path for entry in entries]
    below = [(a, b) for a in paths for b in paths if b.startswith(a + "/")]
    assert not below, "no file is a directory"
    at = {entry.file_id: entry.path for entry in entries}
    for record in records.of("file"):
        place = decode(FilePlace, record.value)
        file_id = record.key.split("\x01")[1]
        assert (file_id in at) is not (place.gone or place.purged)
        assert file_id not in at or at[file_id] == place.path
    _check_states(records, entries)


def _check_states(records: Records, entries: list[Entry]) -> None:
    states = [PastState.of(record) for record in records.of("state")]
    ended = Counter((s.file_id, s.version) for s in states if not s.state.partial)
    assert all(count == 1 for count in ended.values()), "a version has its content once"
    for entry in entries:
        assert (entry.file_id, entry.version) not in ended
        newest = max((s.version for s in states if s.file_id == entry.file_id), default=0)
        assert newest <= entry.version
    for record in records.of("was"):
        was = decode(Was, record.value)
        assert was.since < int(record.key.split("\x01")[2])


async def _check_histories(reader: Reader, records: Records) -> None:
    """Each version that is kept is readable, whatever was deleted around it."""
    states = {record.key: PastState.of(record) for record in records.of("state")}
    for state in states.values():
        if state.state.base is not None:
            base = states[state_key(state.file_id, *state.state.base)]
            assert state.version < base.version <= group_end(state.version)
            assert not base.state.partial
            assert base.state.is_inline
        if state.state.partial or state.state.refs or state.is_tombstone:
            assert state.body is None
            assert state.state.enc in (None, IN_PARTS)
            continue
        plain = await readable(reader, state)
        assert plain is not None
        assert plain.body is not None
        assert hashlib.sha256(plain.body).hexdigest() == state.state.sha256, "a version is whole"


def _check_artifacts(records: Records) -> None:
    heads = {path_in_key(r.key): decode(Head, r.value) for r in records.of("head")}
    shown = {path_in_key(r.key): decode(ArtifactRecord, r.value) for r in records.of("art")}
    wanted = {p for p, h in heads.items() if h.status or h.artifact_kind or h.produced_by}
    assert set(shown) == wanted
    for path, artifact in shown.items():
        head = heads[path]
        assert (artifact.file_id, artifact.head_version) == (head.file_id, head.version)
        assert artifact.version == (head.pinned or head.version)
        assert (artifact.status == "final") == (head.pinned is not None)


def _check_expiry(records: Records) -> None:
    filed = {r.key.split("\x01")[2]: int(r.key.split("\x01")[1]) for r in records.of("exp")}
    for record in records.of("exp"):
        decode(Expiry, record.value)
    assert len(filed) == len(records.of("exp")), "a file is filed once"
    due = {
        h.file_id: h.filed or h.due
        for r in records.of("head")
        if (h := decode(Head, r.value)).due is not None
    }
    assert filed == due, "whatever will expire is filed, at or before its time"
