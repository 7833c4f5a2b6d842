"""Checks of bodies that change owner."""

from __future__ import annotations

from crux_workspace.storage.layout import number
from crux_workspace.storage.records import SEQUENCE_MARK, RecordStore, Take
from crux_workspace.testing.checks import same
from crux_workspace.testing.record_checks.bench import (
    RECORD_CHECKS,
    FreshRecords,
    put,
    refused,
    requires_room,
    seed,
)

__all__: list[str] = []


@RECORD_CHECKS.add()
async def check_take_moves(store: RecordStore, fresh: FreshRecords) -> None:
    """R-050: a take moves the body of a record that the same batch deletes."""
    requires_room(store, body=200_000)
    body = b"\x00body" * 40_000
    writer = await seed(store, fresh, put("a", b'{"v":1}', body))
    await writer.commit(put("b", b'{"v":2}', Take("a")), deletes=["a"])
    record = await writer.one("b")
    same((record.value, record.body == body, record.revision), (b'{"v":2}', True, 2), "new owner")
    same(await store.get_many(writer.partition, ["a"]), [None], "old owner")


@RECORD_CHECKS.add()
async def check_take_own(store: RecordStore, fresh: FreshRecords) -> None:
    """R-051: a record that takes its own body keeps it."""
    writer = await seed(store, fresh, put("a", b'{"v":1}', b"body"), put("e", b"{}", b""))
    for version in (2, 3):
        value = b'{"v":%d}' % version
        await writer.commit(put("a", value, Take("a")), put("e", value, Take("e")))
        record = await writer.one("a")
        same((record.value, record.body, record.revision), (value, b"body", version), "record")
        same((await writer.one("e")).body, b"", "an empty body that was kept")
    await writer.commit(put("a", b"{}", Take("a")), deletes=["a"])
    same((await writer.one("a")).body, b"body", "kept through a delete in the same batch")


@RECORD_CHECKS.add()
async def check_take_swap(store: RecordStore, fresh: FreshRecords) -> None:
    """R-052: takes see the bodies as they were before the batch: records can swap or rotate them."""
    writer = await seed(store, fresh, *(put(k, b"{}", k.encode()) for k in "abcde"))
    await writer.commit(
        put("a", b"{}", Take("b")),
        put("b", b"{}", Take("a")),
        put("c", b"{}", Take("d")),
        put("d", b"{}", Take("e")),
        put("e", b"{}", Take("c")),
    )
    same(
        [(await writer.one(k)).body for k in "abcde"],
        [b"b", b"a", b"d", b"e", b"c"],
        "bodies of a, b, c, d, e",
    )


@RECORD_CHECKS.add()
async def check_take_from_rewritten(store: RecordStore, fresh: FreshRecords) -> None:
    """R-053: a take gets the old body when the same batch gives its owner another one, in any order."""
    writer = await seed(store, fresh, put("a", b"{}", b"one"))
    await writer.commit(put("a", b"{}", b"two"), put("b", b"{}", Take("a")))
    same([(await writer.one(k)).body for k in "ab"], [b"two", b"one"], "owner put first")
    await writer.commit(put("c", b"{}", Take("a")), put("a", b"{}", b"three"))
    same([(await writer.one(k)).body for k in "ac"], [b"three", b"two"], "owner put last")
    await writer.commit(put("d", b"{}", Take("a")), put("a"))
    same([(await writer.one(k)).body for k in "ad"], [None, b"three"], "owner left without")


@RECORD_CHECKS.add()
async def check_take_edges(store: RecordStore, fresh: FreshRecords) -> None:
    """R-054: a take of a record without body gives none; a key with the sequence mark can take."""
    writer = await seed(store, fresh, put("a"), put("b", b"{}", b"body"), put("c", b"{}", b"own"))
    await writer.commit(
        put("c", b"{}", Take("a")),
        put(f"s\x01{SEQUENCE_MARK}\x01", b"{}", Take("b")),
        deletes=["a", "b"],
    )
    same((await writer.one("c")).body, None, "taken from a record without body")
    same((await writer.one(f"s\x01{number(2)}\x01")).body, b"body", "taken by a marked key")


@RECORD_CHECKS.add()
async def check_take_from_nothing(store: RecordStore, fresh: FreshRecords) -> None:
    """R-057: a batch that takes the body of an absent record is refused."""
    writer = await seed(store, fresh, put("a", b"{}", b"one"))
    async with refused(writer, "revision", subject="absent"):
        await writer.commit(put("b", b"{}", Take("a")), put("c", b"{}", Take("absent")))
    await writer.commit(deletes=["a"])
    async with refused(writer, "revision", subject="a"):
        await writer.commit(put("a", b"{}", Take("a")))
    async with refused(writer, "revision", subject="new"):
        await writer.commit(put("new", b"{}", b"body"), put("b", b"{}", Take("new")))
