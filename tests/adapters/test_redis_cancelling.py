"""Whoever is cancelled, at whichever step of a call, of opening, closing or listening: others get their own answers, nothing stays open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import redis

from crux_workspace.storage import Batch, OutcomeUnknown, Put
from crux_workspace.storage.layout import META_KEY, decode_meta
from storage_adapters.redis import RedisRecordStore
from storage_adapters.redis.hints import Hints
from storage_adapters.redis.link import Link
from storage_adapters.redis.node import open_wire
from storage_adapters.redis.target import Target, parse_target
from storage_adapters.redis.wire import pack
from tests.support.cancelling import cancelled_after, steps, victims_cancelled_after
from tests.support.redis_servers import RedisServer

pytestmark = pytest.mark.redis

CLIENTS = 5
CALLS = 4
CHANNEL = b"cancelling:commits"


@pytest.fixture
def target(redis_server: RedisServer) -> Target:
    return parse_target(f"redis+unix://{redis_server.socket}")


@pytest.fixture
async def nothing_left(redis_server: RedisServer) -> AsyncIterator[None]:
    """Hold the test to its tasks and connections: none of them stays."""
    before = connections(redis_server)
    yield
    assert asyncio.all_tasks() == {asyncio.current_task()}
    async with asyncio.timeout(5):
        while connections(redis_server) > before:  # noqa: ASYNC110 - the server's count, not an event
            await asyncio.sleep(0.005)


def connections(server: RedisServer) -> int:
    with server.client() as client:
        found: int = client.info("clients")["connected_clients"]
    return found


@pytest.mark.parametrize("victims", [(0,), (2, 3), (0, 1, 2, 3), tuple(range(CLIENTS))])
async def test_callers_that_are_cancelled_leave_the_others_their_own_answers(
    victims: tuple[int, ...], target: Target, nothing_left: None
) -> None:
    """The connection is not there when they begin: one of them makes it, for all."""
    del nothing_left
    for step in steps():
        link = await Link.open(target)
        link._seed.drop()

        async def client(number: int, link: Link = link) -> None:
            for call in range(CALLS):
                asked = [f"{number}-{call}-{part}".encode() for part in range(3)]
                assert await link.ask(0, (b"ECHO", asked[0])) == asked[0]
                assert await link.ask_all([(0, (b"ECHO", word)) for word in asked]) == asked
                assert await link.tell(0, (b"ECHO", asked[1])) == asked[1]

        were_over = await victims_cancelled_after(step, map(client, range(CLIENTS)), victims)
        assert await link.ask(0, (b"ECHO", b"last")) == b"last"
        await link.aclose()
        if were_over:
            break
    assert step > 40, "some were cancelled on the way"


async def test_commits_that_are_cancelled_are_there_once_or_not_at_all(
    redis_server: RedisServer,
) -> None:
    async def commit(store: RedisRecordStore, number: int) -> None:
        [meta] = await store.get_many("p", [META_KEY])
        batch = Batch(
            commit_id=f"{number:024x}",
            verb="write",
            now=number,
            incarnation=None if meta is None else decode_meta(meta.value).incarnation,
            puts=[Put(f"k{number:06}", b"{}", b"body")],
        )
        await store.commit("p", batch)

    async with await RedisRecordStore.open(redis_server.url()) as store:
        for number, step in enumerate(steps()):
            if await cancelled_after(step, commit(store, number)):
                break
        await commit(store, 999_999)
        [sequence] = await store.sequences(["p"])
        records = (await store.scan("p", "", limit=10_000)).records
        found = [record.key for record in records if record.key.startswith("k")]
        logs = [record for record in records if record.key.startswith("log\x01")]
        assert len(found) == len(set(found)) == len(logs) == sequence
        assert f"k{number:06}" in found


async def test_opening_that_is_cancelled_leaves_no_connection(
    target: Target, nothing_left: None
) -> None:
    del nothing_left
    opened: list[Link] = []

    async def opening() -> None:
        opened.append(await Link.open(target))

    for step in steps():
        if await cancelled_after(step, opening()):
            break
        assert not opened, "whoever is cancelled has nothing to close"
    [link] = opened
    assert await link.ask(0, (b"ECHO", b"x")) == b"x"
    await link.aclose()


async def test_closing_that_is_cancelled_goes_on_and_is_waited_for_by_the_next(
    redis_server: RedisServer, nothing_left: None
) -> None:
    """Calls are under way, and somebody listens."""
    del nothing_left
    for step in steps():
        store = await RedisRecordStore.open(redis_server.url())
        store.listen("p", lambda _: None)
        batch = Batch(commit_id=f"{step:024x}", verb="write", now=1, incarnation=None)
        committing = asyncio.create_task(store.commit(f"p{step}", batch))
        await asyncio.sleep(0)
        was_closed = await cancelled_after(step, store.aclose())
        await store.aclose()
        assert store._link.closed
        assert store._link._seed.ready is None
        assert (await committing).sequence == 1, "a commit that was handed over is waited for"
        if was_closed:
            break


class Heard:
    """Somebody who listens."""

    def __init__(self) -> None:
        self.sequences: list[int] = []
        self.news = asyncio.Event()

    def __call__(self, sequence: int) -> None:
        self.sequences.append(sequence)
        self.news.set()


def subscribers(client: redis.Redis) -> int:
    [(_, count)] = client.pubsub_numsub(CHANNEL)
    return int(count)


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - the server's count, not an event
            await asyncio.sleep(0.002)


async def test_listening_that_ends_at_any_step_is_over_and_disturbs_no_other(
    target: Target, redis_server: RedisServer, nothing_left: None
) -> None:
    """Who leaves while the subscription is being made, made or given up hears nothing more; who comes then hears everything."""
    del nothing_left

    async def ask(partitions: object) -> list[int]:
        assert isinstance(partitions, list)
        return [0] * len(partitions)

    with redis_server.client() as client:
        for step in steps():
            hints = Hints(lambda: target, CHANNEL, ask)
            gone, there = Heard(), Heard()
            leave = hints.listen("p", gone)
            for _ in range(step):
                await asyncio.sleep(0)
            was_made = subscribers(client) == 1
            leave()
            leave()
            stay = hints.listen("p", there)
            await asyncio.gather(*hints._ending, return_exceptions=True)
            await _until(lambda: subscribers(client) == 1)
            client.publish(CHANNEL, b"7:p")
            async with asyncio.timeout(5):
                await there.news.wait()
            assert there.sequences == [7]
            assert not gone.sequences
            stay()
            await hints.aclose()
            await _until(lambda: subscribers(client) == 0)
            if was_made and step > 40:
                break


async def test_listeners_that_are_closed_at_any_step_leave_no_connection(
    target: Target, redis_server: RedisServer, nothing_left: None
) -> None:
    del nothing_left

    async def ask(partitions: object) -> list[int]:
        raise AssertionError(partitions)

    with redis_server.client() as client:
        for step in steps():
            hints = Hints(lambda: target, CHANNEL, ask)
            hints.listen("p", Heard())
            for _ in range(step):
                await asyncio.sleep(0)
            was_made = subscribers(client) == 1
            await cancelled_after(step % 4, hints.aclose())
            await hints.aclose()
            await _until(lambda: subscribers(client) == 0)
            if was_made and step > 40:
                break


async def test_who_stops_waiting_for_a_connection_to_close_disturbs_nobody_else(
    target: Target, nothing_left: None
) -> None:
    del nothing_left
    wire = await open_wire(target)
    assert await wire.call(pack((b"ECHO", b"x"))) == [b"x"]
    waiting = [asyncio.create_task(wire.aclose()) for _ in range(2)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.wait(waiting)
    assert waiting[0].cancelled()
    assert waiting[1].exception() is None
    await wire.aclose()


async def test_an_answer_that_nobody_waits_for_any_more_ends_with_the_connection(
    target: Target, nothing_left: None
) -> None:
    """A commit is cancelled, the connection ends, and the others learn what may have become of theirs."""
    del nothing_left
    link = await Link.open(target)
    calls = [
        asyncio.create_task(link.tell(0, (b"BLPOP", b"no such list", b"5"))),
        asyncio.create_task(link.tell(0, (b"ECHO", b"x"))),
    ]
    await asyncio.sleep(0.01)
    calls[0].cancel()
    await asyncio.sleep(0)
    link._seed.drop()
    with pytest.raises(OutcomeUnknown):
        await calls[1]
    assert calls[0].cancelled()
    await link.aclose()
