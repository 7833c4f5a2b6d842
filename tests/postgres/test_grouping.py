"""Commits that go together: each has its own verdict, a locked namespace holds up no other one, and what breaks is told to each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager

import pytest

from crux_workspace import Workspace, workspace
from crux_workspace.errors import LimitExceededError
from crux_workspace.model.settings import Limits
from crux_workspace.storage import Batch, Put
from crux_workspace.storage.layout import partition_name
from crux_workspace.storage.records import (
    CeilingExceeded,
    Committed,
    OutcomeUnknown,
    PreconditionFailed,
)
from storage_adapters.sql.postgres import PostgresRecordStore
from storage_adapters.sql.postgres.grouping import Commits, Heads
from tests.postgres.conftest import Opening, through
from tests.support.fault_proxy import Fault, FaultProxy
from tests.support.postgres import PostgresServer
from tests.support.soundness import check_sound
from tests.watch.conftest import until

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(120)]

A = "/workspace/a.md"
FIRST = "c" * 24


@pytest.fixture
async def store(
    postgres_server: PostgresServer, postgres_url: str
) -> AsyncIterator[PostgresRecordStore]:
    async with await PostgresRecordStore.open(
        postgres_server.url(lock_timeout_ms=20_000)
    ) as opened:
        yield opened


def batch(number: int, **options: object) -> Batch:
    """A commit after the first one; it expects the key that it writes to be new."""
    key = f"k{number}\x01"
    given: dict[str, object] = {
        "commit_id": f"{number:024x}",
        "verb": "write",
        "now": 1,
        "incarnation": FIRST,
        "expect": {key: 0},
        "puts": [Put(key, b"{}", b"body")],
    }
    return Batch(**{**given, **options})  # type: ignore[arg-type]


async def made(store: PostgresRecordStore, *partitions: str) -> None:
    for partition in partitions:
        await store.commit(partition, Batch(commit_id=FIRST, verb="write", now=1, incarnation=None))


async def commit(store: PostgresRecordStore, partition: str, what: Batch) -> Committed:
    async def plan(reader: object) -> Batch:
        return what

    return await store.commit_planned(partition, plan)


@contextmanager
def gathered(store: PostgresRecordStore) -> Iterator[None]:
    """Have the commits that come meanwhile go as one group behind the block."""
    with store._writer._commits.lane():
        yield


async def together(
    store: PostgresRecordStore, jobs: list[tuple[str, Batch]]
) -> list[Committed | BaseException]:
    """Commit all as one group."""
    with gathered(store):
        tasks = [asyncio.create_task(commit(store, *job)) for job in jobs]
        await until(lambda: len(store._writer._commits._waiting) == len(jobs))
    return await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the groups that were sent."""
    sizes: list[int] = []
    ask = Commits._ask

    async def noted(self: Commits, asked: list[object]) -> object:
        sizes.append(len(asked))
        return await ask(self, asked)  # type: ignore[arg-type]

    monkeypatch.setattr(Commits, "_ask", noted)
    return sizes


async def test_each_member_of_a_group_has_its_own_verdict(
    store: PostgresRecordStore, sent: list[int]
) -> None:
    await made(store, "a", "b", "c", "d")
    await commit(store, "b", batch(1))
    applied, stale, full, gone = await together(
        store,
        [
            ("a", batch(2)),
            ("b", batch(3, expect={"k1\x01": 1})),
            ("c", batch(4, counters={"live_bytes": (5, 4)})),
            ("d", batch(5, incarnation="d" * 24)),
        ],
    )
    assert sent[0] == 4
    assert isinstance(applied, Committed)
    assert isinstance(stale, PreconditionFailed)
    assert (stale.what, stale.subject) == ("revision", "k1\x01")
    assert isinstance(full, CeilingExceeded)
    assert isinstance(gone, PreconditionFailed)
    assert gone.what == "incarnation"
    assert await store.sequences(["a", "b", "c", "d"]) == [2, 2, 1, 1]


async def test_commits_of_one_id_in_two_namespaces_are_told_apart(
    store: PostgresRecordStore, sent: list[int]
) -> None:
    await made(store, "a", "b")
    applied, refused = await together(
        store, [("a", batch(1)), ("b", batch(1, expect={"k1\x01": 7}))]
    )
    assert sent[0] == 2
    assert isinstance(applied, Committed)
    assert isinstance(refused, PreconditionFailed)
    assert await store.sequences(["a", "b"]) == [2, 1]


async def test_the_lock_is_taken_before_the_function_whatever_the_planner_knows(
    store: PostgresRecordStore, postgres_server: PostgresServer
) -> None:
    """Were the function first, it would commit, find its own row changed, and answer that nothing was done."""
    connection = await postgres_server.connect()
    await connection.execute("set plan_cache_mode = force_generic_plan")
    for known in ("select", "analyze"):
        await made(store, *(f"{known}{number}" for number in range(30)))
        await connection.execute(known)
        await connection.execute(f"prepare it as {store.database.texts.commit_if_free}")
        plan = await connection.fetch(f"explain (verbose) execute it({', '.join(['null'] * 25)})")
        await connection.execute("deallocate it")
        steps = [row[0] for row in plan]
        [locks] = [number for number, step in enumerate(steps) if "LockRows" in step]
        [calls] = [number for number, step in enumerate(steps) if "Function Scan" in step]
        assert locks < calls, "the outer side of the loop, so first"
        [call] = [step for step in steps if "Function Call" in step]
        assert "commit_1(held.name, " in call, "it cannot be called before there is a row"
    await connection.close()


async def test_a_namespace_that_is_locked_holds_up_no_other_one(
    store: PostgresRecordStore, postgres_url: str, sent: list[int]
) -> None:
    await made(store, "a", "b", "c")
    async with await PostgresRecordStore.open(postgres_url) as other:
        async with other.database.holding("b"):
            waiting = asyncio.create_task(
                together(store, [("a", batch(1)), ("b", batch(2)), ("c", batch(3))])
            )
            await until(lambda: sent == [3])
            async with asyncio.timeout(10):
                await commit(store, "a", batch(4))
                await commit(store, "c", batch(5))
            assert await store.sequences(["a", "b", "c"]) == [3, 1, 3]
            assert not waiting.done()
        found = await waiting
    assert [one.sequence for one in found if isinstance(one, Committed)] == [2, 2, 2]


async def test_what_one_member_breaks_is_its_own_fault(
    store: PostgresRecordStore, sent: list[int]
) -> None:
    """The server cannot take one of them, and undoes the group: the others go alone."""
    await made(store, "a", "b", "c")
    jobs = [("a", batch(1)), ("b", batch(2, now=1 << 70)), ("c", batch(3))]
    first, second, third = await together(store, jobs)
    assert sent[0] == 3
    assert isinstance(first, Committed)
    assert isinstance(second, Exception)
    assert isinstance(third, Committed)
    assert await store.sequences(["a", "b", "c"]) == [2, 1, 2]


async def test_a_group_whose_answer_is_lost_is_looked_for_by_each(proxy: FaultProxy) -> None:
    async with await PostgresRecordStore.open(through(proxy, pool_size=3)) as store:
        ws = workspace(id="w", records=store)
        views = [ws.for_namespace(f"n{number}") for number in range(8)]
        for view in views:
            await view.write(A, "")
        faults: list[Fault] = ["lose request", "lose answer", "truncate answer"]
        for fault in faults:
            broken = proxy.broken
            with gathered(store):
                tasks = [asyncio.create_task(view.append(A, "x")) for view in views]
                await until(lambda: len(store._writer._commits._waiting) == len(views))
                proxy.arm(fault, holding=b"log\x01\x04")
            await asyncio.gather(*tasks)
            assert proxy.broken == broken + 1
        for number, view in enumerate(views):
            assert await view.read_text(A) == "xxx"
            assert [entry.sequence for entry in await view.log()] == [4, 3, 2, 1]
            await check_sound(store, partition_name("w", f"n{number}"))
        await ws.aclose()


async def test_who_leaves_a_group_takes_nobody_along(
    store: PostgresRecordStore, sent: list[int]
) -> None:
    await made(store, "a", "b", "c")
    with gathered(store):
        tasks = [
            asyncio.create_task(commit(store, name, batch(number)))
            for number, name in enumerate("abc")
        ]
        await until(lambda: len(store._writer._commits._waiting) == 3)
    await asyncio.sleep(0)
    tasks[1].cancel()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(found[0], Committed)
    assert isinstance(found[1], asyncio.CancelledError)
    assert isinstance(found[2], Committed)
    assert sent == [3]
    await store.aclose()


async def test_a_group_takes_no_more_than_its_share(
    store: PostgresRecordStore, sent: list[int]
) -> None:
    names = [f"p{number:03d}" for number in range(150)]
    await made(store, *names)
    found = await together(store, [(name, batch(number)) for number, name in enumerate(names)])
    assert all(isinstance(one, Committed) for one in found)
    assert sum(sent) == 150
    assert max(sent) <= 64
    large = [
        (name, batch(1000 + n, puts=[Put(f"z{n}\x01", b"{}", bytes(200_000))]))
        for n, name in enumerate(names[:40])
    ]
    sent.clear()
    found = await together(store, [(name, one) for name, one in large])
    assert all(isinstance(one, Committed) for one in found)
    assert max(sent) <= 20


async def test_a_group_of_reads_asks_for_no_more_keys_than_its_share(
    store: PostgresRecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await made(store, "a")
    asked: list[int] = []
    plain = Heads._ask

    async def ask(self: Heads, group: list[tuple[str, Sequence[str]]]) -> object:
        asked.append(len(group))
        return await plain(self, group)

    async def alone() -> object:
        raise AssertionError("it was to go with others")

    monkeypatch.setattr(Heads, "_ask", ask)
    heads = store._writer._heads
    keys = [f"k{number}\x01" for number in range(4_000)]
    with heads.lane(), heads.lane():
        tasks = [asyncio.create_task(heads.read("a", keys, alone)) for _ in range(5)]
        await until(lambda: len(heads._waiting) == 5)
    assert await asyncio.gather(*tasks) == [[None] * 4_000] * 5
    assert sorted(asked) == [1, 2, 2]
    await store.aclose()


async def test_clients_side_by_side_are_each_as_if_alone(
    postgres_url: str, opening: Opening, sent: list[int]
) -> None:
    ws: Workspace = await opening(postgres_url, limits=Limits(max_files=3))
    views = [ws.for_namespace(f"n{number}") for number in range(24)]

    async def client(number: int) -> None:
        view = views[number]
        for turn in range(6):
            await view.write(f"/workspace/{turn % 3}.md", f"{number}.{turn}")
        with pytest.raises(LimitExceededError):
            await view.write("/workspace/more.md", "x")

    await asyncio.gather(*(client(number) for number in range(24)))
    assert max(sent) > 1, "they went together"
    for number, view in enumerate(views):
        kept = [await view.read_text(f"/workspace/{turn}.md") for turn in range(3)]
        assert kept == [f"{number}.{turn}" for turn in (3, 4, 5)]
        assert [entry.sequence for entry in await view.log()] == [6, 5, 4, 3, 2, 1]


async def test_a_broken_group_leaves_the_outcome_unknown(proxy: FaultProxy) -> None:
    async with await PostgresRecordStore.open(through(proxy, pool_size=2)) as store:
        await made(store, "a", "b")
        with gathered(store):
            tasks = [asyncio.create_task(commit(store, name, batch(1))) for name in "ab"]
            await until(lambda: len(store._writer._commits._waiting) == 2)
            proxy.arm("lose answer", holding=b"k1\x01")
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(outcome, OutcomeUnknown)
        assert await store.sequences(["a", "b"]) == [2, 2]
