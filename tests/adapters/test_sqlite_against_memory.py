"""The SQLite store answers every call as the in-memory reference does."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from crux_workspace.model.changes import Change
from crux_workspace.storage import (
    Batch,
    CeilingExceeded,
    Committed,
    Contains,
    MemoryRecordStore,
    Plan,
    PreconditionFailed,
    Put,
    Reader,
    RecordStore,
    Take,
)
from crux_workspace.storage.layout import META_KEY, decode_meta
from storage_adapters.sql import SqliteRecordStore

PART = "ws\x01n\x01"
FOLDERS = ["a", "a\x02b", "a\x02b\x02c", "a!", "é", "\U0001f600", "z\uffff", ""]


def _key(rng: random.Random) -> str:
    folder = rng.choice(FOLDERS)
    name = rng.choice("abcxyz%_")
    return f"head\x01{folder}\x02{name}\x01" if folder else f"head\x01{name}\x01"


def _batch(rng: random.Random, n: int, revisions: dict[str, int], incarnation: str | None) -> Batch:
    keys = [_key(rng) for _ in range(rng.randint(1, 6))]
    puts: dict[str, Put] = {}
    for key in keys:
        body: Any = rng.choice([None, b"", b"one two", rng.randbytes(20)])
        held = [k for k in revisions if k.startswith("head")]
        if held and rng.random() < 0.3:
            body = Take(rng.choice(held))
        puts[key] = Put(key, b'{"n":%d}' % n, body)
    if rng.random() < 0.3:
        puts["mark"] = Put("state\x01\x04\x01", b"{}", b"marked")
    deletes = [_key(rng) for _ in range(rng.randint(0, 2))]
    expect = {k: revisions.get(k, 0) for k in keys if rng.random() < 0.5}
    if rng.random() < 0.1:
        expect[keys[0]] = 999
    return Batch(
        commit_id=f"{n:032x}",
        verb="write",
        now=1000 + rng.randint(-5, 5) * n,
        incarnation=incarnation,
        expect=expect,
        expect_empty=[(f"{keys[0]}\x02", f"{keys[0]}\x03")] if rng.random() < 0.5 else [],
        expect_quiet=[("/a", True)] if rng.random() < 0.2 else [],
        quiet_since=max(0, n - 3),
        puts=list(puts.values()),
        deletes=deletes,
        counters={"files": (rng.randint(-1, 2), 30)},
        changes=[Change("update", f"/{k}", file_id="f") for k in ("a/x", "b")]
        if rng.random() < 0.9
        else [Change("update", f"/many/{i:04d}") for i in range(1500)],
    )


async def _outcome(store: RecordStore, batch: Batch) -> tuple[Any, ...]:
    try:
        done = await store.commit(PART, batch)
    except (PreconditionFailed, CeilingExceeded) as error:
        return type(error), *error.args
    return done.sequence, done.at


async def _pages(store: RecordStore, prefix: str, **options: Any) -> list[Any]:
    """Every record and prefix of all pages, in order, however the store cuts its pages."""
    found: list[Any] = []
    at: Any = None
    at_end = options.get("reverse", False)
    side = "before" if at_end else "after"
    for _ in range(500):
        page = await store.scan(PART, prefix, **options, **{side: at})
        names = {r.key: r for r in page.records} | dict.fromkeys(page.prefixes)
        found.extend(sorted(names.items(), key=lambda item: item[0], reverse=bool(at_end)))
        if page.next is None:
            break
        at = page.next
    return found


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
            batch = _batch(rng, n, revisions, incarnation)
            assert await _outcome(memory, batch) == await _outcome(sqlite, batch)
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
                            expected = await _pages(memory, prefix, **options)
                            assert await _pages(sqlite, prefix, **options) == expected
        keys = [_key(rng) for _ in range(200)]
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
            keys = [_key(rng) for _ in range(3)]
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
            return _batch(rng, number + 1, held, incarnation)

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
                expected = await _pages(memory, "head\x01", **options)
                assert await _pages(sqlite, "head\x01", **options) == expected
