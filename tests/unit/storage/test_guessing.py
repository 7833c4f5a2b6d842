"""What a store knows without reading: how much of it, since when, and when it is worth a try."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from crux_workspace.storage import knowing
from crux_workspace.storage.guessing import CannotGuess, Guesses, Noting, Told
from crux_workspace.storage.layout import META_KEY, Meta, encode_meta
from crux_workspace.storage.memory import MemoryRecordStore
from crux_workspace.storage.planning import PartitionReader
from crux_workspace.storage.records import (
    Batch,
    BatchTooLarge,
    Committed,
    PreconditionFailed,
    Put,
    Reader,
    Record,
)

P, INC = "p", "a" * 24


class Store:
    """A memory store behind guesses; counts what is asked of it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.guesses = Guesses(lambda: self.seconds)
        self.inner = MemoryRecordStore()
        self.reads = self.commits = self.number = self.since = 0

    async def write(self, key: str, value: bytes = b"{}", *, partition: str = P) -> bool:
        """Write a record that a plan has read; tells whether a guess was right."""
        self.number += 1
        commit_id = INC if self.number == 1 else f"{self.number:024x}"

        async def plan(reader: Reader) -> Batch:
            record, meta = await reader.get_many([key, META_KEY], bodies=False)
            return Batch(
                commit_id=commit_id,
                verb="write",
                now=1,
                incarnation=None if meta is None else INC,
                expect={key: 0 if record is None else record.revision},
                puts=[Put(key, value)],
            )

        guessed = await self.guesses.commit(
            partition, plan, lambda batch, _: self._commit(partition, batch)
        )
        if guessed is None:
            self.reads += 1
            reader = Noting(self.guesses, partition, PartitionReader(self.inner, partition))
            await self._commit(partition, await plan(reader))
            self.guesses.noted(partition, reader)
        return guessed is not None

    async def practised(self) -> None:
        """Write so often that the next write of the same key is guessed."""
        while not await self.write("k\x01"):
            pass

    async def elsewhere(self, key: str, *, incarnation: str | None = INC) -> Committed:
        """Write as another process does."""
        self.number += 1
        return await self.inner.commit(
            P,
            Batch(
                commit_id=f"{self.number:024x}",
                verb="write",
                now=1,
                incarnation=incarnation,
                puts=[Put(key, b'{"by":"other"}')],
            ),
        )

    async def value(self, key: str) -> bytes:
        [record] = await self.inner.get_many(P, [key])
        assert record is not None
        return record.value

    async def judge(self, batch: Batch, told: Told) -> Committed:
        """Judge a guess and learn nothing."""
        self.since = told.generation
        return await self.inner.commit(P, batch)

    async def _commit(self, partition: str, batch: Batch) -> Committed:
        self.commits += 1
        since = self.guesses.generation
        done = await self.inner.commit(partition, batch)
        self.guesses.committed(partition, batch, done, since)
        return done


async def test_new_keys_are_guessed_after_four_that_were_new() -> None:
    store = Store()
    assert [await store.write(f"k{n}\x01") for n in range(8)] == [False] * 4 + [True] * 4


async def test_a_key_of_ones_own_is_guessed_after_four_that_were_as_known() -> None:
    store = Store()
    found = [await store.write("k\x01", b'{"n":%d}' % n) for n in range(8)]
    assert found == [False] * 5 + [True] * 3
    assert await store.value("k\x01") == b'{"n":7}'


async def test_wrong_guesses_come_less_and_less_often() -> None:
    store = Store()
    await store.practised()
    for _ in range(200):
        await store.elsewhere("k\x01")
        assert not await store.write("k\x01")
    refused = store.commits - 201
    assert 0 < refused < 10


async def test_nothing_learned_before_another_server_may_have_taken_over_is_told() -> None:
    store = Store()
    await store.practised()
    reader = Noting(store.guesses, P, PartitionReader(store.inner, P))
    store.guesses.forget()
    await reader.get_many(["k\x01", META_KEY], bodies=False)
    found = [await store.write("k\x01") for _ in range(6)]
    assert found == [False] * 5 + [True], "what began before is not learned"


async def test_another_incarnation_ends_all_that_is_known() -> None:
    store = Store()
    await store.practised()
    await store.inner.drop(P)
    again = await store.inner.commit(
        P,
        Batch(
            commit_id="b" * 24, verb="write", now=1, incarnation=None, puts=[Put("k\x01", b"{}")]
        ),
    )
    assert again.sequence == 1, "the same revision"

    async def plan(reader: Reader) -> Batch:
        record, meta = await reader.get_many(["k\x01", META_KEY], bodies=False)
        assert record is not None
        assert meta is not None
        return Batch(commit_id="c" * 24, verb="write", now=1, incarnation=INC, puts=[])

    assert await store.guesses.commit(P, plan, store.judge) is None
    reader = Noting(store.guesses, P, PartitionReader(store.inner, P))
    await reader.get_many([META_KEY], bodies=False)

    async def looks(reader: Reader) -> Batch:
        found = await reader.get_many(["k\x01"], bodies=False)
        assert found == [None], "it is only guessed to be absent"
        raise PreconditionFailed("revision")

    assert await store.guesses.commit(P, looks, store.judge) is None


async def test_a_plan_is_held_to_all_that_it_was_told() -> None:
    store = Store()
    await store.practised()
    await store.elsewhere("k\x01")

    async def careless(reader: Reader) -> Batch:
        await reader.get_many(["k\x01", META_KEY], bodies=False)
        return Batch(
            commit_id="c" * 24, verb="write", now=1, incarnation=INC, puts=[Put("other\x01", b"{}")]
        )

    assert await store.guesses.commit(P, careless, store.judge) is None
    assert await store.inner.get_many(P, ["other\x01"]) == [None]


def batch_of(**options: Any) -> Batch:
    return Batch(commit_id="c" * 24, verb="write", now=1, incarnation=INC, **options)


async def test_a_plan_that_was_told_two_things_of_one_record_is_made_by_reading() -> None:
    """What it saw never was at one time, so no expectation can hold it to that."""
    store = Store()
    await store.practised()

    async def plan(reader: Reader) -> Batch:
        await reader.get_many(["k\x01", META_KEY], bodies=False)
        store.reads = 0
        while not store.reads:  # our other commits
            await store.elsewhere("k\x01")
            await store.write("k\x01")
        with pytest.raises(CannotGuess):
            await reader.get_many(["k\x01"], bodies=False)
        ended.append("refused")
        raise CannotGuess

    ended: list[str] = []
    assert await store.guesses.commit(P, plan, store.judge) is None
    assert ended == ["refused"]


async def test_a_plan_that_expects_otherwise_than_it_was_told_is_made_by_reading() -> None:
    store = Store()
    await store.practised()

    async def plan(reader: Reader) -> Batch:
        await reader.get_many(["k\x01", META_KEY], bodies=False)
        return batch_of(expect={"k\x01": 1}, puts=[Put("other\x01", b"{}")])

    assert await store.guesses.commit(P, plan, store.judge) is None
    assert await store.inner.get_many(P, ["other\x01"]) == [None]


@pytest.mark.parametrize(
    "refusal", [PreconditionFailed("revision"), BatchTooLarge("value", 2, 1)], ids=repr
)
async def test_a_refusal_of_a_guess_is_not_the_last_word(refusal: Exception) -> None:
    store = Store()
    await store.practised()

    async def plan(reader: Reader) -> Batch:
        await reader.get_many(["k\x01", META_KEY], bodies=False)
        return batch_of()

    async def refuse(batch: Batch, told: Told) -> Committed:
        raise refusal

    assert await store.guesses.commit(P, plan, refuse) is None


async def test_a_guess_is_as_old_as_what_its_plan_was_told() -> None:
    """Another server may take over while a plan is being made; its batch must not be judged there."""
    store = Store()
    await store.practised()
    began = store.guesses.generation

    async def plan(reader: Reader) -> Batch:
        await reader.get_many(["k\x01", META_KEY], bodies=False)
        store.guesses.forget()
        return batch_of()

    await store.guesses.commit(P, plan, store.judge)
    assert store.since == began < store.guesses.generation


async def test_what_the_server_said_long_ago_is_not_told() -> None:
    store = Store()
    await store.practised()
    store.seconds += 9
    assert await store.write("k\x01")
    store.seconds += 11
    assert not await store.write("k\x01")


@pytest.mark.parametrize("ask", ["bodies", "range"])
async def test_bodies_and_ranges_are_not_guessed(ask: str) -> None:
    store = Store()
    await store.practised()

    async def plan(reader: Reader) -> Batch:
        with pytest.raises(CannotGuess):
            if ask == "bodies":
                await reader.get_many(["k\x01"])
            else:
                await reader.scan("k", limit=1)
        raise CannotGuess

    assert await store.guesses.commit(P, plan, store.judge) is None


async def test_an_answer_that_a_commit_has_overtaken_changes_nothing() -> None:
    store = Store()
    await store.practised()
    since = store.guesses.generation
    keys = ["k\x01", META_KEY]
    late: Sequence[Record | None] = await store.inner.get_many(P, keys, bodies=False)
    assert await store.write("k\x01")
    store.guesses.read(P, keys, late, since)
    assert await store.write("k\x01")


async def test_what_is_known_stays_within_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowing, "_MOST_PARTITIONS", 10)
    monkeypatch.setattr(knowing, "_MOST_BYTES", 20_000)
    guesses = Guesses()
    meta = Record(META_KEY, encode_meta(Meta(sequence=1, incarnation=INC, at=1)), None, 1, 1)

    def learn(partition: str, count: int, size: int = 100) -> None:
        keys = [f"k{number}\x01" for number in range(count)]
        found = [Record(key, b"x" * size, None, 1, 1) for key in keys]
        guesses.read(partition, [*keys, META_KEY], [*found, meta], guesses.generation)

    for number in range(40):
        learn(f"p{number}", 4)
    assert list(guesses._known) == [f"p{number}" for number in range(30, 40)]
    learn("p39", 4)
    learn("large", 500)
    assert list(guesses._known) == ["large"], "those used longest ago make room"
    assert len(guesses._known["large"].records) < 60
    learn("huge", 3, size=5_000)
    assert not guesses._known["huge"].records
    assert guesses._size == sum(one.size for one in guesses._known.values()) <= 20_000
    guesses.forget()
    assert guesses._size == 0
