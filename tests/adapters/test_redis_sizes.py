"""Large commits and long gaps: every size limit, and judging many commits without holding the server for long."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from crux_workspace import ContentOptions, open_workspace
from crux_workspace.errors import ErrorCode, LimitExceededError
from crux_workspace.model.changes import Change
from crux_workspace.storage import Batch, BatchTooLarge, PreconditionFailed, Put, PutOptions
from storage_adapters.redis import RedisAssetStore, RedisRecordStore
from tests.support.lateness import measured
from tests.support.redis_servers import RedisServer

pytestmark = pytest.mark.redis

KIB = 1 << 10
MIB = 1 << 20
PART = "ws\x01n\x01"


async def test_five_hundred_files_of_64_kib_in_one_commit(redis_server: RedisServer) -> None:
    content = ContentOptions(inline_text_below_bytes=128 * KIB)
    texts = [f"{number:03d}".ljust(64 * KIB, "x") for number in range(500)]
    async with open_workspace(redis_server.url(), content=content) as ws:
        async with ws.transaction() as tx:
            for number, text in enumerate(texts):
                await tx.write(f"/workspace/{number:03d}.md", text)
        assert (await ws.log()) == (await ws.log(limit=1)), "one commit"
        for number in (0, 1, 250, 499):
            assert await ws.read_text(f"/workspace/{number:03d}.md") == texts[number]
        found = [entry.path async for entry in ws.walk("/workspace")]
        assert len(found) == 500
        matches = await ws.grep("499xxx")
        assert [match.path for match in matches.matches] == ["/workspace/499.md"]
        async with ws.transaction() as tx:
            for number in range(500):
                await tx.rename(f"/workspace/{number:03d}.md", f"/outputs/{number:03d}.md")
        assert await ws.read_text("/outputs/499.md") == texts[499]
        assert (await ws.log(limit=1))[0].sequence == 2


async def test_more_than_a_commit_may_hold_is_refused_by_name(redis_server: RedisServer) -> None:
    content = ContentOptions(inline_text_below_bytes=20 * MIB)
    async with open_workspace(redis_server.url(), content=content) as ws:
        with pytest.raises(LimitExceededError) as caught:
            async with ws.transaction() as tx:
                for number in range(5):
                    await tx.write(f"/workspace/{number}", "x" * 15 * MIB)
        assert caught.value.code == ErrorCode.COMMIT_TOO_LARGE
        assert caught.value.details["limit"] == 64 * MIB
        assert not await ws.list("/workspace")


@pytest.mark.parametrize("size", [0, 1, 16 * KIB - 1, 64 * KIB, 512 * KIB + 1, 5 * MIB])
async def test_values_and_bodies_of_any_size_come_back(
    redis_server: RedisServer, size: int
) -> None:
    async with await RedisRecordStore.open(redis_server.url()) as store:
        value, body = b'"' + b"v" * size + b'"', os.urandom(size)
        puts = [Put("both", value, body), Put("value", value), Put("body", b"{}", body)]
        await store.commit(
            PART, Batch(commit_id="c" * 24, verb="write", now=1, incarnation=None, puts=puts)
        )
        found = await store.get_many(PART, ["both", "value", "body"])
        assert [(r.value, r.body) for r in found if r is not None] == [
            (value, body),
            (value, None),
            (b"{}", body),
        ]


@pytest.mark.parametrize(
    ("puts", "refused", "what"),
    [
        ([(16 * MIB, None)], [(16 * MIB + 1, None)], "value"),
        ([(2, 32 * MIB)], [(2, 32 * MIB + 1)], "body"),
        (
            [(2, 32 * MIB - 100), (2, 32 * MIB - 100), (196, None)],
            [(2, 32 * MIB - 100), (2, 32 * MIB - 100), (197, None)],
            "bytes",
        ),
    ],
    ids=["a value", "a body", "a commit"],
)
async def test_what_is_just_at_a_limit_is_kept_and_one_byte_more_is_refused(
    redis_server: RedisServer,
    puts: list[tuple[int, int | None]],
    refused: list[tuple[int, int | None]],
    what: str,
) -> None:
    def batch(number: int, sizes: list[tuple[int, int | None]]) -> Batch:
        made = [
            Put(
                f"k{place}",
                b'"' + b"v" * (value - 2) + b'"',
                None if body is None else os.urandom(body),
            )
            for place, (value, body) in enumerate(sizes)
        ]
        incarnation = None if number == 1 else f"{1:024x}"
        return Batch(
            commit_id=f"{number:024x}", verb="write", now=1, incarnation=incarnation, puts=made
        )

    async with await RedisRecordStore.open(redis_server.url(timeout_ms=30_000)) as store:
        kept = batch(1, puts)
        await store.commit(PART, kept)
        with pytest.raises(BatchTooLarge) as caught:
            await store.commit(PART, batch(2, refused))
        assert caught.value.what == what
        found = await store.get_many(PART, [put.key for put in kept.puts])
        assert [(r.value, r.body) for r in found if r] == [(p.value, p.body) for p in kept.puts]


async def test_as_many_paths_as_a_commit_may_change(redis_server: RedisServer) -> None:
    most = 50_000

    def batch(number: int, count: int) -> Batch:
        return Batch(
            commit_id=f"{number:024x}",
            verb="write",
            now=1,
            incarnation=None if number == 1 else f"{1:024x}",
            puts=[Put(f"k{n:05}", b"{}") for n in range(count)],
            changes=[Change("create", f"/{n:05}", file_id="f") for n in range(count)],
        )

    async with await RedisRecordStore.open(redis_server.url(timeout_ms=30_000)) as store:
        assert (await store.commit(PART, batch(1, most))).sequence == 1
        with pytest.raises(BatchTooLarge):
            await store.commit(PART, batch(2, most + 1))
        assert await store.sequences([PART]) == [1]
        page = await store.scan(PART, "k", limit=most + 1)
        assert len(page.records) == most


async def test_a_large_asset_given_whole_leaves_the_loop_its_turns(
    redis_server: RedisServer,
) -> None:
    data = os.urandom(32 * MIB)
    async with await RedisAssetStore.open(redis_server.url()) as store:
        async with measured() as lateness:
            asset = await store.put(data, PutOptions(key="w/n/" + "a" * 32, mime_type="x/y"))
        assert lateness.ticks > 10
        assert lateness.busiest_ms < 10
        assert await store.get(asset.ref) == data


async def test_pages_that_hold_much_end_early_and_lose_nothing(redis_server: RedisServer) -> None:
    async with await RedisRecordStore.open(redis_server.url()) as store:
        names = [f"k{number:03d}" for number in range(60)]
        for start in range(0, 60, 20):
            puts = [Put(name, b"{}", name.encode() * 150_000) for name in names[start : start + 20]]
            incarnation = None if start == 0 else "c" * 24
            batch = Batch(
                commit_id="c" * 24, verb="write", now=1, incarnation=incarnation, puts=puts
            )
            await store.commit(PART, batch)
        for reverse in (False, True):
            seen: list[str] = []
            pages = 0
            bound: str | None = None
            while True:
                page = await store.scan(
                    PART,
                    "k",
                    limit=1000,
                    bodies=True,
                    reverse=reverse,
                    after=None if reverse else bound,
                    before=bound if reverse else None,
                )
                assert sum(len(record.body or b"") for record in page.records) < 10 * MIB
                seen += [record.key for record in page.records]
                pages += 1
                bound = page.next
                if bound is None:
                    break
            assert seen == sorted(names, reverse=reverse)
            assert pages > 3


async def test_judging_thousands_of_commits_holds_the_server_for_milliseconds(
    redis_server: RedisServer,
) -> None:
    """What was expected to stay quiet is judged outside of the script where the log is long."""
    async with (
        await RedisRecordStore.open(redis_server.url()) as store,
        await RedisRecordStore.open(redis_server.url()) as other,
    ):

        def batch(number: int, *, quiet: str | None = None, path: str = "/elsewhere") -> Batch:
            return Batch(
                commit_id=f"{number:024x}",
                verb="write",
                now=number,
                incarnation=None if number == 1 else f"{1:024x}",
                expect_quiet=[] if quiet is None else [(quiet, True)],
                quiet_since=None if quiet is None else 1,
                changes=[Change("update", f"{path}/{n}", file_id="f") for n in range(20)],
            )

        await store.commit(PART, batch(1))
        numbers = range(2, 3_002)
        for start in range(0, len(numbers), 100):
            await asyncio.gather(
                *(store.commit(PART, batch(n)) for n in numbers[start : start + 100])
            )
        with redis_server.client() as client:
            client.slowlog_reset()
        worst = 0.0
        judging = asyncio.create_task(store.commit(PART, batch(3_002, quiet="/here")))
        while not judging.done():
            began = time.perf_counter()
            await other.sequences([PART])
            worst = max(worst, time.perf_counter() - began)
        assert (await judging).sequence == 3_002
        with redis_server.client() as client:
            slowest = (
                max(entry["duration"] for entry in client.slowlog_get(50))
                if client.slowlog_len()
                else 0
            )
        assert slowest < 100_000, f"{slowest} µs"
        assert worst < 1.0
        with pytest.raises(PreconditionFailed) as caught:
            await store.commit(PART, batch(3_003, quiet="/elsewhere/7"))
        assert (caught.value.what, caught.value.subject) == ("quiet", "/elsewhere/7")
        await store.commit(PART, batch(3_003, path="/late"))
        with pytest.raises(PreconditionFailed):
            await store.commit(PART, batch(3_004, quiet="/late"))
        trim = batch(3_004)
        trim.deletes = ["log\x01" + f"{5:016d}" + "\x01"]
        await store.commit(PART, trim)
        with pytest.raises(PreconditionFailed) as caught:
            await store.commit(PART, batch(3_005, quiet="/nobody"))
        assert caught.value.what == "quiet"


def test_too_large_is_refused_before_anything_is_sent(redis_server: RedisServer) -> None:
    async def refused() -> str:
        async with await RedisRecordStore.open(redis_server.url()) as store:
            batch = Batch(
                commit_id="c" * 24,
                verb="write",
                now=1,
                incarnation=None,
                puts=[Put("a", b"{}", bytes(32 * MIB + 1))],
            )
            with pytest.raises(BatchTooLarge) as caught:
                await store.commit(PART, batch)
            assert await store.sequences([PART]) == [0]
            return caught.value.what

    assert asyncio.run(refused()) == "body"
