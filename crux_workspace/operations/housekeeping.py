"""Upkeep: collecting what is no longer needed, namespaces as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from crux_workspace.engine.changeset import Changeset, Draft, FileDelta
from crux_workspace.engine.codec import AssetCount, Trash, decode
from crux_workspace.engine.collection import MAX_COLLECTED
from crux_workspace.engine.committer import IDEMPOTENCY_MS, Finished
from crux_workspace.engine.content import asset_prefix
from crux_workspace.engine.entry import Entry
from crux_workspace.engine.expiry import expired_files, sweep_due
from crux_workspace.engine.keys import (
    HEAD_PREFIX,
    JOB_PREFIX,
    OP_PREFIX,
    TRASH_PREFIX,
    asset_key,
)
from crux_workspace.engine.tree import LiveTree, scan_range
from crux_workspace.errors import WorkspaceError
from crux_workspace.events.hub import hub_of
from crux_workspace.events.log import log_head, time_of
from crux_workspace.model.files import GcReport, NamespacePage
from crux_workspace.model.options import needed_number
from crux_workspace.model.page_cursors import decode_page_cursor, encode_page_cursor
from crux_workspace.operations.compaction import shrink_histories
from crux_workspace.operations.purging import PurgeJob, finish_purge
from crux_workspace.operations.space import Options, Space
from crux_workspace.storage.assets import (
    AbortsStaleUploads,
    AssetInfo,
    AssetStore,
    DeletesMany,
)
from crux_workspace.storage.failures import unavailable
from crux_workspace.storage.layout import (
    FIELD_END,
    LOG_PREFIX,
    META_KEY,
    is_log_head,
    number,
    partition_name,
    split_partition,
)
from crux_workspace.storage.records import Record, RecordStore

__all__ = ["drop_partition", "gc", "list_namespaces"]

_PER_COMMIT = 100
_MOST_NAMES = 1 << 31
"""Most names of one page, what every store can count to; the cursor leads on."""
_PAGE = 256


# -- namespaces


async def list_namespaces(
    records: RecordStore, workspace_id: str, prefix: str, *, limit: int, cursor: str | None
) -> NamespacePage:
    """List the namespaces of one workspace id that exist, in code point order."""
    needed_number("limit", limit)
    listing = ["namespaces", workspace_id, prefix]
    after = None
    if cursor is not None:
        after = partition_name(workspace_id, decode_page_cursor(listing, cursor))
    stem = partition_name(workspace_id, prefix)[:-1]
    try:
        page = await records.partitions(stem, after=after, limit=min(limit, _MOST_NAMES))
    except WorkspaceError:
        raise
    except Exception as error:
        raise unavailable("record store", error) from error
    names = [split_partition(name)[1] for name in page.names]
    following = encode_page_cursor(listing, names[-1]) if page.next and names else None
    return NamespacePage(names, following)


async def drop_partition(records: RecordStore, partition: str) -> None:
    """Remove a namespace whole, and tell those who watch it."""
    try:
        await records.drop(partition)
    except WorkspaceError:
        raise
    except Exception as error:
        raise unavailable("record store", error) from error
    hub_of(records).dropped(partition)


# -- gc


@dataclass(slots=True)
class _Found:
    """What one collection found, and did."""

    expired: int = 0
    versions: int = 0
    assets: int = 0
    log_entries: int = 0
    bytes: int = 0
    orphans: list[AssetInfo] = field(default_factory=list)

    def report(self, *, dry_run: bool) -> GcReport:
        return GcReport(
            dry_run, self.expired, self.versions, self.assets, self.log_entries, self.bytes
        )


async def gc(space: Space, *, dry_run: bool) -> GcReport:
    """Collect what nothing needs: due files, surplus versions, released and orphaned assets, old log entries.

    What stays of histories is written smaller; nothing of that is counted or shown.

    Cost: grows with the namespace; each commit is bounded.
    """
    found = _Found()
    await _expire(space, found, dry_run=dry_run)
    if not dry_run:
        await _resume_purges(space)
    await _collect_versions(space, found, dry_run=dry_run)
    if not dry_run:
        await shrink_histories(space)
    await _empty_trash(space, found, dry_run=dry_run)
    await _sweep_orphans(space, found, dry_run=dry_run)
    await _trim_log(space, found, dry_run=dry_run)
    await _forget_results(space, found, dry_run=dry_run)
    return found.report(dry_run=dry_run)


async def _expire(space: Space, found: _Found, *, dry_run: bool) -> None:
    if dry_run:
        found.expired = len(await expired_files(space.ports, space.ports.clock()))
    else:
        found.expired = await sweep_due(space.ports, space.in_flight)


async def _resume_purges(space: Space) -> None:
    async for record in scan_range(space.ports.reader, JOB_PREFIX):
        await finish_purge(space, PurgeJob.of(record))


async def _collect_versions(space: Space, found: _Found, *, dry_run: bool) -> None:
    """Collect what `max_versions` leaves behind in files that were not written since it was lowered."""
    most = space.ports.versioning.max_versions
    if most is None:
        return
    async for record in _in_turns(scan_range(space.ports.reader, HEAD_PREFIX)):
        entry = Entry.of(record)
        surplus = entry.version - most + 1 - entry.head.first
        if surplus <= 0:
            continue
        if dry_run:
            await _count_surplus(space, entry, found)
            continue
        for _ in range(surplus // MAX_COLLECTED + 1):
            if not await _collect_once(space, entry.path, found):
                break


async def _count_surplus(space: Space, entry: Entry, found: _Found) -> None:
    most = space.ports.versioning.max_versions or 1
    async for state in space.reads().versions(entry.file_id, below=entry.version - most + 1):
        if state.version < entry.head.first:
            break
        if state.version != entry.head.pinned:
            found.versions += 1
            found.bytes += state.state.size


async def _collect_once(space: Space, path: str, found: _Found) -> bool:
    """Rewrite one head without a change; the builder collects along the way."""

    async def plan(tree: LiveTree) -> Changeset | Finished[tuple[int, int]]:
        await tree.look(path, ways=False)
        entry = tree.entry(path)
        if entry is None:
            return Finished((0, 0))
        delta = FileDelta(file_id=entry.file_id, before=entry, after=Draft.like(entry), upkeep=True)
        return Changeset([delta])

    versions, freed = await space.commit(
        "gc",
        (),
        plan,
        lambda done: (
            -done.built.batch.counters.get("versions", (0, None))[0],
            -done.built.batch.counters.get("history_bytes", (0, None))[0],
        ),
        options=Options(),
        request=[],
    )
    found.versions += versions
    found.bytes += freed
    return versions > 0


async def _empty_trash(space: Space, found: _Found, *, dry_run: bool) -> None:
    """Delete released assets whose grace is over: first the bytes, then the record."""
    assets = space.ports.assets
    if assets is None:
        return
    before = TRASH_PREFIX + number(space.ports.clock() + 1)
    async for rows in _chunks(scan_range(space.ports.reader, TRASH_PREFIX, before=before)):
        found.assets += len(rows)
        found.bytes += sum(decode(Trash, row.value).size for row in rows)
        if dry_run:
            continue
        await _delete(assets, [row.key.split(FIELD_END)[2] for row in rows])
        await _drop_records(space, rows)


async def _delete(assets: AssetStore, refs: Sequence[str]) -> None:
    """Delete assets, many to a call where the store can."""
    try:
        if isinstance(assets, DeletesMany):
            await assets.delete_many(refs)
        else:
            for ref in refs:
                await assets.delete(ref)
    except WorkspaceError:
        raise
    except Exception as error:
        raise unavailable("asset store", error) from error


async def _sweep_orphans(space: Space, found: _Found, *, dry_run: bool) -> None:
    """Delete uploads that no commit refers to. A commit first moves the horizon: later commits cannot use what is deleted here."""
    ports = space.ports
    if ports.assets is None:
        return
    [meta] = await ports.reader.get_many([META_KEY], bodies=False)
    grace = ports.unfenced_grace_ms if meta is None else ports.retention.asset_grace_ms
    horizon = ports.clock() - grace
    orphans = await _orphans(space, ports.assets, horizon)
    found.assets += len(orphans)
    found.bytes += sum(orphan.size for orphan in orphans)
    if not dry_run:
        await _abort_stale_uploads(ports.assets, ports.retention.asset_grace_ms)
    if dry_run or not orphans:
        return
    if meta is not None:
        await _move_horizon(space, horizon)
    swept = await _orphans(space, ports.assets, horizon)
    await _delete(ports.assets, [orphan.ref for orphan in swept])


async def _abort_stale_uploads(assets: AssetStore, grace_ms: int) -> None:
    """Remove what is left of uploads whose process died before they were whole."""
    if not isinstance(assets, AbortsStaleUploads):
        return
    try:
        await assets.abort_stale_uploads(older_than_ms=grace_ms)
    except WorkspaceError:
        raise
    except Exception as error:
        raise unavailable("asset store", error) from error


async def _orphans(space: Space, assets: AssetStore, horizon: int) -> list[AssetInfo]:
    prefix = asset_prefix(space.ports.workspace_id, space.ports.namespace)
    orphans: list[AssetInfo] = []
    trashed = {
        record.key.split(FIELD_END)[2]
        async for record in scan_range(space.ports.reader, TRASH_PREFIX)
    }
    after: str | None = None
    while True:
        try:
            page = await assets.list(prefix, after=after, limit=_PAGE)
        except WorkspaceError:
            raise
        except Exception as error:
            raise unavailable("asset store", error) from error
        ours = (info for info in page.assets if not _lies_deeper(info.ref, prefix))
        old = [info for info in ours if info.created_at <= horizon]
        counts = await space.ports.reader.get_many(
            [asset_key(info.ref) for info in old], bodies=False
        )
        for info, count in zip(old, counts, strict=True):
            held = count is not None and decode(AssetCount, count.value).count > 0
            if not held and info.ref not in trashed:
                orphans.append(info)
        if page.next is None:
            return orphans
        after = page.next


def _lies_deeper(ref: str, prefix: str) -> bool:
    """Whether an asset is not the namespace's own: no put of ours goes into a folder of its folder, but another store's prefix may."""
    return ref.startswith(prefix) and "/" in ref[len(prefix) :]


async def _trim_log(space: Space, found: _Found, *, dry_run: bool) -> None:
    """Forget commits older than `log_ms`, the newest one excepted."""
    keep_ms = space.ports.retention.log_ms
    if keep_ms is None:
        return
    async for rows in _chunks(_old_log(space, space.ports.clock() - keep_ms)):
        found.log_entries += sum(is_log_head(row.key) for row in rows)
        if not dry_run:
            await _drop_records(space, rows)


async def _old_log(space: Space, oldest: int) -> AsyncIterator[Record]:
    """Iterate over the records of old commits, up to the last one that changed something.

    Commits of upkeep behind it wait for the next such one: trimming is a commit of upkeep too, and would never come to an end.
    """
    newest = await _newest_log(space)
    upkeep: list[Record] = []
    async for record in scan_range(space.ports.reader, LOG_PREFIX):
        is_head = is_log_head(record.key)
        if record.key >= newest or (is_head and time_of(record) >= oldest):
            return
        upkeep.append(record)
        if not is_head or log_head(record).tells:
            for one in upkeep:
                yield one
            upkeep.clear()


async def _newest_log(space: Space) -> str:
    page = await space.ports.reader.scan(LOG_PREFIX, reverse=True, limit=1)
    return page.records[0].key[: len(LOG_PREFIX) + 16] if page.records else LOG_PREFIX


async def _forget_results(space: Space, found: _Found, *, dry_run: bool) -> None:
    """Forget idempotency keys after a day."""
    oldest = space.ports.clock() - IDEMPOTENCY_MS

    async def old() -> AsyncIterator[Record]:
        async for record in scan_range(space.ports.reader, OP_PREFIX):
            if record.at <= oldest:
                yield record

    async for rows in _chunks(old()):
        found.log_entries += len(rows)
        if not dry_run:
            await _drop_records(space, rows)


async def _in_turns(records: AsyncIterator[Record]) -> AsyncIterator[Record]:
    """Give the loop a turn now and then: a store that answers in place never does."""
    seen = 0
    async for record in records:
        seen += 1
        if seen % _PAGE == 0:
            await asyncio.sleep(0)
        yield record


async def _chunks(records: AsyncIterator[Record]) -> AsyncIterator[list[Record]]:
    chunk: list[Record] = []
    async for record in _in_turns(records):
        chunk.append(record)
        if len(chunk) == _PER_COMMIT:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


async def _drop_records(space: Space, rows: list[Record]) -> None:
    """Delete records that are nobody's file, as far as they are still the ones that were judged."""

    async def plan(tree: LiveTree) -> Changeset | Finished[None]:
        found = await tree.get([row.key for row in rows])
        same = [
            row.key
            for row, now in zip(rows, found, strict=True)
            if now is not None and now.revision == row.revision
        ]
        return Changeset(extra_deletes=same) if same else Finished(None)

    await space.commit("gc", (), plan, lambda _: None, options=Options(), request=[])


async def _move_horizon(space: Space, horizon: int) -> None:
    """Let no later commit refer to an upload up to this time."""

    async def plan(tree: LiveTree) -> Changeset:
        await tree.get(())
        return Changeset(horizon=horizon)

    await space.commit("gc", (), plan, lambda _: None, options=Options(), request=[])
