"""The SQLite store answers every call as the in-memory reference does."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from crux_workspace.storage import (
    Batch,
    Committed,
    Contains,
    MemoryRecordStore,
    Plan,
    Put,
    Reader,
)
from crux_workspace.storage.layout import META_KEY, decode_meta
from storage_adapters.sql import SqliteRecordStore
from tests.support.random_batches import PART, outcome, pages, random_batch, random_key


@pytest.mark.parametrize("seed", range(6))
async def test_random_commits_and_scans_agree(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    memory = MemoryRecordStore()
    async with await SqliteRecordStore.open(tmp_path / "r.db", durability="normal") as sqlite:
        for n in range(1, 80):
            (meta,) = await memory.get_many(PART, [META_KEY])
            incarnation = None if meta is None else decode_meta(meta.value).incarnation
            everything = (await memory.scan(PART, "", limit=10_000, bodies=True)).records
            revisions = {r.key: r.revision for r in everything}
            batch = random_batch(rng, n, revisions, incarnation)
            assert await outcome(memory, batch) == await outcome(sqlite, batch)
        whole = await memory.scan(PART, "", limit=10_000, bodies=True)
        assert await sqlite.scan(PART, "", limit=10_000, bodies=True) == whole
        for limit in (1, 3, 50):
            for reverse in (False, True):
                for delimiter in (None, "\x02", "\x01"):
                    for needle in (None, Contains(b"two")):
                        options = {
                            "limit": limit,
                            "reverse": reverse,
                            "delimiter": delimiter,
                            "filter": needle,
                            "bodies": rng.random() < 0.5,
                        }
                        for prefix in ("", "head\x01", "head\x01a\x02", "head\x01a"):
                            expected = await pages(memory, prefix, **options)
                            assert await pages(sqlite, prefix, **options) == expected
        keys = [random_key(rng) for _ in range(200)]
        for count in (0, 1, 2, 3, 64, 65, 200):
            asked = keys[:count]
            assert await sqlite.get_many(PART, asked) == await memory.get_many(PART, asked)


@pytest.mark.parametrize("seed", range(6))
async def test_plans_of_one_group_see_and_do_what_they_would_one_by_one(
    tmp_path: Path, seed: int
) -> None:
    memory = MemoryRecordStore()

    def plan_of(number: int, seen: list[Any]) -> Plan:
        async def plan(reader: Reader) -> Batch:
            rng = random.Random(seed * 1000 + number)
            keys = [random_key(rng) for _ in range(3)]
            meta, *rest = await reader.get_many([META_KEY, *keys], bodies=rng.random() < 0.5)
            seen.append((meta, rest))
            if rng.random() < 0.4:
                seen.append(await reader.get_many(keys[::-1]))
            if rng.random() < 0.2:
                seen.append(await reader.scan("head\x01", limit=50, bodies=True, delimiter="\x02"))
            if rng.random() < 0.1:
                raise LookupError(number)
            held = {r.key: r.revision for r in rest if r is not None}
            incarnation = None if meta is None else decode_meta(meta.value).incarnation
            return random_batch(rng, number + 1, held, incarnation)

        return plan

    async with await SqliteRecordStore.open(tmp_path / "r.db", durability="normal") as sqlite:
        committed = 0
        for start in range(0, 120, 12):
            numbers = range(start, start + 12)
            one: list[Any] = []
            other: list[Any] = []
            expected: list[Any] = []
            for number in numbers:
                if number % 40 == 39:
                    await memory.drop(PART)
                    expected.append(None)
                    continue
                call = memory.commit_planned(PART, plan_of(number, one))
                expected += await asyncio.gather(call, return_exceptions=True)
            done = await asyncio.gather(
                *(
                    sqlite.drop(PART)
                    if number % 40 == 39
                    else sqlite.commit_planned(PART, plan_of(number, other))
                    for number in numbers
                ),
                return_exceptions=True,
            )
            assert list(map(repr, done)) == list(map(repr, expected))
            committed += sum(isinstance(verdict, Committed) for verdict in done)
            assert other == one
            whole = await memory.scan(PART, "", limit=10_000, bodies=True)
            assert await sqlite.scan(PART, "", limit=10_000, bodies=True) == whole
        assert committed > 30


async def test_deep_folders_are_listed_by_seeking(tmp_path: Path) -> None:
    memory = MemoryRecordStore()
    async with await SqliteRecordStore.open(tmp_path / "r.db", durability="normal") as sqlite:
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
        await sqlite.commit(PART, batch)
        for limit in (1, 7, 256, 300):
            for reverse in (False, True):
                options = {"limit": limit, "reverse": reverse, "delimiter": "\x02"}
                expected = await pages(memory, "head\x01", **options)
                assert await pages(sqlite, "head\x01", **options) == expected
