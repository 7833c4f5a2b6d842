"""The Redis store answers every call as the in-memory reference does."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from crux_workspace.storage import Batch, Contains, MemoryRecordStore, Put, Record, RecordStore
from crux_workspace.storage.layout import META_KEY, decode_meta
from storage_adapters.redis import RedisRecordStore
from tests.support.random_batches import PART, outcome, pages, random_batch, random_key
from tests.support.redis_servers import RedisServer

pytestmark = pytest.mark.redis


@pytest.fixture
async def store(redis_server: RedisServer) -> AsyncIterator[RecordStore]:
    """A store on an empty server."""
    async with await RedisRecordStore.open(redis_server.url()) as opened:
        yield opened


def plain(found: Any) -> Any:
    """What to compare: `meta` by what it says, because the order of names in a JSON object says nothing."""
    if isinstance(found, list | tuple):
        return [plain(one) for one in found]
    if isinstance(found, Record) and found.key == META_KEY:
        return decode_meta(found.value), found.revision, found.at
    return found


@pytest.mark.parametrize("seed", range(6))
async def test_random_commits_and_scans_agree(store: RecordStore, seed: int) -> None:
    rng = random.Random(seed)
    memory = MemoryRecordStore()
    for n in range(1, 80):
        (meta,) = await memory.get_many(PART, [META_KEY])
        incarnation = None if meta is None else decode_meta(meta.value).incarnation
        everything = (await memory.scan(PART, "", limit=10_000, bodies=True)).records
        revisions = {r.key: r.revision for r in everything}
        batch = random_batch(rng, n, revisions, incarnation)
        assert await outcome(memory, batch) == await outcome(store, batch)
    for limit in (1, 3, 50):
        for reverse in (False, True):
            for delimiter in (None, "\x02", "\x01"):
                for needle in (None, Contains(b"two")):
                    options: dict[str, Any] = {
                        "limit": limit,
                        "reverse": reverse,
                        "delimiter": delimiter,
                        "filter": needle,
                        "bodies": rng.random() < 0.5,
                    }
                    for prefix in ("", "head\x01", "head\x01a\x02", "head\x01a"):
                        expected = await pages(memory, prefix, **options)
                        assert plain(await pages(store, prefix, **options)) == plain(expected)
    keys = [META_KEY, *(random_key(rng) for _ in range(200))]
    for count in (0, 1, 2, 3, 64, 65, 201):
        asked = keys[:count]
        found, expected = await store.get_many(PART, asked), await memory.get_many(PART, asked)
        assert plain(found) == plain(expected)


async def test_deep_folders_are_listed_by_seeking(store: RecordStore) -> None:
    memory = MemoryRecordStore()
    names = [f"head\x01d{d:03d}\x02f{f:03d}\x01" for d in range(40) for f in range(50)]
    names += [f"head\x01x{i}\x01" for i in range(5)] + ["head\x01d005\x03\x01"]
    batch = Batch(
        commit_id="c" * 32,
        verb="write",
        now=1,
        incarnation=None,
        puts=[Put(name, b"{}", None) for name in names],
    )
    await memory.commit(PART, batch)
    await store.commit(PART, batch)
    for limit in (1, 7, 256, 300):
        for reverse in (False, True):
            options: dict[str, Any] = {"limit": limit, "reverse": reverse, "delimiter": "\x02"}
            expected = await pages(memory, "head\x01", **options)
            assert await pages(store, "head\x01", **options) == expected
