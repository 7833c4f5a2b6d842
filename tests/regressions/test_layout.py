"""Faults of the record layout that were found by reading it against its description."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from crux_workspace import Retention, Versioning, Workspace, workspace
from crux_workspace.errors import ConflictError, InvalidInputError, NotFoundError
from crux_workspace.storage import MemoryAssetStore, MemoryRecordStore, Record, storage
from crux_workspace.storage.layout import (
    FORMAT,
    LOG_PREFIX,
    decode_log,
    decode_meta,
    encode_meta,
    partition_name,
)
from crux_workspace.testing.doubles import FixedClock, SequentialIds

PARTITION = partition_name("w", "n")
FILE = "/workspace/a.md"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def records() -> MemoryRecordStore:
    return MemoryRecordStore()


def opened(
    records: MemoryRecordStore,
    clock: FixedClock,
    *,
    most: int | None = None,
    ttl_ms: int | None = None,
) -> Workspace:
    return workspace(
        id="w",
        namespace="n",
        storage=storage(records=records, assets=MemoryAssetStore(clock=clock)),
        versioning=Versioning(max_versions=most),
        retention=Retention(ttl_ms=ttl_ms),
        clock=clock,
        ids=SequentialIds(),
    )


async def held(records: MemoryRecordStore, prefix: str) -> list[Record]:
    return (await records.scan(PARTITION, prefix, limit=1000, bodies=True)).records


async def test_each_commit_has_an_id_of_its_own_under_counting_ids(
    records: MemoryRecordStore, clock: FixedClock
) -> None:
    ws = opened(records, clock)
    for text in "abc":
        await ws.write(FILE, text)
    ids = {decode_log(record.value).commit_id for record in await held(records, LOG_PREFIX)}
    assert len(ids) == 3


async def test_an_absent_format_means_one_whatever_is_current(
    records: MemoryRecordStore, clock: FixedClock
) -> None:
    await opened(records, clock).write(FILE, "a")
    [meta] = await held(records, "meta\x01")
    written = decode_meta(meta.value)
    assert written.format == FORMAT
    assert b"fmt" not in meta.value
    assert b'"fmt":2' in encode_meta(type(written)(sequence=1, incarnation="x", at=1, format=2))


async def test_a_view_keeps_a_commits_time_after_its_log_entry_was_redacted(
    records: MemoryRecordStore, clock: FixedClock
) -> None:
    ws = opened(records, clock)
    await ws.write("/workspace/d/a.md", "a")
    await ws.write("/workspace/d/b.md", "b")
    clock.advance(1000)
    await ws.rename("/workspace/d", "/workspace/e")
    before = await ws.at(3).stat("/workspace/e/b.md")
    clock.advance(1000)
    await ws.write("/workspace/e/b.md", "b2")
    await ws.delete("/workspace/e/a.md", purge=True)
    after = await ws.at(3).stat("/workspace/e/b.md")
    assert before is not None
    assert after is not None
    assert after.updated_at == before.updated_at


@pytest.mark.parametrize("most", [1, 2, 3])
async def test_a_write_over_an_expired_file_counts_each_collected_version_once(
    records: MemoryRecordStore, clock: FixedClock, most: int
) -> None:
    ws = opened(records, clock, most=most, ttl_ms=1000)
    for content in ("one", b"two", b"three"):
        await ws.write(FILE, content)
    clock.advance(2000)
    await ws.write(FILE, "again")
    states = [json.loads(r.value) for r in await held(records, "state\x01")]
    whole = [state for state in states if not state.get("np")]
    usage = await ws.usage()
    assert usage.versions == 1 + len(whole)
    assert usage.history_bytes == sum(state.get("s", 0) for state in whole)
    references = {json.loads(r.value)["n"] for r in await held(records, "asset\x01")}
    assert references <= {1}


async def test_undoing_a_deletion_is_refused_when_its_pinned_version_was_collected(
    records: MemoryRecordStore, clock: FixedClock
) -> None:
    ws = opened(records, clock, most=1)
    await ws.write(FILE, "one")
    await ws.finalize(FILE)
    await ws.write(FILE, "two")
    await ws.delete(FILE)
    [deletion] = await ws.log(limit=1)
    with pytest.raises(NotFoundError) as refused:
        await ws.undo_commit(deletion)
    assert refused.value.code == "VERSION_EXPIRED"


async def test_undoing_a_finalize_is_refused_when_the_earlier_pin_was_collected(
    records: MemoryRecordStore, clock: FixedClock
) -> None:
    ws = opened(records, clock, most=1)
    await ws.write(FILE, "one")
    await ws.finalize(FILE)
    await ws.write(FILE, "two")
    await ws.finalize(FILE)
    [second] = await ws.log(limit=1)
    with pytest.raises(NotFoundError) as refused:
        await ws.undo_commit(second)
    assert refused.value.code == "VERSION_EXPIRED"


async def test_a_directory_copy_goes_on_with_a_file_that_had_expired_there(
    records: MemoryRecordStore, clock: FixedClock
) -> None:
    ws = opened(records, clock, ttl_ms=1000)
    await ws.write("/workspace/d/a.md", "old")
    clock.advance(2000)
    await ws.write("/workspace/s/a.md", "new")
    await ws.copy("/workspace/s", "/workspace/d")
    history = await ws.history("/workspace/d/a.md")
    assert [(v.version, v.operation) for v in history] == [(3, "copy"), (2, "delete"), (1, "write")]


async def test_a_purge_takes_the_name_out_of_the_entries_of_collected_versions(
    records: MemoryRecordStore, clock: FixedClock
) -> None:
    ws = opened(records, clock, most=1)
    await ws.write("/workspace/other.md", "other")
    for text in "abcd":
        await ws.write("/workspace/secret.md", text)
    await ws.rename("/workspace/secret.md", "/workspace/hidden.md")
    await ws.write("/workspace/hidden.md", "e")
    await ws.delete("/workspace/hidden.md", purge=True)
    named = [
        replace(record, body=None).key
        for record in await held(records, LOG_PREFIX)
        if b"secret" in record.value or b"hidden" in record.value
    ]
    assert len(named) == 1, "only the purge itself names the file"
    kept = [entry for entry in await ws.log() if entry.verb == "write" and entry.changes]
    assert any(change.path == "/workspace/other.md" for e in kept for change in e.changes)


async def test_a_purge_erases_what_renames_overwrote_below_a_directory_with_its_name(
    records: MemoryRecordStore, clock: FixedClock
) -> None:
    ws = opened(records, clock, most=1)
    for text in ("hidden 1", "hidden 2", "hidden 3"):
        await ws.write("/workspace/d/secret.md", text)
    await ws.write("/workspace/b.md", "b")
    await ws.rename("/workspace/b.md", "/workspace/d/secret.md", overwrite=True)
    await ws.delete("/workspace/d", recursive=True, purge=True)
    assert await held(records, "state\x01") == []
    logged = [r for r in await held(records, LOG_PREFIX) if b"secret" in r.value]
    assert len(logged) == 1, "only the purge itself names the file"
    assert not any(b"hidden" in (record.body or b"") for record in await held(records, ""))
    usage = await ws.usage()
    assert (usage.versions, usage.history_bytes) == (0, 0)


async def test_a_cursor_of_a_dropped_namespace_is_refused_by_the_log(
    records: MemoryRecordStore, clock: FixedClock
) -> None:
    ws = opened(records, clock)
    await ws.write(FILE, "a")
    [entry] = await ws.log(limit=1)
    await workspace(id="w", records=records).drop_namespace("n")
    await ws.write(FILE, "b")
    with pytest.raises(InvalidInputError) as refused:
        await ws.log(cursor=entry.cursor)
    assert refused.value.code == "INVALID_CURSOR"


async def test_a_list_cursor_is_of_one_moment(
    records: MemoryRecordStore, clock: FixedClock
) -> None:
    ws = opened(records, clock)
    for name in "abc":
        await ws.write(f"/workspace/{name}.md", name)
    now = await ws.list("/workspace", limit=1)
    then = await ws.at(3).list("/workspace", limit=1)
    assert len((await ws.at(3).list("/workspace", limit=5, cursor=then.cursor)).entries) == 2
    for listing, cursor in ((ws, then.cursor), (ws.at(3), now.cursor), (ws.at(2), then.cursor)):
        with pytest.raises(InvalidInputError) as refused:
            await listing.list("/workspace", limit=1, cursor=cursor)
        assert refused.value.code == "INVALID_CURSOR"


async def test_a_commit_is_not_undone_over_a_file_that_has_expired_since(
    records: MemoryRecordStore, clock: FixedClock
) -> None:
    ws = opened(records, clock, ttl_ms=1000)
    await ws.write(FILE, "a")
    await ws.set(FILE, metadata={"k": 1})
    clock.advance(2000)
    for swept in (False, True):
        if swept:
            await ws.gc(dry_run=False)
        with pytest.raises(ConflictError) as refused:
            await ws.undo_commit((await ws.log())[-2])
        assert refused.value.code == "VERSION_CONFLICT"
    assert (await ws.usage()).live_files == 0


async def test_a_transaction_that_moves_a_recreated_file_leaves_nothing_at_its_gone_path(
    records: MemoryRecordStore, clock: FixedClock
) -> None:
    ws = opened(records, clock)
    await ws.write(FILE, "a")
    await ws.delete(FILE)
    async with ws.transaction() as tx:
        await tx.write(FILE, "again")
        await tx.rename(FILE, "/workspace/b.md")
    assert await held(records, "gone\x01") == []
    assert [v.version for v in await ws.history("/workspace/b.md")] == [3, 2, 1]
    assert (await ws.write(FILE, "new")).version == 1


@pytest.mark.parametrize("verb", ["copy", "rename"])
async def test_a_transaction_ends_the_expired_files_below_a_directory_it_fills(
    records: MemoryRecordStore, clock: FixedClock, verb: str
) -> None:
    ws = opened(records, clock, ttl_ms=1000)
    await ws.write("/workspace/d/a.md", "old")
    clock.advance(2000)
    await ws.write("/workspace/s/a.md", "new")
    async with ws.transaction() as tx:
        await getattr(tx, verb)("/workspace/s", "/workspace/d")
    heads = [json.loads(record.value) for record in await held(records, "head\x01")]
    usage = await ws.usage()
    assert (usage.live_files, usage.live_bytes) == (len(heads), 3 * len(heads))
    due = {record.key.split("\x01")[2] for record in await held(records, "exp\x01")}
    assert due == {head["id"] for head in heads}
    assert await ws.at(2).read_text("/workspace/s/a.md") == "new"


@pytest.mark.parametrize("deleted_again", [False, True])
async def test_a_deletion_is_not_undone_when_its_file_went_on_elsewhere(
    records: MemoryRecordStore, clock: FixedClock, deleted_again: bool
) -> None:
    ws = opened(records, clock)
    await ws.write(FILE, "a")
    await ws.delete(FILE)
    [deletion] = await ws.log(limit=1)
    async with ws.transaction() as tx:
        await tx.write(FILE, "again")
        await tx.rename(FILE, "/workspace/b.md")
    if deleted_again:
        await ws.delete("/workspace/b.md")
    with pytest.raises(ConflictError) as refused:
        await ws.undo_commit(deletion)
    assert refused.value.code == "VERSION_CONFLICT"
    assert refused.value.details["sequence"] == (4 if deleted_again else 3)
