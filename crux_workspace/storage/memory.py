"""The in-memory reference stores: the contract in its plainest form, for tests and throw-away workspaces."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sortedcontainers import SortedDict

from crux_workspace.model.clocks import wall_clock_ms
from crux_workspace.storage.assets import (
    AssetInfo,
    AssetNotFound,
    AssetPage,
    AssetTooLarge,
    PutOptions,
    StoredAsset,
)
from crux_workspace.storage.capabilities import StoreCapabilities
from crux_workspace.storage.layout import (
    META_KEY,
    Meta,
    advance,
    check_size,
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
from crux_workspace.storage.planning import PartitionReader
from crux_workspace.storage.records import (
    SEQUENCE_MARK,
    Batch,
    Committed,
    Contains,
    Page,
    PartitionPage,
    Plan,
    PreconditionFailed,
    Record,
    Take,
)

__all__ = ["MemoryAssetStore", "MemoryRecordStore"]


@dataclass(slots=True)
class _Partition:
    records: SortedDict[str, Record] = field(default_factory=SortedDict)
    meta: Meta | None = None


class MemoryRecordStore:
    """Records in a sorted dictionary per partition; for one process, gone with it.

    No call awaits anything, so on its loop a plan and its commit are one step: `plans_under_lock` holds by construction.
    """

    capabilities = StoreCapabilities(plans_under_lock=True, search=True, task_agnostic=True)

    def __init__(self) -> None:
        self._partitions: SortedDict[str, _Partition] = SortedDict()

    def __repr__(self) -> str:
        return f"MemoryRecordStore(partitions={len(self._partitions)})"

    async def get_many(
        self, partition: str, keys: Sequence[str], *, bodies: bool = True
    ) -> list[Record | None]:
        """See `RecordStore.get_many`."""
        held = self._partitions.get(partition)
        if held is None:
            return [None] * len(keys)
        found = list(map(held.records.get, keys))
        if bodies:
            return found
        return [r if r is None or r.body is None else _stripped(r) for r in found]

    async def scan(
        self,
        partition: str,
        prefix: str,
        *,
        after: str | None = None,
        before: str | None = None,
        reverse: bool = False,
        limit: int,
        bodies: bool = False,
        delimiter: str | None = None,
        filter: Contains | None = None,
    ) -> Page:
        """See `RecordStore.scan`."""
        held = self._partitions.get(partition)
        if held is None or limit < 1:
            return Page([])
        records: list[Record] = []
        prefixes: list[str] = []
        last: str | None = None
        for name, folded in _names(held.records, prefix, after, before, reverse, delimiter):
            if len(records) + len(prefixes) == limit:
                return Page(records, prefixes, last)
            last = name
            if folded:
                prefixes.append(name)
                continue
            record = held.records[name]
            if filter is not None and record.body is not None and filter.needle not in record.body:
                continue
            records.append(record if bodies else _stripped(record))
        return Page(records, prefixes)

    async def commit(self, partition: str, batch: Batch) -> Committed:
        """See `RecordStore.commit`."""
        check_size(batch, self.capabilities)
        held = self._partitions.get(partition)
        meta = held.meta if held is not None else None
        records = held.records if held is not None else SortedDict()
        judge_identity(meta, batch)
        _judge(records, meta, batch)
        judge_ceilings(meta, batch)
        after = advance(meta, batch)
        taken = _taken(records, batch)
        sequence, at = after.sequence, after.at
        own = log_rows(batch, sequence)
        own.append((META_KEY, encode_meta(after), None))
        if held is None:
            held = self._partitions.setdefault(partition, _Partition(records))
        for key in batch.deletes:
            records.pop(key, None)
        for put in batch.puts:
            key, body = put.key, put.body
            if SEQUENCE_MARK in key:
                key = resolve_key(key, sequence)
            if isinstance(body, Take):
                body = taken[body.key]
            records[key] = Record(key, put.value, body, sequence, at)
        for key, value, body in own:
            records[key] = Record(key, value, body, sequence, at)
        held.meta = after
        return Committed(sequence, at)

    async def commit_planned(self, partition: str, plan: Plan) -> Committed:
        """See `RecordStore.commit_planned`."""
        return await self.commit(partition, await plan(PartitionReader(self, partition)))

    async def sequences(self, partitions: Sequence[str]) -> list[int]:
        """See `RecordStore.sequences`."""
        metas = [held.meta if (held := self._partitions.get(p)) else None for p in partitions]
        return [0 if meta is None else meta.sequence for meta in metas]

    async def partitions(
        self, prefix: str, *, after: str | None = None, limit: int
    ) -> PartitionPage:
        """See `RecordStore.partitions`."""
        names: list[str] = []
        for name in _range(self._partitions, prefix, after):
            if len(names) == limit:
                return PartitionPage(names, names[-1] if names else None)
            names.append(name)
        return PartitionPage(names)

    async def drop(self, partition: str) -> None:
        """See `RecordStore.drop`."""
        self._partitions.pop(partition, None)

    async def aclose(self) -> None:
        """Nothing is open; the records stay while the object lives."""


def _range(names: SortedDict[str, Any], prefix: str, after: str | None) -> Iterator[str]:
    """Yield the names that start with `prefix` and come behind `after`."""
    fresh = after is None or after < prefix
    low = prefix if fresh else after
    return iter(names.irange(low, prefix_end(prefix), inclusive=(fresh, False)))


def _stripped(record: Record) -> Record:
    if record.body is None:
        return record
    return Record(record.key, record.value, None, record.revision, record.at)


def _names(
    records: SortedDict[str, Record],
    prefix: str,
    after: str | None,
    before: str | None,
    reverse: bool,
    delimiter: str | None,
) -> Iterator[tuple[str, bool]]:
    """Yield (key or common prefix, whether it is a prefix) of a scan, seeking over what is folded."""
    low, high, inclusive = prefix, prefix_end(prefix), True
    if after is not None and after >= low:
        folded = delimiter is not None and after.endswith(delimiter) and len(after) > len(prefix)
        behind = prefix_end(after) if folded else after
        if behind is None:
            return
        low, inclusive = behind, folded
    if before is not None and (high is None or before < high):
        high = before
    while high is None or low <= high:
        for name in records.irange(low, high, inclusive=(inclusive, False), reverse=reverse):
            cut = name.find(delimiter, len(prefix)) if delimiter else -1
            if delimiter is None or cut < 0:
                yield name, False
                continue
            common = name[: cut + len(delimiter)]
            yield common, True
            if reverse:
                high = common
            else:
                behind = prefix_end(common)
                if behind is None:
                    return
                low, inclusive = behind, True
            break
        else:
            return


def _taken(records: SortedDict[str, Record], batch: Batch) -> dict[str, bytes | None]:
    taken: dict[str, bytes | None] = {}
    for put in batch.puts:
        if isinstance(put.body, Take):
            key = put.body.key
            if (record := records.get(key)) is None:
                raise PreconditionFailed("revision", key)
            taken[key] = record.body
    return taken


def _judge(records: SortedDict[str, Record], meta: Meta | None, batch: Batch) -> None:
    find = records.get
    for key, revision in batch.expect.items():
        if (0 if (record := find(key)) is None else record.revision) != revision:
            raise PreconditionFailed("revision", key)
    for low, high in batch.expect_empty:
        if next(iter(records.irange(low, high, inclusive=(True, False))), None) is not None:
            raise PreconditionFailed("empty", low)
    if batch.expect_quiet:
        _judge_quiet(records, meta, batch)


def _judge_quiet(records: SortedDict[str, Record], meta: Meta | None, batch: Batch) -> None:
    since = batch.quiet_since or 0
    last = 0 if meta is None else meta.sequence
    for sequence in range(since + 1, last + 1):
        record = records.get(log_key(sequence))
        if record is None:
            raise PreconditionFailed("quiet", batch.expect_quiet[0][0])
        entry = decode_log(record.value)
        changes = entry.inline_changes()
        if record.body is not None:
            stem = log_key(sequence)
            for key in records.irange(stem, prefix_end(stem), inclusive=(True, False)):
                changes.extend(decode_changes(records[key].body or b"[]"))
        touched = quiet_violation(changes, batch.expect_quiet)
        if touched is not None:
            raise PreconditionFailed("quiet", touched)


class MemoryAssetStore:
    """Assets in a dictionary; for one process, gone with it."""

    def __init__(self, *, clock: Callable[[], int] = wall_clock_ms) -> None:
        self._clock = clock
        self._assets: SortedDict[str, tuple[bytes, int]] = SortedDict()

    def __repr__(self) -> str:
        return f"MemoryAssetStore(assets={len(self._assets)})"

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        """See `AssetStore.put`."""
        if isinstance(data, bytes):
            content = data
            _check(len(content), options)
        else:
            buffer = bytearray()
            async for chunk in data:
                buffer += chunk
                _check(len(buffer), options)
            content = bytes(buffer)
        now = self._clock()
        self._assets[options.key] = (content, now)
        digest = hashlib.sha256(content).hexdigest()
        return StoredAsset(options.key, f"memory://{options.key}", len(content), digest, now)

    async def get(self, ref: str) -> bytes:
        """See `AssetStore.get`."""
        try:
            return self._assets[ref][0]
        except KeyError:
            raise AssetNotFound(ref) from None

    async def stream(
        self, ref: str, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """See `AssetStore.stream`."""
        content = await self.get(ref)
        end = len(content) if length is None else min(len(content), offset + length)
        for start in range(offset, end, 1 << 18):
            yield content[start : min(end, start + (1 << 18))]

    async def delete(self, ref: str) -> None:
        """See `AssetStore.delete`."""
        self._assets.pop(ref, None)

    async def list(self, prefix: str, *, after: str | None = None, limit: int) -> AssetPage:
        """See `AssetStore.list`."""
        infos: list[AssetInfo] = []
        for ref in _range(self._assets, prefix, after):
            if len(infos) == limit:
                return AssetPage(infos, infos[-1].ref if infos else None)
            content, created_at = self._assets[ref]
            infos.append(AssetInfo(ref, len(content), created_at))
        return AssetPage(infos)

    async def aclose(self) -> None:
        """Nothing is open; the assets stay while the object lives."""


def _check(size: int, options: PutOptions) -> None:
    if options.max_bytes is not None and size > options.max_bytes:
        raise AssetTooLarge(options.max_bytes)
