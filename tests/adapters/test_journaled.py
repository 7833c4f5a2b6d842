"""A journaled minimal store answers like the reference, keeps its house in order, and takes no harm from late calls."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest
from msgspec.structs import replace

from crux_workspace import workspace
from crux_workspace.errors import ErrorCode, InvalidInputError, StateError, StorageError
from crux_workspace.storage import (
    Batch,
    BatchTooLarge,
    Committed,
    MemoryRecordStore,
    OutcomeUnknown,
    Put,
)
from crux_workspace.storage.layout import META_KEY, decode_meta, partition_name
from crux_workspace.storage.minimal import JsonObject
from crux_workspace.testing import MemoryMinimalStore
from storage_adapters.journaled import JournaledRecordStore, journaled
from tests.adapters.conftest import PART, Writing
from tests.support.journals import OverStore, audit, small_nodes
from tests.support.random_batches import outcome, pages, random_batch, random_key


@pytest.mark.parametrize("seed", range(8))
async def test_random_commits_and_drops_agree_with_the_reference(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_nodes(monkeypatch)
    rng = random.Random(seed)
    memory, below = MemoryRecordStore(), MemoryMinimalStore()
    stores = [journaled(below) for _ in range(2)]
    for n in range(1, 90):
        (meta,) = await memory.get_many(PART, [META_KEY])
        incarnation = None if meta is None else decode_meta(meta.value).incarnation
        everything = (await memory.scan(PART, "", limit=10_000, bodies=True)).records
        batch = random_batch(rng, n, {r.key: r.revision for r in everything}, incarnation)
        store = rng.choice(stores)
        assert await outcome(memory, batch) == await outcome(store, batch)
        if rng.random() < 0.04:
            await memory.drop(PART)
            await rng.choice(stores).drop(PART)
        if n % 10 == 0:
            await audit(below, PART)
            if rng.random() < 0.3:
                stores[rng.randrange(2)] = journaled(below)  # one that knows nothing yet
    whole = await memory.scan(PART, "", limit=10_000, bodies=True)
    for store in (*stores, journaled(below)):
        assert await store.scan(PART, "", limit=10_000, bodies=True) == whole
        for limit in (1, 3, 50):
            for reverse in (False, True):
                for delimiter in (None, "\x02", "\x01"):
                    options = {"limit": limit, "reverse": reverse, "delimiter": delimiter}
                    for prefix in ("", "head\x01", "head\x01a\x02", "head\x01a"):
                        expected = await pages(memory, prefix, **options)
                        assert await pages(store, prefix, **options) == expected
        keys = [random_key(rng) for _ in range(100)]
        assert await store.get_many(PART, keys) == await memory.get_many(PART, keys)
    await audit(below, PART)


async def test_a_large_partition_is_read_by_few_gets(writing: Writing) -> None:
    below = MemoryMinimalStore()
    async with journaled(below) as store:
        names = [f"d{n % 100:03d}\x02f{n:05d}" for n in range(5_000)]
        for start in range(0, 5_000, 500):
            await store.commit_planned(PART, _many(names[start : start + 500]))
        while await audit(below, PART) % 32:
            await store.commit_planned(PART, writing.plan("more"))
    over = OverStore(below)
    fresh = journaled(over)
    (found,) = await fresh.get_many(PART, [f"head\x01{names[17]}\x01"])
    assert found is not None
    cold = over.calls
    await fresh.get_many(PART, [f"head\x01{names[4_321]}\x01"], bodies=False)
    warm = over.calls - cold
    assert cold <= 12
    assert warm <= 4
    await fresh.aclose()


def _many(names: list[str]) -> Any:
    async def plan(reader: Any) -> Batch:
        (meta,) = await reader.get_many([META_KEY], bodies=False)
        return Batch(
            commit_id=names[0].encode().hex(),
            verb="write",
            now=1,
            incarnation=None if meta is None else decode_meta(meta.value).incarnation,
            puts=[Put(f"head\x01{name}\x01", b'{"n":1}', b"body") for name in names],
        )

    return plan


class _LosesAnswers(MemoryMinimalStore):
    """Does what it is asked to, and says that it failed."""

    lost = 0

    async def create(self, key: str, value: JsonObject) -> bool:
        made = await super().create(key, value)
        if made and "log/" in key:
            self.lost += 1
            raise ConnectionResetError("gone")
        return made


class _TriesTwice(MemoryMinimalStore):
    """Repeats a create whose answer was lost below, and so finds that something is there."""

    async def create(self, key: str, value: JsonObject) -> bool:
        await super().create(key, value)
        return await super().create(key, value)


@pytest.mark.parametrize("kind", [_LosesAnswers, _TriesTwice])
async def test_a_commit_whose_answer_was_lost_is_recognised(
    kind: type[MemoryMinimalStore], writing: Writing
) -> None:
    store = journaled(kind())
    sequences = [(await store.commit_planned(PART, writing.plan("a"))).sequence for _ in range(70)]
    assert sequences == list(range(1, 71))


class _Refuses(MemoryMinimalStore):
    """Fails without doing anything."""

    async def create(self, key: str, value: JsonObject) -> bool:
        raise ConnectionResetError("gone")


async def test_a_commit_that_may_still_arrive_is_of_unknown_outcome(writing: Writing) -> None:
    with pytest.raises(OutcomeUnknown):
        await journaled(_Refuses()).commit_planned(PART, writing.plan("a"))


class _NeverCreates(MemoryMinimalStore):
    """Says that something is there, and has nothing."""

    async def create(self, key: str, value: JsonObject) -> bool:
        return False


async def test_a_store_that_never_creates_is_found_out(writing: Writing) -> None:
    with pytest.raises(StorageError, match="certify it"):
        await journaled(_NeverCreates()).commit_planned(PART, writing.plan("a"))


class _Gate(OverStore):
    """Holds calls of one kind back until it is opened."""

    def __init__(self, below: MemoryMinimalStore, held_back: str) -> None:
        super().__init__(below)
        self.held_back = held_back
        self.waiting = asyncio.Event()
        self.open = asyncio.Event()

    async def _wait(self, key: str) -> None:
        if key.startswith(self.held_back):
            self.waiting.set()
            await self.open.wait()

    async def put(self, key: str, value: JsonObject) -> None:
        await self._wait(key)
        await super().put(key, value)

    async def create(self, key: str, value: JsonObject) -> bool:
        await self._wait(key)
        return await super().create(key, value)


async def _everything(below: MemoryMinimalStore) -> list[Any]:
    page = await journaled(below).scan(PART, "", limit=10_000, bodies=True)
    return page.records


@pytest.mark.parametrize("held_back", ["node/", "body/", "checkpoint/", "tip/"])
async def test_a_checkpoint_that_is_finished_far_too_late_harms_nothing(
    held_back: str, writing: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_nodes(monkeypatch)
    below = MemoryMinimalStore()
    gate = _Gate(below, held_back)
    slow, quick = journaled(gate), journaled(below)
    for name in "ab":
        await quick.commit_planned(PART, writing.plan(name))
    task = asyncio.create_task(slow.commit_planned(PART, writing.plan("slow")))
    await gate.waiting.wait()
    for n in range(40):
        await quick.commit_planned(PART, writing.plan(f"n{n % 7}", b"%d" % n))
    before = await _everything(below)
    gate.open.set()
    assert (await task).sequence == 3
    assert await _everything(below) == before
    for store in (slow, quick):
        await store.commit_planned(PART, writing.plan("end"))
        (found,) = await store.get_many(PART, ["head\x01end\x01"])
        assert found is not None
    heads = [r for r in await _everything(below) if r.key.startswith("head\x01")]
    assert len(heads) == 7 + 3 + 1


async def test_a_commit_that_arrives_far_too_late_is_planned_again(
    writing: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_nodes(monkeypatch)
    below = MemoryMinimalStore()
    gate = _Gate(below, "log/")
    slow, quick = journaled(gate), journaled(below)
    await quick.commit_planned(PART, writing.plan("a"))
    task = asyncio.create_task(slow.commit_planned(PART, writing.plan("slow")))
    await gate.waiting.wait()
    for n in range(40):
        await quick.commit_planned(PART, writing.plan("a", b"%d" % n))
    gate.open.set()
    assert (await task).sequence == 42
    assert await audit(below, PART) == 42


async def test_a_reader_that_was_passed_by_reads_again(
    writing: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_nodes(monkeypatch)
    below = MemoryMinimalStore()
    reader, writer = journaled(below), journaled(below)
    for n in range(10):
        await writer.commit_planned(PART, writing.plan(f"n{n}"))
    assert await reader.sequences([PART]) == [10]
    for n in range(30):
        await writer.commit_planned(PART, writing.plan(f"n{n % 10}", b"%d" % n))
    page = await reader.scan(PART, "head\x01", limit=100, bodies=True)
    assert [r.body for r in page.records] == [b"%d" % n for n in range(20, 30)]


async def test_what_a_store_lost_is_reported_and_never_guessed(
    writing: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_nodes(monkeypatch)
    below = MemoryMinimalStore()
    for n in range(20):
        await journaled(below).commit_planned(PART, writing.plan(f"n{n}"))
    for kind in ("node/", "body/", "checkpoint/", "log/"):
        damaged = MemoryMinimalStore()
        damaged.held = {k: "{}" if k.startswith(kind) else v for k, v in below.held.items()}
        with pytest.raises(StorageError) as caught:
            await journaled(damaged).scan(PART, "", limit=1_000, bodies=True)
        assert caught.value.code == ErrorCode.RECORD_CORRUPT
    gone = MemoryMinimalStore()
    gone.held = {k: v for k, v in below.held.items() if not k.startswith("node/")}
    with pytest.raises(StorageError, match="are gone"):
        await journaled(gone).get_many(PART, ["head\x01n1\x01"])


async def test_a_commit_beyond_the_store_s_value_is_refused_whole() -> None:
    store = journaled(MemoryMinimalStore(), max_value_bytes=256 << 10)
    batch = Batch(
        commit_id="c" * 32,
        verb="write",
        now=1,
        incarnation=None,
        puts=[Put(f"k\x01{n}\x01", b"{}" + b" " * 100, b"\x01" * 1_000) for n in range(60)],
    )
    with pytest.raises(BatchTooLarge):
        await store.commit(PART, batch)
    assert await store.sequences([PART]) == [0]


LIMIT = 256 << 10


class _TakesSoMuch(MemoryMinimalStore):
    """A vendor's store that refuses values of more bytes of JSON than `LIMIT`."""

    async def create(self, key: str, value: JsonObject) -> bool:
        self.largest = max(self.largest, self._weighed(value))
        return await super().create(key, value)

    async def put(self, key: str, value: JsonObject) -> None:
        self._weighed(value)
        await super().put(key, value)

    largest = 0
    """Bytes of the largest value that was created."""

    def _weighed(self, value: JsonObject) -> int:
        size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
        if size > LIMIT:
            raise ValueError("the value is too large")
        return size


def _one(number: int, body: bytes) -> Batch:
    return Batch(
        commit_id=f"{number:032x}",
        verb="write",
        now=1,
        incarnation=None if number == 1 else f"{1:032x}",
        puts=[Put("k\x01", b"{}", body), Put("head\x01a\x01", b"{}")],
    )


async def _largest_of(number: int, escaped: int) -> bytes:
    """Return the body of the largest commit that the store takes: some bytes that JSON writes as six, and plain ones."""
    spare = 5_000
    while True:
        below = _TakesSoMuch()
        for n in range(1, number):
            await journaled(below).commit(PART, _one(n, b"before"))
        body = b"\x01" * escaped + b"x" * (LIMIT - 6 * escaped - spare)
        await journaled(below).commit(PART, _one(number, body))
        if below.largest == LIMIT:
            return body
        spare -= LIMIT - below.largest


@pytest.mark.parametrize("what", ["a value of the store", "a commit"])
async def test_what_is_just_at_a_limit_is_kept_and_one_byte_more_is_refused(what: str) -> None:
    """The first limit is the vendor's own, of the bytes that it gets; the other one is what the store declares of a commit."""
    below = _TakesSoMuch()
    store = journaled(below, max_value_bytes=LIMIT)
    most = store.capabilities.max_commit_bytes
    assert most == LIMIT // 2
    if what == "a commit":
        body, limit = b"x" * (most - 4), most  # the records' values are the rest
    else:
        body, limit = await _largest_of(2, 40_000), LIMIT
    await store.commit(PART, _one(1, b"before"))
    held = dict(below.held)
    with pytest.raises(BatchTooLarge) as caught:
        await store.commit(PART, _one(2, body + b"x"))
    assert (caught.value.what, caught.value.size, caught.value.limit) == ("bytes", limit + 1, limit)
    assert below.held == held, "nothing of it is there"
    assert (await store.commit(PART, _one(2, body))).sequence == 2
    assert below.largest == LIMIT or what == "a commit"
    for reader in (store, journaled(below)):
        [record] = await reader.get_many(PART, ["k\x01"])
        assert record is not None
        assert record.body == body
        assert await reader.sequences([PART]) == [2]


@pytest.mark.parametrize("text", ['\\"', "\U0001f600", "x"], ids=["escaped", "wide", "plain"])
async def test_values_at_the_limit_are_taken_into_checkpoints(text: str) -> None:
    """JSON takes more bytes of a value than it has characters: no node grows beyond what the store takes."""
    below = _TakesSoMuch()
    store = journaled(below, max_value_bytes=LIMIT)
    most = LIMIT // 2 - 1_000  # what JSON writes as two bytes each just fits
    values = {}
    for number, share in enumerate([0.5, 1.0, 0.3, 0.3, 0.3, 1.0, 0.1, *[0.01] * 60], 1):
        count = int(most * share) // len(text.encode())
        value = f'{{"v":"{text * count}"}}'.encode()
        values[f"k\x01{number:03d}"] = value
        batch = replace(_one(number, b""), puts=[Put(f"k\x01{number:03d}", value)])
        await store.commit(PART, batch)
    assert await audit(below, PART) == len(values)
    assert [key for key in below.held if key.startswith("checkpoint/")]
    page = await journaled(below).scan(PART, "k\x01", limit=1_000)
    assert {record.key: record.value for record in page.records} == values


async def test_values_of_any_bytes_come_back(writing: Writing) -> None:
    store = journaled(MemoryMinimalStore())
    bodies = [b"", b"\0", b"\xff\xfe", "ä\u2028\U0001f600".encode(), b"\xed\xa0\x80", b"a\r\nb\x01"]
    for n, body in enumerate(bodies):
        await store.commit_planned(PART, writing.plan(f"n{n}", body))
    page = await store.scan(PART, "head\x01", limit=10, bodies=True)
    assert [r.body for r in page.records] == bodies


async def test_a_closed_store_says_so(writing: Writing) -> None:
    store = journaled(MemoryMinimalStore())
    await store.commit_planned(PART, writing.plan("a"))
    await store.aclose()
    with pytest.raises(StateError):
        await store.sequences([PART])


@pytest.mark.parametrize(
    "options", [{"prefix": "a b"}, {"prefix": "ä"}, {"max_value_bytes": 1}, {"beat_s": 9}]
)
def test_nonsense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        journaled(MemoryMinimalStore(), **options)


async def test_two_prefixes_share_a_store(writing: Writing) -> None:
    below = MemoryMinimalStore()
    one, two = journaled(below, prefix="one/"), journaled(below, prefix="two/")
    await one.commit_planned(PART, writing.plan("a"))
    assert await two.sequences([PART]) == [0]
    assert (await two.partitions("", limit=9)).names == []
    assert isinstance(await two.commit_planned(PART, writing.plan("a")), Committed)
    await one.drop(PART)
    assert await two.sequences([PART]) == [1]


def test_the_store_is_what_its_name_says() -> None:
    assert isinstance(journaled(MemoryMinimalStore()), JournaledRecordStore)


async def test_500_files_of_64_kib_are_one_commit() -> None:
    below = MemoryMinimalStore()
    text = "x" * 64_000
    async with journaled(below, durable=True) as records:
        ws = workspace(id="w", namespace="n", records=records)
        async with ws.transaction() as tx:
            for n in range(500):
                await tx.write(f"/workspace/{n % 10}/{n}.md", f"{n}{text}"[:64_000])
        assert len(await ws.log()) == 1
        await ws.aclose()
    again = workspace(id="w", namespace="n", records=journaled(below))
    assert (await again.usage()).live_bytes == 500 * 64_000
    assert await again.read_text("/workspace/9/499.md") == f"499{text}"[:64_000]
    assert await audit(below, partition_name("w", "n")) == 1
