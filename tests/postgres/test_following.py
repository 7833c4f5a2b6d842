"""A commit that follows the last one that is known is judged and written in one statement: as the function would, or not at all."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

from crux_workspace.storage import Batch, MemoryRecordStore, Put, Record, Take
from crux_workspace.storage.layout import META_KEY, decode_meta
from crux_workspace.storage.records import CeilingExceeded, PreconditionFailed
from storage_adapters.sql.postgres import PostgresRecordStore
from storage_adapters.sql.postgres.committing import Request
from storage_adapters.sql.postgres.database import Database
from tests.postgres.conftest import Opening, through
from tests.support.fault_proxy import FaultProxy
from tests.support.postgres import PostgresServer
from tests.support.random_batches import PART, random_batch

pytestmark = pytest.mark.postgres

A = "/workspace/a.md"
_HELD = 4711
_WAITERS = (
    f"select count(*) from pg_locks where locktype = 'advisory' and objid = {_HELD} and not granted"  # noqa: S608 - a number of this module
)


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> Counter[bool]:
    """Counts commits that were tried in one statement, by whether that did them."""
    found: Counter[bool] = Counter()
    plain = Database.rows

    async def rows(self: Database, connection: Any, text: str, parameters: Any) -> Any:
        answer = await plain(self, connection, text, parameters)
        if text == self.texts.follow:
            found[bool(answer)] += 1
        return answer

    monkeypatch.setattr(Database, "rows", rows)
    return found


async def follow(store: PostgresRecordStore, batch: Batch, told: Record | None) -> Any:
    """Commit what was made on `meta` as it was told."""
    since = store.database.guesses.generation
    turn = store._writer._turn(PART)  # as `commit_planned` has it
    done = await store._writer._apply_since(Request(PART, batch, since, told))
    del turn
    return done


async def outcome(call: Any) -> Any:
    try:
        done = await call
    except (PreconditionFailed, CeilingExceeded) as error:
        return type(error), *error.args
    return done.sequence, done.at


async def everything(store: Any) -> list[Any]:
    records = (await store.scan(PART, "", limit=10_000, bodies=True)).records
    return [(decode_meta(r.value), r.revision, r.at) if r.key == META_KEY else r for r in records]


def plain_batch(
    rng: random.Random, n: int, known: dict[str, Record], incarnation: str | None
) -> Batch:
    """Return a batch as plain writes are: new records, and some that give their bodies to others."""
    puts: list[Put] = []
    expect: dict[str, int] = {}
    free = [f"head\x01{name}\x01" for name in "abcdefgh"]
    for key in rng.sample(free, rng.randint(1, 3)):
        held = known.get(key)
        expect[key] = 0 if held is None else held.revision
        body: Any = rng.choice([b"", rng.randbytes(9), rng.randbytes(9), None])
        if held is not None:
            ended = f"state\x01{key[5:-1]}\x01{n:04}\x01"
            puts.append(Put(ended, b'{"ended":%d}' % n, Take(key)))
            if rng.random() < 0.2:
                puts[-1] = Put(key, b"{}", Take(key))  # keeps its own
                continue
        puts.append(Put(key, b'{"n":%d}' % n, body))
    if rng.random() < 0.2:
        puts.append(Put("mark\x01\x04\x01", b"{}", b"marked"))
    if rng.random() < 0.1:
        expect[rng.choice(free)] = rng.choice([0, 1, n - 1])
    if rng.random() < 0.1:
        puts.append(Put("blind\x01", b"{}", b"there, or not"))
    return Batch(
        commit_id=f"{n:032x}",
        verb="write",
        now=1000 + rng.randint(-5, 5) * n,
        incarnation=incarnation,
        expect=expect,
        expect_empty=[(rng.choice(free), rng.choice(free))] if rng.random() < 0.2 else [],
        puts=puts,
        counters={"files": (rng.randint(-1, 2), 60), "bytes": (rng.randint(0, 9), None)},
    )


@pytest.mark.parametrize("number", range(2))
async def test_what_follows_is_judged_and_written_as_the_reference_does(
    store: PostgresRecordStore, followed: Counter[bool], number: int
) -> None:
    rng, memory = random.Random(number), MemoryRecordStore()
    for n in range(1, 160):
        records = (await memory.scan(PART, "", limit=10_000, bodies=True)).records
        known = {record.key: record for record in records}
        [told] = await store.get_many(PART, [META_KEY])
        incarnation = None if told is None else decode_meta(told.value).incarnation
        if n % 5:
            batch = plain_batch(rng, n, known, incarnation)
        else:
            revisions = {record.key: record.revision for record in records}
            batch = random_batch(rng, n, revisions, incarnation)
        expected = await outcome(memory.commit(PART, batch))
        assert await outcome(follow(store, batch, told)) == expected
        if n % 20 == 0:
            assert await everything(store) == await everything(memory)
    assert await everything(store) == await everything(memory)
    bodies = await rows_of(store, "bodies")
    assert bodies == sum(record[2] is not None for record in await bodies_of(store))
    assert followed[True] > 40
    assert followed[False] > 10


async def rows_of(store: PostgresRecordStore, table: str) -> int:
    async with store.database.pool.reading() as connection:
        count: int = await connection.fetchval(
            f"select count(*) from crux_workspace.{table}"  # noqa: S608 - a name of this module
        )
        return count


async def bodies_of(store: PostgresRecordStore) -> list[Any]:
    """Every record with the number of its body."""
    async with store.database.pool.reading() as connection:
        return list(
            await connection.fetch("select key, revision, body from crux_workspace.records")
        )


def write(n: int, incarnation: str | None, key: str = "head\x01a\x01", revision: int = 0) -> Batch:
    return Batch(
        commit_id=f"{n:032x}",
        verb="write",
        now=n,
        incarnation=incarnation,
        expect={key: revision},
        puts=[Put(key, b'{"n":%d}' % n, b"%d" % n)],
    )


async def begun(store: PostgresRecordStore) -> tuple[str, Record]:
    """Make commit 1; return the incarnation and `meta`."""
    await store.commit(PART, write(1, None, "other\x01"))
    [told] = await store.get_many(PART, [META_KEY])
    assert told is not None
    return decode_meta(told.value).incarnation, told


async def test_who_was_told_less_than_there_is_goes_by_the_function(
    store: PostgresRecordStore, followed: Counter[bool]
) -> None:
    incarnation, told = await begun(store)
    await store.commit(PART, write(2, incarnation, "another\x01"))
    done = await follow(store, write(3, incarnation), told)
    assert done.sequence == 3
    assert followed == {False: 1}


async def test_another_incarnation_of_the_same_length_is_not_followed(
    store: PostgresRecordStore, followed: Counter[bool]
) -> None:
    incarnation, told = await begun(store)
    await store.drop(PART)
    await store.commit(PART, write(7, None, "other\x01"))
    with pytest.raises(PreconditionFailed):
        await follow(store, write(2, incarnation), told)
    assert followed == {False: 1}
    assert await store.sequences([PART]) == [1]


async def test_one_of_many_that_follow_the_same_commit_does(
    store: PostgresRecordStore, postgres_url: str, followed: Counter[bool]
) -> None:
    """They come by connections of their own; each number is given out once, and who comes second is refused."""
    incarnation, told = await begun(store)
    async with await PostgresRecordStore.open(postgres_url) as other:
        for turn in range(30):
            [now] = await store.get_many(PART, [META_KEY])
            assert now is not None
            [head] = await store.get_many(PART, ["head\x01a\x01"])
            revision = 0 if head is None else head.revision
            batches = [write(100 * turn + n, incarnation, revision=revision) for n in range(2, 8)]
            for batch in batches:
                batch.puts = [
                    *(
                        [Put(f"state\x01{turn}\x01", b"{}", Take("head\x01a\x01"))]
                        if revision
                        else []
                    ),
                    *batch.puts,
                ]
            found = await asyncio.gather(
                *(
                    outcome(follow(one, batch, now))
                    for batch, one in zip(batches, [store, other] * 3, strict=True)
                )
            )
            assert sum(isinstance(one[0], int) for one in found) == 1
            assert (await store.sequences([PART])) == [told.revision + turn + 1]
    assert followed[True] > 10


@pytest.mark.parametrize("by", ["the function", "the statement"])
async def test_a_commit_between_the_snapshot_and_the_lock_is_seen(
    store: PostgresRecordStore,
    postgres_server: PostgresServer,
    postgres_url: str,
    by: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The statement has its snapshot and waits before it locks; somebody else's commit in between is not overwritten."""
    incarnation, told = await begun(store)
    name = "where p.name = $1 and"
    text = store.database.texts.follow
    assert text.count(name) == 1
    slow = text.replace(
        name, f"where p.name = $1 and pg_advisory_xact_lock({_HELD}) is not null and"
    )
    plain = Database.rows
    answers: list[int] = []

    async def rows(self: Database, connection: Any, asked: str, parameters: Any) -> Any:
        if asked == text and self is store.database:
            answer = await plain(self, connection, slow, parameters)
            answers.append(len(answer))
            return answer
        return await plain(self, connection, asked, parameters)

    holder = await postgres_server.connect()
    await holder.execute(f"select pg_advisory_lock({_HELD})")
    async with await PostgresRecordStore.open(postgres_url) as other:
        monkeypatch.setattr(Database, "rows", rows)
        late = asyncio.create_task(outcome(follow(store, write(3, incarnation), told)))
        async with asyncio.timeout(20):
            while not await holder.fetchval(_WAITERS):  # noqa: ASYNC110 - it is the server that tells
                await asyncio.sleep(0.01)
        first = await follow(other, write(2, incarnation), told if by == "the statement" else None)
        assert first.sequence == 2
        await holder.close()
        assert await late == (PreconditionFailed, "revision", "head\x01a\x01")
        assert answers == [0]
        [record] = await other.get_many(PART, ["head\x01a\x01"])
        assert record is not None
        assert record.body == b"2"


@pytest.mark.parametrize("fault", ["lose request", "lose answer", "truncate answer"])
async def test_a_commit_whose_connection_breaks_is_there_once(
    proxy: FaultProxy, opening: Opening, fault: Any
) -> None:
    """It was guessed, nobody knows what became of it, and the next plan looks in the log before it does it again."""
    ws = await opening(through(proxy, pool_size=2))
    version = 0
    for turn in range(4):
        for _ in range(7):  # from then on it is planned without reading
            version += 1
            await ws.write(A, f"{version}")
        broken = proxy.broken
        proxy.arm(fault, holding=b'{"seq":')
        file = await ws.write(A, f"broken {turn}")
        version += 1
        assert proxy.broken == broken + 1
        assert file.version == version
        assert await ws.read_text(A) == f"broken {turn}"
    assert [entry.sequence for entry in await ws.log(limit=1_000)] == list(range(version, 0, -1))
    assert [entry.version for entry in await ws.history(A)] == list(range(version, 0, -1))
