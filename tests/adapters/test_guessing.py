"""Plans that are made without reading: one way to the server for each, and never a wrong result."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from crux_workspace import Limits, Workspace, open_workspace
from crux_workspace.errors import (
    ConflictError,
    InvalidInputError,
    LimitExceededError,
    WorkspaceError,
)
from crux_workspace.storage.guessing import Guesses
from crux_workspace.storage.layout import partition_name
from crux_workspace.storage.memory import MemoryAssetStore, MemoryRecordStore
from crux_workspace.storage.records import Committed
from crux_workspace.testing import FixedClock
from storage_adapters.redis import RedisRecordStore
from storage_adapters.redis.link import Link
from storage_adapters.sql.postgres import PostgresRecordStore
from storage_adapters.sql.postgres.database import Database
from tests.support.dumps import Names, dump, plain
from tests.support.guessing_store import guess_always
from tests.support.interferers import INTERFERERS
from tests.support.soundness import check_sound
from tests.support.verb_cases import make, seed

A = "/workspace/a.md"
STORES: dict[str, type[PostgresRecordStore | RedisRecordStore]] = {
    "postgres": PostgresRecordStore,
    "redis": RedisRecordStore,
}


@pytest.fixture(
    params=[pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in ("postgres", "redis")]
)
def kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
def url(request: pytest.FixtureRequest, kind: str) -> str:
    """The URL of an empty store that guesses."""
    server: Any = request.getfixturevalue(f"{kind}_server")
    if kind == "postgres":  # the other fixture gives an empty one
        server.empty()
    address: str = server.url()
    return address


@pytest.fixture
async def ws(url: str) -> AsyncIterator[Workspace]:
    """A workspace whose next write is planned by guessing, whether it is of a new path or of one of its own."""
    async with open_workspace(url) as opened:
        await begin(opened)
        yield opened


BEGUN = 10


async def begin(ws: Workspace) -> None:
    """Make `BEGUN` commits."""
    for number in range(BEGUN):
        await ws.write(f"/workspace/before/{min(number, 4)}", f"{number}")


@pytest.fixture
async def other(url: str) -> AsyncIterator[Workspace]:
    """Somebody else on the same namespace."""
    async with open_workspace(url) as opened:
        yield opened


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Tells how often somebody went to the server since it was asked last."""
    count = 0

    def counting(kind: type, name: str) -> None:
        plain = getattr(kind, name)

        async def counted(*given: Any) -> Any:
            nonlocal count
            count += 1
            return await plain(*given)

        monkeypatch.setattr(kind, name, counted)

    for kind, name in ((Link, "ask"), (Link, "tell"), (Database, "rows")):
        counting(kind, name)

    def since() -> int:
        nonlocal count
        found, count = count, 0
        return found

    return since


async def test_new_paths_cost_one_way_each(ws: Workspace, ways: Callable[[], int]) -> None:
    ways()
    for number in range(20):
        await ws.write(f"/workspace/new/{number}", "x")
    assert ways() == 20


async def test_paths_of_ones_own_cost_one_way_each(
    ws: Workspace, other: Workspace, ways: Callable[[], int]
) -> None:
    for number in range(10):
        await other.write(f"/workspace/f{number}", "x")
    for number in range(10):
        await ws.write(f"/workspace/f{number}", "y")
    ways()
    for turn in range(100):
        await ws.write(f"/workspace/f{turn % 10}", f"{turn}")
    assert ways() == 100
    await ws.delete("/workspace/f3")
    await ws.set("/workspace/f4", metadata={"a": 1})
    assert ways() <= 6
    assert (await ws.write("/workspace/f3", "z")).version == 14
    entry = await ws.write("/workspace/f4", "z")
    assert (entry.version, entry.metadata) == (13, None)
    assert [one.version for one in await other.history("/workspace/f4")] == list(range(13, 0, -1))


async def test_who_is_always_wrong_soon_reads_first(
    ws: Workspace, other: Workspace, ways: Callable[[], int]
) -> None:
    """Two processes change one file in turns: each finds that what it knows is old."""
    for _ in range(8):
        await ws.write(A, "mine")
        await other.write(A, "theirs")
    ways()
    for turn in range(60):
        await (ws if turn % 2 else other).write(A, f"{turn}")
    assert ways() <= 60 * 2 + 12
    assert (await ws.read(A)).version == 76


async def test_what_somebody_else_made_meanwhile_is_met_as_if_it_had_been_read(
    ws: Workspace, other: Workspace
) -> None:
    await other.write(A, "theirs")
    assert (await ws.write(A, "mine")).version == 2
    for number in range(12):
        await ws.write(f"/workspace/more/{number}", "x")
    await other.write("/workspace/b", "theirs")
    with pytest.raises(ConflictError):
        await ws.write("/workspace/b", "mine", if_version=0)
    assert await ws.read_text("/workspace/b") == "theirs"


async def test_a_version_that_is_known_but_old_is_no_conflict_and_no_match(
    ws: Workspace, other: Workspace
) -> None:
    await ws.write(A, "1")
    await ws.write(A, "2")
    await other.write(A, "3")
    assert (await ws.write(A, "4", if_version=3)).version == 4
    await other.write(A, "5")
    with pytest.raises(ConflictError) as refused:
        await ws.write(A, "6", if_version=4)
    assert refused.value.details["current_version"] == 5
    await other.set(A, metadata={"by": "other"})  # a new revision of the same version
    assert (await ws.write(A, "6", if_version=5)).version == 6
    assert (await ws.read(A, version=5)).metadata == {"by": "other"}


async def test_a_file_in_the_way_is_seen(ws: Workspace, other: Workspace) -> None:
    await other.write("/workspace/in the way", "x")
    with pytest.raises(WorkspaceError) as caught:
        await ws.write("/workspace/in the way/below", "x")
    assert caught.value.code == "PATH_TYPE_CONFLICT"
    await other.write("/workspace/deep/below", "x")
    with pytest.raises(WorkspaceError) as caught:
        await ws.write("/workspace/deep", "x")
    assert caught.value.code == "PATH_TYPE_CONFLICT"


async def test_a_file_that_is_known_but_gone_is_in_nobodys_way(
    ws: Workspace, other: Workspace
) -> None:
    await ws.write("/workspace/in the way", "x")
    await other.delete("/workspace/in the way")
    assert (await ws.write("/workspace/in the way/below", "x")).version == 1
    await ws.write(A, "x")
    await other.rename(A, "/workspace/b.md")
    assert (await ws.write(A, "y")).version == 1
    assert (await ws.write("/workspace/b.md", "y")).version == 2


async def test_a_deleted_file_is_brought_back_under_its_own_name(
    ws: Workspace, other: Workspace
) -> None:
    first = await other.write(A, "x")
    await other.delete(A)
    again = await ws.write(A, "y")
    assert (again.id, again.version) == (first.id, 3)


async def test_an_idempotency_key_is_known(ws: Workspace, other: Workspace) -> None:
    once = await other.write(A, "x", idempotency_key="k")
    assert (await ws.write(A, "x", idempotency_key="k")).version == once.version == 1
    with pytest.raises(InvalidInputError):
        await ws.write("/workspace/b", "x", idempotency_key="k")
    assert len(await ws.log()) == BEGUN + 1


async def test_a_ceiling_refuses(url: str) -> None:
    async with open_workspace(url, limits=Limits(max_files=5)) as ws:
        for number in range(5):
            await ws.write(f"/workspace/{number}", "x")
        with pytest.raises(LimitExceededError):
            await ws.write("/workspace/6", "x")
        assert (await ws.usage()).live_files == 5


async def test_a_namespace_that_was_dropped_meanwhile_begins_anew(
    ws: Workspace, other: Workspace
) -> None:
    await other.drop_namespace("default")
    await ws.write(A, "x")
    assert [entry.sequence for entry in await ws.log()] == [1]


async def test_the_same_revision_of_another_incarnation_is_not_taken_for_the_one_that_is_known(
    ws: Workspace, other: Workspace, kind: str, url: str
) -> None:
    await ws.write(A, "mine")
    await other.drop_namespace("default")
    await begin(other)
    theirs = await other.write(A, "theirs", metadata={"by": "other"})
    after = await ws.write(A, "mine again")
    assert (after.id, after.version) == (theirs.id, 2)
    assert (await ws.read(A, version=1)).metadata == {"by": "other"}
    async with await STORES[kind].open(url) as store:
        await check_sound(store, partition_name("default", "default"))


async def test_random_writers_agree_with_what_was_told(kind: str, url: str) -> None:
    """Eight clients on one namespace, new paths and old ones: each version was given out once, none is lost."""
    rng = random.Random(5)
    paths = [f"/workspace/p{number}" for number in range(60)]
    told: Counter[str] = Counter()

    async def client() -> None:
        async with open_workspace(url) as ws:
            for _ in range(60):
                path = rng.choice(paths)
                await (ws.append if rng.random() < 0.3 else ws.write)(path, "x")
                told[path] += 1

    await asyncio.gather(*(client() for _ in range(8)))
    async with open_workspace(url) as ws:
        versions = {entry.path: entry.version async for entry in ws.walk()}
        assert versions == dict(told)
        assert (await ws.log(limit=1))[0].sequence == sum(told.values()) == 480
    async with await STORES[kind].open(url) as store:
        await check_sound(store, partition_name("default", "default"))


@pytest.mark.parametrize("number", range(2))
async def test_random_calls_of_two_processes_end_as_if_each_had_read(
    kind: str, url: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each plan is made by guessing first, and every call gives what it gives on a store that never guesses."""
    rng = random.Random(f"two processes {number}")
    clock = FixedClock()
    right: Counter[bool] = Counter()
    guess = Guesses.commit

    async def counting(self: Guesses, partition: str, *arguments: Any) -> Committed | None:
        guess_always(self, partition)
        done = await guess(self, partition, *arguments)
        right[done is not None] += 1
        return done

    monkeypatch.setattr(Guesses, "commit", counting)
    async with await STORES[kind].open(url) as one, await STORES[kind].open(url) as two:
        assets, plain_assets = MemoryAssetStore(clock=clock), MemoryAssetStore(clock=clock)
        roots = [
            make(one, assets, clock),
            make(two, assets, clock),
            make(MemoryRecordStore(), plain_assets, clock),
        ]
        *views, reference = [root.for_namespace("n") for root in roots]
        for root in (roots[0], roots[2]):
            await seed(root, "n")
        for step in range(80):
            name = rng.choice(sorted(INTERFERERS))
            if step == 50:
                for root in (roots[1], roots[2]):
                    await root.drop_namespace("n")
                    await seed(root, "n")
            found = await attempt(INTERFERERS[name](rng.choice(views)))
            assert found == await attempt(INTERFERERS[name](reference)), f"{name} in step {step}"
        assert await dump(roots[0], "n") == await dump(roots[2], "n")
        await check_sound(one, partition_name("w", "n"))
    assert right[True] > 30
    assert right[False] > 10


async def attempt(call: Awaitable[Any]) -> Any:
    """Return what a call returns, or the code of what it raises."""
    try:
        return plain(await call, Names())
    except WorkspaceError as error:
        return str(error.code)
