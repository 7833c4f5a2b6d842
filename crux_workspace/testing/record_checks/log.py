"""Checks of the log records that a commit writes."""

from __future__ import annotations

from crux_workspace.model.changes import Change
from crux_workspace.storage.layout import (
    CHANGES_IN_VALUE,
    CHANGES_PER_BODY,
    LOG_PREFIX,
    LogRecord,
    decode_changes,
    decode_log,
    is_log_head,
    log_key,
)
from crux_workspace.storage.records import Record, RecordStore
from crux_workspace.testing.checks import holds, same
from crux_workspace.testing.record_checks.bench import (
    RECORD_CHECKS,
    FreshRecords,
    Writer,
    changes,
    pages,
    requires_room,
    seed,
)

__all__: list[str] = []


async def _logged(writer: Writer, sequence: int) -> tuple[LogRecord, list[Record]]:
    found = await pages(writer.store, writer.partition, log_key(sequence), limit=100, bodies=True)
    records = [r for p in found for r in p.records]
    holds(records and is_log_head(records[0].key), f"commit {sequence} has no log record")
    return decode_log(records[0].value), records


@RECORD_CHECKS.add()
async def check_log_in_value(store: RecordStore, fresh: FreshRecords) -> None:
    """R-055: each commit has one log record that tells its id, verb, actor and up to 16 changes."""
    rename = Change("rename", "/d/b", "/d/a", "f" * 32, "e" * 32, 3, 2, True)
    delete = Change("delete", "/d/c\U0001f600", file_id="d" * 32, previous_version=9)
    writer = await seed(store, fresh, verb="mkdir", commit_id="c" * 32)
    await writer.commit(verb="rename", actor="ann", changes=[rename, delete], commit_id="b" * 32)
    await writer.commit(changes=changes(CHANGES_IN_VALUE))
    found = await pages(store, writer.partition, LOG_PREFIX, limit=2)
    keys = [r.key for p in found for r in p.records]
    same(keys, [log_key(1), log_key(2), log_key(3)], "keys of the log")
    entry, records = await _logged(writer, 1)
    same((entry.commit_id, entry.verb, entry.actor), ("c" * 32, "mkdir", None), "commit 1")
    same((entry.inline_changes(), entry.bodies, records[0].body), ([], 0, None), "commit 1")
    entry, _ = await _logged(writer, 2)
    same((entry.commit_id, entry.verb, entry.actor), ("b" * 32, "rename", "ann"), "commit 2")
    same(entry.inline_changes(), [rename, delete], "changes of commit 2")
    entry, records = await _logged(writer, 3)
    same(entry.inline_changes(), changes(CHANGES_IN_VALUE), "16 changes")
    same((entry.bodies, records[0].body), (0, None), "no body for 16 changes")


@RECORD_CHECKS.add()
async def check_log_in_bodies(store: RecordStore, fresh: FreshRecords) -> None:
    """R-056: more than 16 changes go to bodies of 1,000, and all of them can be read back."""
    counts = (CHANGES_IN_VALUE + 1, CHANGES_PER_BODY, CHANGES_PER_BODY + 1, 2_500)
    requires_room(store, paths=max(counts))
    writer = await seed(store, fresh)
    for sequence, count in enumerate(counts, 2):
        await writer.commit(changes=changes(count))
        entry, records = await _logged(writer, sequence)
        same(entry.bodies, -(-count // CHANGES_PER_BODY), f"bodies of {count} changes")
        same((len(records), entry.inline_changes()), (entry.bodies, []), "records of the commit")
        same({r.revision for r in records}, {sequence}, "revisions of the log records")
        read: list[Change] = []
        for record in records:
            part = decode_changes(record.body or b"[]")
            holds(len(part) <= CHANGES_PER_BODY, "a body holds more than 1,000 changes")
            read += part
        same(read == changes(count), True, f"{count} changes are read back")
