"""Word of commits: it arrives without polling, says nothing to strangers, and is not missed when the listener dies."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import pytest

from storage_adapters.sql.postgres import PostgresRecordStore, waking
from tests.adapters.conftest import Writing
from tests.postgres.conftest import Opening, through
from tests.support.fault_proxy import FaultProxy
from tests.support.postgres import PostgresServer
from tests.watch.conftest import take, until

pytestmark = pytest.mark.postgres

A = "/workspace/a.md"
NEVER = 3_600_000


async def test_a_watcher_hears_of_another_process_without_polling(
    postgres_url: str, opening: Opening
) -> None:
    ws, other = await opening(postgres_url), await opening(postgres_url)
    async with ws.watch(recursive=True, poll_interval_ms=NEVER) as feed:
        await feed.ready()
        following = asyncio.create_task(take(feed, 3))
        await asyncio.sleep(0.2)  # until it listens
        for number in range(3):
            await other.write(A, str(number))
        assert [event.version for event in await following] == [1, 2, 3]
        dropped = asyncio.create_task(take(feed, 1))
        await other.drop_namespace("default")
        await other.write(A, "anew")
        with pytest.raises(Exception, match="lost"):
            await dropped


async def test_many_commits_are_one_message_that_names_nothing(
    store: PostgresRecordStore, postgres_server: PostgresServer
) -> None:
    heard: list[str] = []
    listening = await postgres_server.connect()
    await listening.add_listener(
        waking.channel_of("crux_workspace"), lambda *arguments: heard.append(arguments[-1])
    )
    writing = Writing()
    await store.commit_planned("secret-name", writing.plan("first"))
    await until(lambda: len(heard) == 1)
    for number in range(100):
        partition = f"secret-name-{number % 10}"
        await store.commit_planned(partition, writing.plan(f"{number}"))
    last = {waking.mark_of(f"secret-name-{n}"): "10" for n in range(10)}
    told: dict[str, str] = {}

    def is_told() -> bool:
        told.update(word.split(":") for payload in heard for word in payload.split())  # type: ignore[misc]
        return last.items() <= told.items()

    await until(is_told)
    assert len(heard) < 80, "a message for each commit would be 101"
    assert "secret" not in "".join(heard)
    await listening.close()


async def test_what_is_to_be_told_is_told_before_the_store_is_gone(
    store: PostgresRecordStore, postgres_url: str
) -> None:
    heard: list[int] = []
    leave = store.listen("p", heard.append)
    await asyncio.sleep(0.1)
    async with await PostgresRecordStore.open(postgres_url) as other:
        await other.commit_planned("p", Writing().plan("a"))
    await until(lambda: heard[-1:] == [1])
    leave()
    async with await PostgresRecordStore.open(postgres_url) as other:
        await other.commit_planned("p", Writing().plan("b"))
    await asyncio.sleep(0.1)
    assert heard[-1] == 1


async def test_a_listener_that_dies_silently_is_replaced_and_has_missed_nothing(
    proxy: FaultProxy, postgres_url: str, opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waking, "HEARTBEAT_S", 0.2)
    listen_url = quote(through(proxy), safe="")
    ws = await opening(f"{postgres_url}&listen_url={listen_url}")
    other = await opening(postgres_url)
    async with ws.watch(recursive=True, poll_interval_ms=NEVER) as feed:
        await feed.ready()
        following = asyncio.create_task(take(feed, 2, within=20))
        await asyncio.sleep(0.2)
        await other.write(A, "1")
        await asyncio.sleep(0.1)
        proxy.faults.silent = proxy.faults.deaf = True
        await other.write(A, "2")
        await asyncio.sleep(0.3)
        proxy.faults.silent = proxy.faults.deaf = False
        assert [event.version for event in await following] == [1, 2]
        following = asyncio.create_task(take(feed, 1))
        await other.write(A, "3")
        assert [event.version for event in await following] == [3]


async def test_polling_goes_on_while_nobody_can_listen(
    proxy: FaultProxy, postgres_url: str, opening: Opening
) -> None:
    listen_url = quote("postgresql://postgres@127.0.0.1:1/crux", safe="")
    ws = await opening(f"{postgres_url}&listen_url={listen_url}")
    other = await opening(postgres_url)
    async with ws.watch(recursive=True, poll_interval_ms=20) as feed:
        await feed.ready()
        await other.write(A, "1")
        assert [event.version for event in await take(feed, 1)] == [1]


def test_payloads_stay_below_the_limit_of_the_server() -> None:
    pending = {(waking.mark_of(str(number)), False): 10**15 + number for number in range(1_000)}
    payloads = list(waking._payloads(pending))
    assert all(0 < len(payload) < 8_000 for payload in payloads)
    assert len(payloads) > 1
    words = [word for payload in payloads for word in payload.split()]
    assert words == [f"{mark}:{number}" for (mark, _), number in pending.items()]


async def test_a_drop_is_told_besides_what_comes_after_it(store: PostgresRecordStore) -> None:
    """Who is far beyond the first commits of the next incarnation would think that it knows them."""
    heard: list[int] = []
    writing = Writing()
    store.listen("p", heard.append)
    for name in "abc":
        await store.commit_planned("p", writing.plan(name))
    await until(lambda: 3 in heard)
    heard.clear()
    await store.drop("p")
    await store.commit_planned("p", writing.plan("d"))
    await until(lambda: {0, 1} <= set(heard))


async def test_strange_messages_on_the_channel_are_passed_over(
    store: PostgresRecordStore, postgres_server: PostgresServer
) -> None:
    heard: list[int] = []
    store.listen("p", heard.append)
    stranger = await postgres_server.connect()
    mark = waking.mark_of("p")
    async with asyncio.timeout(20):
        while not heard:  # it may not listen yet
            for payload in ("", "x", ":", f"{mark}:", f"{mark}:-1", f"{mark}:x y:1", f"{mark}:7"):
                await stranger.execute(
                    "select pg_notify($1, $2)", waking.channel_of("crux_workspace"), payload
                )
            await asyncio.sleep(0.05)
    assert set(heard) == {7}
    await stranger.close()
