"""A real server that refuses, forgets, is full, or is behind a network that breaks: nothing torn, nothing doubled, nothing silent."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from crux_workspace import Workspace, open_workspace
from crux_workspace.errors import ErrorCode, StorageError, WorkspaceError
from crux_workspace.storage import Batch, Put
from crux_workspace.storage.layout import META_KEY, decode_meta, partition_name
from storage_adapters.redis import RedisAssetStore, RedisRecordStore
from storage_adapters.redis.keyspace import Keyspace
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.redis_servers import RedisServer, serving
from tests.support.soundness import check_sound

pytestmark = pytest.mark.redis

A = "/workspace/a.md"
PART = partition_name("default", "default")
NAMES = Keyspace("crux", 0).partition(PART)


@pytest.fixture
async def proxy(redis_server: RedisServer) -> AsyncIterator[FaultProxy]:
    """A network that breaks, in front of an empty server."""
    async with fault_proxy(("127.0.0.1", redis_server.port)) as running:
        yield running


@pytest.fixture
async def ws(proxy: FaultProxy) -> AsyncIterator[Workspace]:
    """A workspace behind the proxy, with one file."""
    url = f"redis://127.0.0.1:{proxy.port}/0?timeout_ms=500"
    async with open_workspace(url) as opened:
        await opened.write(A, "0\n")
        yield opened


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    """A server that this test may spoil."""
    with serving() as server:
        yield server


async def sound(server: RedisServer) -> Any:
    """Hold the namespace to its invariants, past the proxy."""
    async with await RedisRecordStore.open(server.url()) as store:
        return await check_sound(store, PART)


def raw(server: RedisServer) -> dict[bytes, Any]:
    """Read everything that the server holds of our keys."""
    read = {"hash": "hgetall", "zset": "zrange"}
    with server.client() as client:
        found: dict[bytes, Any] = {}
        for key in client.scan_iter():
            kind = client.type(key).decode()
            arguments = (0, -1) if kind == "zset" else ()
            found[key] = getattr(client, read[kind])(key, *arguments) if kind in read else kind
        return found


# -- answers that are lost


@pytest.mark.parametrize("seed", range(4))
async def test_an_append_whose_answer_was_lost_lands_once(
    ws: Workspace, proxy: FaultProxy, redis_server: RedisServer, seed: int
) -> None:
    """The connection is cut in the middle of requests and of answers, at every distance."""
    rng = random.Random(seed)
    cuts = 0
    for number in range(1, 41):
        side = rng.choice(["cut_after_request", "cut_after_answer"])
        setattr(proxy.faults, side, rng.choice([0, 1, 5, rng.randint(0, 900)]))
        before = proxy.connections
        await ws.append(A, f"{number}\n")
        cuts += proxy.connections - before
        setattr(proxy.faults, side, None)
    assert cuts > 10
    assert (await ws.read_text(A)).split() == [str(number) for number in range(41)]
    assert (await ws.log(limit=1))[0].sequence == 41
    assert [entry.version for entry in await ws.history(A)] == list(range(41, 0, -1))
    await sound(redis_server)


async def test_a_commit_that_is_lost_for_good_is_an_unknown_outcome(
    ws: Workspace, proxy: FaultProxy, redis_server: RedisServer
) -> None:
    writing = asyncio.create_task(ws.append(A, "1\n", idempotency_key="k"))
    proxy.faults.silent = True
    with pytest.raises(StorageError) as caught:
        await writing
    assert caught.value.code == ErrorCode.STORE_TIMEOUT
    proxy.faults.silent = False
    assert (await ws.append(A, "1\n", idempotency_key="k")).version == 2
    assert await ws.read_text(A) == "0\n1\n"
    await sound(redis_server)


async def test_silence_and_refusal_have_their_own_errors(ws: Workspace, proxy: FaultProxy) -> None:
    proxy.faults.silent = True
    with pytest.raises(StorageError) as caught:
        await ws.read_text(A)
    assert caught.value.code == ErrorCode.STORE_TIMEOUT
    proxy.faults.silent = False
    proxy.faults.refuse = True
    proxy.reset()
    with pytest.raises(StorageError) as caught:
        await ws.read_text(A)
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.STORE_UNAVAILABLE, True)
    proxy.faults.refuse = False
    assert await ws.read_text(A) == "0\n"


async def test_a_slow_network_is_waited_for(ws: Workspace, proxy: FaultProxy) -> None:
    proxy.faults.delay_s = 0.1
    await ws.append(A, "1\n")
    assert await ws.read_text(A) == "0\n1\n"


async def test_a_short_break_is_not_noticed_by_readers_and_watchers(
    ws: Workspace, proxy: FaultProxy
) -> None:
    async with ws.watch(poll_interval_ms=20) as events:
        for number in range(1, 6):
            proxy.reset()
            assert (await ws.read_text(A)).split() == [str(n) for n in range(number)]
            proxy.reset()
            await ws.append(A, f"{number}\n")
        async with asyncio.timeout(10):
            assert [(await anext(events)).version for _ in range(5)] == [2, 3, 4, 5, 6]


async def test_hints_come_again_after_a_break(
    ws: Workspace, proxy: FaultProxy, redis_server: RedisServer
) -> None:
    async with (
        ws.watch(poll_interval_ms=60_000) as events,
        open_workspace(redis_server.url()) as other,
    ):
        await asyncio.sleep(0.2)
        proxy.reset()
        await asyncio.sleep(0.5)
        await other.append(A, "1\n")
        async with asyncio.timeout(10):
            assert (await anext(events)).version == 2


async def test_calls_that_share_the_connection_are_told_one_by_one(
    ws: Workspace, proxy: FaultProxy, redis_server: RedisServer
) -> None:
    for _ in range(10):
        proxy.faults.cut_after_answer = 150
        many = [ws.append(f"/workspace/f{number}", "x") for number in range(20)]
        await asyncio.gather(*many)
    for number in range(20):
        assert await ws.read_text(f"/workspace/f{number}") == "x" * 10
    await sound(redis_server)


async def test_an_upload_that_is_cut_leaves_nothing_behind(
    proxy: FaultProxy, redis_server: RedisServer
) -> None:
    from crux_workspace.storage import PutOptions

    async with await RedisAssetStore.open(
        f"redis://127.0.0.1:{proxy.port}/0?timeout_ms=500"
    ) as store:

        async def chunks() -> AsyncIterator[bytes]:
            for number in range(20):
                if number == 10:
                    proxy.faults.refuse = True
                    proxy.reset()
                yield bytes([number]) * 100_000

        options = PutOptions(key="w/n/" + "a" * 32, mime_type="x/y")
        with pytest.raises(StorageError):
            await store.put(chunks(), options)
        proxy.faults.refuse = False
        assert not (await store.list("", limit=10)).assets
        with redis_server.client() as client:
            left, note = sorted(client.scan_iter(), key=len, reverse=True)
            assert 0 < client.ttl(left) <= 86_400
            assert note.endswith(b":uploads")
        assert await store.abort_stale_uploads(older_than_ms=-1) == 1
        with redis_server.client() as client:
            assert list(client.scan_iter()) == []
        proxy.faults.cut_after_answer = 0
        stored = await store.put(bytes(700_000), options)
        assert stored.size == len(await store.get(stored.ref)) == 700_000


# -- a server that refuses


async def test_scripts_that_were_flushed_are_loaded_again(
    ws: Workspace, redis_server: RedisServer
) -> None:
    for number in range(1, 4):
        with redis_server.client() as client:
            client.script_flush()
        await asyncio.gather(ws.append(A, f"{number}\n"), ws.read_text(A), ws.list("/workspace"))
    assert (await ws.read_text(A)).split() == ["0", "1", "2", "3"]


async def test_a_full_server_refuses_whole_commits_and_still_reads_and_drops(
    own_server: RedisServer,
) -> None:
    with own_server.client() as client:
        async with open_workspace(own_server.url()) as ws:
            await ws.write(A, "kept")
            client.config_set("maxmemory", client.info("memory")["used_memory"] + 300_000)
            refused = None
            written = 0
            while refused is None and written < 1_000:
                try:
                    async with ws.transaction() as tx:
                        for part in "abc":
                            await tx.write(f"/workspace/{part}{written}", "x" * 2_000)
                    written += 1
                except StorageError as error:
                    refused = error
            assert refused is not None
            assert (refused.code, refused.retryable) == (ErrorCode.STORE_UNAVAILABLE, True)
            assert "memory" in refused.message
            before = raw(own_server)
            for call in (ws.delete(A), ws.write(A, "y"), ws.rename(A, "/workspace/z")):
                with pytest.raises(StorageError):
                    await call
            assert raw(own_server) == before, "a commit that is refused leaves nothing"
            assert await ws.read_text(A) == "kept"
            assert len(await ws.list("/workspace", limit=1000)) == 3 * written + 1
            await sound(own_server)
            await ws.drop_namespace("default")
            assert not raw(own_server)
            client.config_set("maxmemory", 0)
            await ws.write(A, "again")


async def test_a_primary_without_replicas_refuses_whole_commits(own_server: RedisServer) -> None:
    async with open_workspace(own_server.url(timeout_ms=100)) as ws:
        await ws.write(A, "kept")
        with own_server.client() as client:
            client.config_set("min-replicas-to-write", 1)
            before = raw(own_server)
            with pytest.raises(StorageError) as caught:
                await ws.write(A, "x")
            assert caught.value.code == ErrorCode.STORE_UNAVAILABLE
            assert raw(own_server) == before
            client.config_set("min-replicas-to-write", 0)
        assert (await ws.write(A, "x")).version == 2


_CHANGING = ("hset", "hdel", "zadd", "zrem", "hget", "hmget", "type", "zrangebylex")


@pytest.mark.parametrize("missing", _CHANGING)
async def test_a_right_that_is_missing_refuses_whole_commits(
    own_server: RedisServer, missing: str
) -> None:
    async with open_workspace(own_server.url()) as ws:
        await ws.write(A, "kept")
        await ws.write("/workspace/old", "x")
    with own_server.client() as client:
        client.acl_setuser(
            "crux", enabled=True, nopass=True, keys=["*"], channels=["*"], categories=["+@all"]
        )
        async with open_workspace(own_server.url().replace("//", "//crux@")) as ws:
            client.execute_command("ACL", "SETUSER", "crux", f"-{missing}")
            refused = []
            for call in (
                ws.write("/workspace/new", "x"),
                ws.rename("/workspace/old", "/workspace/moved"),
                ws.delete("/workspace/a.md"),
            ):
                before = raw(own_server)
                [outcome] = await asyncio.gather(call, return_exceptions=True)
                if isinstance(outcome, StorageError):
                    refused.append(outcome.retryable)
                    assert raw(own_server) == before
            assert refused
            assert not any(refused)
    await sound(own_server)


async def test_the_rights_that_the_page_names_are_enough(own_server: RedisServer) -> None:
    page = (Path(__file__).parents[2] / "docs" / "deploy-redis.md").read_text(encoding="utf-8")
    found = re.search(r"```\n(user crux [^`]*)```", page)
    assert found is not None
    _, name, *rules = found[1].split()
    with own_server.client() as client:
        client.execute_command("ACL", "SETUSER", name, *rules)
    url = own_server.url().replace("//", "//crux:secret@")
    async with open_workspace(url) as ws, open_workspace(url) as other:
        async with ws.watch(poll_interval_ms=60_000) as events:
            await asyncio.sleep(0.3)
            await other.write(A, "one")
            async with asyncio.timeout(10):
                assert (await anext(events)).path == A
        async with ws.transaction() as tx:
            await tx.write("/workspace/b.bin", bytes(800_000))
            await tx.rename(A, "/workspace/c.md")
        assert await ws.read_bytes("/workspace/b.bin") == bytes(800_000)
        await ws.edit("/workspace/c.md", "one", "two")
        await ws.undo("/workspace/c.md")
        await ws.delete("/workspace/b.bin", purge=True)
        assert len((await ws.grep("one")).matches) == 1
        await ws.gc(dry_run=False)
        await ws.list("/")
        assert (await ws.namespaces()).names == ["default"]
        await ws.drop_namespace("default")
    async with open_workspace(
        own_server.url(prefix="foreign").replace("//", "//crux:secret@")
    ) as ws:
        with pytest.raises(StorageError):
            await ws.write(A, "not under our prefix")


# -- data that is not what it should be


@pytest.mark.parametrize("key", [NAMES.values, NAMES.bodies, NAMES.index, NAMES.partitions])
async def test_a_key_that_somebody_else_uses_is_told_and_left_alone(
    redis_server: RedisServer, key: bytes
) -> None:
    with redis_server.client() as client:
        client.set(key, "somebody else's")
        async with open_workspace(redis_server.url()) as ws:
            with pytest.raises(StorageError) as caught:
                await ws.write(A, "x")
        assert caught.value.code == ErrorCode.RECORD_CORRUPT
        assert raw(redis_server) == {key: "string"}


@pytest.mark.parametrize("spoiled", [b"", b"short", b"x" * 16 + b"not json", b"x" * 16 + b"[]"])
async def test_a_spoiled_head_of_a_namespace_is_told(
    redis_server: RedisServer, spoiled: bytes
) -> None:
    async with await RedisRecordStore.open(redis_server.url()) as store:
        first = Batch(
            commit_id="c" * 24, verb="write", now=1, incarnation=None, puts=[Put("a", b"{}")]
        )
        await store.commit(PART, first)
        with redis_server.client() as client:
            client.hset(NAMES.values, META_KEY, spoiled)
        second = Batch(commit_id="d" * 24, verb="write", now=1, incarnation="c" * 24)
        before = raw(redis_server)
        with pytest.raises(StorageError) as caught:
            await store.commit(PART, second)
        assert caught.value.code == ErrorCode.RECORD_CORRUPT
        assert raw(redis_server) == before


Damage = Callable[[redis.Redis, bytes, bytes], object]
DAMAGES: dict[str, tuple[ErrorCode, Damage]] = {
    "another byte": (
        ErrorCode.RECORD_CORRUPT,
        lambda client, asset, _: client.hset(asset, "1", b"y" * 262_144),
    ),
    "a short piece": (
        ErrorCode.RECORD_CORRUPT,
        lambda client, asset, _: client.hset(asset, "0", b"x"),
    ),
    "no bytes": (ErrorCode.RECORD_CORRUPT, lambda client, asset, _: client.hset(asset, "1", b"")),
    "a lost piece": (ErrorCode.ASSET_MISSING, lambda client, asset, _: client.hdel(asset, "1")),
    "all lost": (ErrorCode.ASSET_MISSING, lambda client, asset, _: client.unlink(asset)),
    "its description": (
        ErrorCode.RECORD_CORRUPT,
        lambda client, _, about: client.hset(about, client.hkeys(about)[0], b"{"),
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_an_asset_that_is_not_what_was_stored_is_told(
    redis_server: RedisServer, damage: str
) -> None:
    code, spoil = DAMAGES[damage]
    async with open_workspace(redis_server.url()) as ws:
        await ws.write("/workspace/b.bin", b"x" * 700_000)
        with redis_server.client() as client:
            [asset] = client.keys("*:asset:*")
            [about] = client.keys("*:assets:about")
            spoil(client, asset, about)
        with pytest.raises(StorageError) as caught:
            async with asyncio.timeout(10):
                await ws.read_bytes("/workspace/b.bin")
        assert caught.value.code == code
        assert await ws.exists("/workspace/b.bin")


async def test_no_key_of_a_namespace_expires(redis_server: RedisServer) -> None:
    from crux_workspace import Retention

    async with open_workspace(redis_server.url(), retention=Retention(ttl_ms=60_000)) as ws:
        await ws.write(A, "mortal")
        await ws.write("/workspace/b.bin", bytes(600_000))
        await ws.delete(A)
    with redis_server.client() as client:
        assert {client.ttl(key) for key in client.scan_iter()} == {-1}


async def test_counters_are_exact_beyond_what_a_double_prints(redis_server: RedisServer) -> None:
    async with await RedisRecordStore.open(redis_server.url()) as store:
        large = 90_071_992_547_409
        for number, add in enumerate((large, 1, -2)):
            batch = Batch(
                commit_id=f"{number:024x}",
                verb="write",
                now=1_700_000_000_000,
                incarnation=None if number == 0 else "0" * 24,
                counters={"bytes": (add, None)},
            )
            await store.commit(PART, batch)
        [record] = await store.get_many(PART, [META_KEY])
        assert record is not None
        assert decode_meta(record.value).counters == {"bytes": large - 1}
        assert decode_meta(record.value).at == 1_700_000_000_000


async def test_a_drop_that_is_sent_again_leaves_what_was_made_meanwhile(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to the drop was lost, somebody made the namespace anew, and the drop is sent again."""
    async with open_workspace(redis_server.url()) as other:
        await other.write(A, "old")
        async with await RedisRecordStore.open(redis_server.url()) as store:
            ask = store._link.ask

            async def twice(bucket: int, command: tuple[Any, ...]) -> Any:
                reply = await ask(bucket, command)
                if command[0] == b"EVALSHA":
                    await other.write(A, "new")
                    reply = await ask(bucket, command)
                return reply

            monkeypatch.setattr(store._link, "ask", twice)
            await store.drop(PART)
        assert await other.read_text(A) == "new"
        assert (await other.namespaces()).names == ["default"]


async def test_errors_of_the_server_are_ours(redis_server: RedisServer) -> None:
    async with await RedisRecordStore.open(redis_server.url()) as store:
        with pytest.raises(WorkspaceError) as caught:
            await store._link.ask(0, (b"NOSUCHCOMMAND",))
        assert caught.value.code == ErrorCode.STORE_UNAVAILABLE
        assert caught.value.__cause__ is not None
