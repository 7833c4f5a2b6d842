"""Checks of the ceilings that a store declares."""

from __future__ import annotations

from crux_workspace.storage.records import BatchTooLarge, Put, RecordStore
from crux_workspace.testing.checks import NotApplicable, same
from crux_workspace.testing.record_checks.bench import (
    RECORD_CHECKS,
    FreshRecords,
    Writer,
    changes,
    put,
    refused,
    seed,
)

__all__: list[str] = []

_LARGEST = 64 << 20


def _limit(limit: int | None) -> int:
    if limit is None or limit > _LARGEST:
        message = f"a ceiling of {limit} is too high to try"
        raise NotApplicable(message)
    return limit


async def _too_large(writer: Writer, *puts: Put, **fields: object) -> None:
    async with refused(writer, "too large", kind=BatchTooLarge):
        await writer.commit(*puts, **fields)


def _text(size: int) -> bytes:
    return b'"' + b"x" * (size - 2) + b'"'


@RECORD_CHECKS.add("max_commit_paths")
async def check_most_paths(store: RecordStore, fresh: FreshRecords) -> None:
    """R-120: as many changes as declared are taken, one more is refused before anything is written."""
    limit = min(_limit(store.capabilities.max_commit_paths), 200_000)
    same(limit, store.capabilities.max_commit_paths, "the ceiling that is tried")
    writer = await seed(store, fresh, put("a"))
    await _too_large(writer, put("b"), changes=changes(limit + 1))
    await writer.commit(put("b"), changes=changes(limit))


@RECORD_CHECKS.add("max_commit_bytes")
async def check_most_bytes(store: RecordStore, fresh: FreshRecords) -> None:
    """R-121: values and bodies of a batch may add up to what is declared, and no more."""
    limit = _limit(store.capabilities.max_commit_bytes)
    piece = min(n for n in (store.capabilities.max_body_bytes, limit // 3) if n is not None)
    writer = await seed(store, fresh, put("a"))
    count, rest = divmod(limit, piece + 2)
    puts = [put(f"k{n:05d}", b"{}", b"x" * piece) for n in range(count)]
    if rest >= 2:
        puts.append(put("rest", b"{}", b"x" * (rest - 2)))
    await _too_large(writer, *puts, put("more", b"{}", b"xx"))
    await writer.commit(*puts)


@RECORD_CHECKS.add("max_value_bytes")
async def check_largest_value(store: RecordStore, fresh: FreshRecords) -> None:
    """R-122: a value may be as large as declared, and no larger."""
    limit = _limit(store.capabilities.max_value_bytes)
    writer = await seed(store, fresh, put("a"))
    await _too_large(writer, put("b"), put("c", _text(limit + 1)))
    await writer.commit(put("c", _text(limit)))
    same(len((await writer.one("c")).value), limit, "size of the value")


@RECORD_CHECKS.add("max_body_bytes")
async def check_largest_body(store: RecordStore, fresh: FreshRecords) -> None:
    """R-123: a body may be as large as declared, and no larger."""
    limit = _limit(store.capabilities.max_body_bytes)
    writer = await seed(store, fresh, put("a"))
    await _too_large(writer, put("b"), put("c", b"{}", b"x" * (limit + 1)))
    await writer.commit(put("c", b"{}", b"x" * limit))
    same(len((await writer.one("c")).body or b""), limit, "size of the body")
