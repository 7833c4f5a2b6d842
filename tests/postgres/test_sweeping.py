"""What is gone is deleted in the background, in small steps, by whoever is there; bodies have one owner each."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from crux_workspace.errors import StorageError
from crux_workspace.storage import Batch, Put, PutOptions, Take
from crux_workspace.storage.layout import META_KEY, decode_meta
from storage_adapters.sql.postgres import PostgresAssetStore, PostgresRecordStore, sweeping
from storage_adapters.sql.postgres.assets import PIECE_BYTES
from tests.adapters.conftest import Writing
from tests.support.postgres import PostgresServer

pytestmark = pytest.mark.postgres

_COUNTS = (
    "select (select count(*) from crux_workspace.records), (select count(*) from crux_workspace.bodies), "
    "(select count(*) from crux_workspace.dropped)"
)
_ASTRAY = (
    "select (select count(*) from crux_workspace.bodies b where not exists ("
    "select from crux_workspace.records r where r.part = b.part and r.body = b.id)), "
    "(select count(*) from crux_workspace.records r where body is not null and not exists ("
    "select from crux_workspace.bodies b where b.part = r.part and b.id = r.body)), "
    "(select count(*) - count(distinct (part, body)) from crux_workspace.records where body is not null)"
)


async def counts(server: PostgresServer, text: str = _COUNTS) -> tuple[int, ...]:
    connection = await server.connect()
    [row] = await connection.fetch(text)
    await connection.close()
    return tuple(row)


async def test_a_dropped_namespace_is_gone_at_once_and_its_rows_soon(
    store: PostgresRecordStore, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "_ROWS", 7)
    writing = Writing()
    for number in range(40):
        await store.commit_planned("p", writing.plan(f"{number}"))
    await store.commit_planned("q", writing.plan("stays"))
    await store.drop("p")
    assert await store.sequences(["p", "q"]) == [0, 1]
    await store.commit_planned("p", writing.plan("anew"))
    await store._sweeper.settled()
    assert await counts(postgres_server) == (6, 2, 0)


async def test_several_sweep_side_by_side_and_what_a_crash_left_is_swept_by_the_next(
    store: PostgresRecordStore, postgres_server: PostgresServer, postgres_url: str
) -> None:
    writing = Writing()
    for partition in "abc":
        for number in range(30):
            await store.commit_planned(partition, writing.plan(f"{number}"))
    database = store.database
    for partition in "abc":  # dropped by a process that dies at once
        await database.change(database.texts.drop, (partition,))
    busy = await postgres_server.connect()
    transaction = busy.transaction()
    await transaction.start()
    await busy.execute("select from crux_workspace.dropped order by part limit 1 for update")
    others = [await PostgresRecordStore.open(postgres_url) for _ in range(3)]
    await asyncio.gather(*(other._sweeper.settled() for other in others))
    assert (await counts(postgres_server))[2] == 1, "the one that somebody holds is passed over"
    await transaction.rollback()
    await busy.close()
    others[0]._sweeper.start()
    await others[0]._sweeper.settled()
    assert await counts(postgres_server) == (0, 0, 0)
    for other in others:
        await other.aclose()


async def test_every_body_keeps_one_owner_whatever_a_batch_does(
    store: PostgresRecordStore, postgres_server: PostgresServer
) -> None:
    """Takes within and outside the batch, two takers of one body, deletes and overwrites, at random."""
    chance = random.Random(3)
    held: dict[str, bytes | None] = {}
    for number in range(150):
        [meta] = await store.get_many("p", [META_KEY])
        incarnation = None if meta is None else decode_meta(meta.value).incarnation
        keys = chance.sample([f"k{n}\x01" for n in range(8)], 4)
        deletes = [key for key in keys[:1] if chance.random() < 0.5]
        puts, after = [], {key: body for key, body in held.items() if key not in deletes}
        for key in keys[1:]:
            kind = chance.randrange(4)
            body: bytes | Take | None = f"{number}{key}".encode() if kind == 0 else None
            after[key] = body if isinstance(body, bytes) else None
            if kind > 1 and held:
                source = chance.choice(list(held))
                body, after[key] = Take(source), held[source]
            puts.append(Put(key, b"{}", body))
        batch = Batch(
            commit_id=f"{number:024x}", verb="v", now=1, incarnation=incarnation,
            puts=puts, deletes=deletes,
        )  # fmt: skip
        await store.commit("p", batch)
        held = after
        found = await store.get_many("p", list(held))
        assert {r.key: r.body for r in found if r is not None} == held
        assert await counts(postgres_server, _ASTRAY) == (0, 0, 0)


@pytest.fixture
async def assets(postgres_url: str) -> AsyncIterator[PostgresAssetStore]:
    store = await PostgresAssetStore.open(postgres_url)
    yield store
    await store.aclose()


def _options(key: str) -> PutOptions:
    return PutOptions(key=key, mime_type="application/octet-stream")


async def _stream(pieces: int) -> AsyncIterator[bytes]:
    for number in range(pieces):
        yield bytes([number]) * PIECE_BYTES


async def test_an_upload_that_a_crash_left_is_swept_after_a_day(
    assets: PostgresAssetStore, postgres_server: PostgresServer, postgres_url: str
) -> None:
    await assets.put(_stream(3), _options("w/n/whole"))
    database = assets._database
    [[left]] = await database.change(database.texts.begin_upload, ("w/n/left",))
    [[young]] = await database.change(database.texts.begin_upload, ("w/n/young",))
    for asset in (left, young):
        await database.change(database.texts.add_piece, (asset, 0, b"x"))
    admin = await postgres_server.connect()
    day = sweeping.ABANDONED_MS
    await admin.execute(
        "update crux_workspace.assets set created_at = created_at - $1 where id = $2", day, left
    )
    assert [info.ref for info in (await assets.list("", limit=9)).assets] == ["w/n/whole"]
    async with await PostgresRecordStore.open(postgres_url) as opened:
        await opened._sweeper.settled()
    rows = await admin.fetch("select distinct asset from crux_workspace.pieces order by 1")
    assert left not in [row[0] for row in rows]
    assert young in [row[0] for row in rows]
    assert not await database.change(database.texts.add_piece, (left, 1, b"y"))
    assert len(await assets.get("w/n/whole")) == 3 * PIECE_BYTES
    await admin.close()


async def test_an_upload_taken_for_abandoned_fails_when_it_goes_on(
    assets: PostgresAssetStore, postgres_server: PostgresServer
) -> None:
    admin = await postgres_server.connect()

    async def slow() -> AsyncIterator[bytes]:
        yield bytes(2 * PIECE_BYTES)
        await admin.execute("delete from crux_workspace.assets")
        yield bytes(2 * PIECE_BYTES)

    with pytest.raises(StorageError, match="abandoned"):
        await assets.put(slow(), _options("w/n/slow"))
    assert await admin.fetchval("select count(*) from crux_workspace.assets") == 0
    await admin.close()


async def test_a_broken_stream_leaves_nothing(
    assets: PostgresAssetStore, postgres_server: PostgresServer
) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield bytes(3 * PIECE_BYTES)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await assets.put(broken(), _options("w/n/broken"))
    found = await counts(
        postgres_server,
        "select (select count(*) from crux_workspace.assets), (select count(*) from crux_workspace.pieces)",
    )
    assert found == (0, 0)
