"""Checks of what a batch expects, and of refusals."""

from __future__ import annotations

from crux_workspace.storage.layout import META_KEY, log_key
from crux_workspace.storage.records import CeilingExceeded, PreconditionFailed, RecordStore, Take
from crux_workspace.testing.checks import raises, same
from crux_workspace.testing.record_checks.bench import (
    RECORD_CHECKS,
    FreshRecords,
    Writer,
    changes,
    meta_of,
    put,
    refused,
    seed,
)

__all__: list[str] = []


@RECORD_CHECKS.add()
async def check_refusal_writes_nothing(store: RecordStore, fresh: FreshRecords) -> None:
    """R-030: a refused batch writes nothing at all, whatever it was refused for."""
    writer = await seed(
        store,
        fresh,
        put("a", b'{"v":1}', b"one"),
        put("b", b'{"v":1}', b"two"),
        counters={"n": (5, None)},
        changes=changes(1),
        sweeping_to=100,
    )
    whole = {
        "puts": [put("a", b'{"v":9}', Take("b")), put("b", b'{"v":9}', b"x"), put("c")],
        "deletes": ["b", log_key(1)],
        "counters": {"n": (1, None), "m": (1, None)},
        "changes": changes(20),
        "sweeping_to": 900,
        "now": 9_000,
    }
    reasons: list[tuple[str, dict[str, object]]] = [
        ("incarnation", {"incarnation": fresh.id()}),
        ("incarnation", {"incarnation": None}),
        ("epoch", {"epoch": 7}),
        ("revision", {"expect": {"a": 1, "b": 1, "z": 1}}),
        ("empty", {"expect_empty": [("x", "y"), ("b", "c")]}),
        ("quiet", {"expect_quiet": [("/d", True)], "quiet_since": 0}),
        ("upload", {"oldest_upload_at": 100}),
    ]
    for why, fields in reasons:
        async with refused(writer, why):
            await writer.commit(**{**whole, **fields})
    async with refused(writer, "ceiling", kind=CeilingExceeded):
        await writer.commit(**{**whole, "counters": {"m": (1, None), "n": (1, 5)}})
    same((await writer.commit(put("d"), now=1_000)).sequence, 2, "the next sequence")
    same((await writer.one("d")).at, 1_000, "the time after refusals")
    meta = await meta_of(store, writer.partition)
    same((meta.counters, meta.swept), ({"n": 5}, 100), "meta after refusals")


@RECORD_CHECKS.add()
async def check_expect(store: RecordStore, fresh: FreshRecords) -> None:
    """R-031: a batch is refused unless each expected key has the expected revision; 0 says absent."""
    writer = await seed(store, fresh, put("a"), put("b"), expect={"a": 0, "b": 0})
    await writer.commit(put("a"), expect={"a": 1, "b": 1, "c": 0})
    for expect, subject in (
        ({"a": 1}, "a"),
        ({"a": 3}, "a"),
        ({"a": 0}, "a"),
        ({"b": 0}, "b"),
        ({"c": 1}, "c"),
        ({"a": 2, "b": 2}, "b"),
    ):
        async with refused(writer, "revision", subject=subject):
            await writer.commit(put("a"), put("c"), expect=expect)
    await writer.commit(put("c"), deletes=["b"], expect={"a": 2, "b": 1, "c": 0, META_KEY: 2})
    async with refused(writer, "revision", subject="b"):
        await writer.commit(put("b"), expect={"b": 1})
    await writer.commit(put("b"), expect={"b": 0})


@RECORD_CHECKS.add()
async def check_no_aba(store: RecordStore, fresh: FreshRecords) -> None:
    """R-032: a key that was deleted and put again never has an old revision."""
    writer = await seed(store, fresh, put("a", b'{"v":1}'))
    await writer.commit(deletes=["a"])
    await writer.commit(put("a", b'{"v":1}'))
    same((await writer.one("a")).revision, 3, "revision of the new record")
    async with refused(writer, "revision", subject="a"):
        await writer.commit(put("a"), expect={"a": 1})
    await writer.commit(put("a", b'{"v":1}'), deletes=["a"])
    same((await writer.one("a")).revision, 4, "deleted and put by one batch")


@RECORD_CHECKS.add()
async def check_expect_empty(store: RecordStore, fresh: FreshRecords) -> None:
    """R-033: expect_empty ranges hold their low end and leave out their high end."""
    writer = await seed(store, fresh, put("b"), put("d\x01"), put("d\x02x"), put("\U0001f600"))
    for low, high in (
        ("b", "c"),
        ("a", "c"),
        ("a", "b\x01"),
        ("b", "b\x01"),
        ("d\x02", "d\x03"),
        ("\uffff", "\U0010ffff"),
    ):
        async with refused(writer, "empty", subject=low):
            await writer.commit(put("n"), expect_empty=[(low, high)])
    await writer.commit(
        put("b\x01"),
        put("cc"),
        expect_empty=[
            ("a", "b"),
            ("b\x01", "d"),
            ("d\x01\x01", "d\x02"),
            ("d\x03", "l"),
            ("b", "b"),
            ("x", "\U0001f600"),
            ("\U0001f600\x01", "\U0010ffff"),
        ],
    )
    async with refused(writer, "empty", subject="c"):
        await writer.commit(put("n"), expect_empty=[("a", "b"), ("c", "d")])
    await writer.commit(put("n"), deletes=["cc"])
    await writer.commit(put("o"), expect_empty=[("c", "d")])


@RECORD_CHECKS.add()
async def check_incarnation(store: RecordStore, fresh: FreshRecords) -> None:
    """R-034: a batch made for another incarnation, or for none, is refused."""
    writer = Writer(store, fresh.name(), fresh)
    async with refused(writer, "incarnation"):
        await store.commit(writer.partition, writer.batch(put("a"), incarnation=fresh.id()))
    await writer.commit(put("a"))
    for other in (None, fresh.id(), ""):
        async with refused(writer, "incarnation"):
            await store.commit(writer.partition, writer.batch(put("b"), incarnation=other))
    same((await writer.commit(put("b"))).sequence, 2, "the right incarnation")


@RECORD_CHECKS.add()
async def check_epoch(store: RecordStore, fresh: FreshRecords) -> None:
    """R-035: a batch that gives an epoch is refused after somebody protected something."""
    writer = await seed(store, fresh, put("a"), epoch=0)
    await writer.commit(put("a"), epoch=0)
    await writer.commit(put("keep\x01x\x01"))
    async with refused(writer, "epoch"):
        await writer.commit(deletes=["a"], epoch=0)
    await writer.commit(put("keeper"), put("a"), epoch=1)
    await writer.commit(put("keep\x01y\x01"), put("keep\x01z\x01"), deletes=["keep\x01x\x01"])
    async with refused(writer, "epoch"):
        await writer.commit(deletes=["a"], epoch=1)
    await writer.commit(deletes=["a", "keep\x01y\x01"], epoch=2)
    await writer.commit(put("a"), epoch=2)


@RECORD_CHECKS.add()
async def check_uploads(store: RecordStore, fresh: FreshRecords) -> None:
    """R-036: a batch with an upload at or before the swept time is refused; the swept time only grows."""
    writer = await seed(store, fresh, put("a"), oldest_upload_at=0)
    await writer.commit(sweeping_to=2_000)
    await writer.commit(sweeping_to=1_000)
    for at in (0, 1_999, 2_000):
        async with refused(writer, "upload"):
            await writer.commit(put("a"), oldest_upload_at=at)
    await writer.commit(put("a"), oldest_upload_at=2_001)
    await writer.commit(put("a"), oldest_upload_at=None)
    same((await meta_of(store, writer.partition)).swept, 2_000, "swept time")


@RECORD_CHECKS.add()
async def check_counters(store: RecordStore, fresh: FreshRecords) -> None:
    """R-037: counters add up; a ceiling refuses only a positive addition that ends above it."""
    writer = await seed(store, fresh, counters={"n": (10, 10), "m": (1, None)})
    async with raises(CeilingExceeded, "an addition above the ceiling") as caught:
        await writer.commit(put("a"), counters={"m": (1, None), "n": (1, 10)})
    error = caught.error
    same((error.counter, error.limit, error.used), ("n", 10, 10), "what the refusal tells")
    same(await store.get_many(writer.partition, ["a"]), [None], "after the refusal")
    await writer.commit(counters={"n": (0, 5), "m": (2, 3)})
    await writer.commit(counters={"n": (-2, 5)})
    async with refused(writer, "ceiling", kind=CeilingExceeded):
        await writer.commit(counters={"n": (1, 8)})
    await writer.commit(counters={"n": (1, 9), "m": (-5, 0), "new": (4, 4)})
    counters = (await meta_of(store, writer.partition)).counters
    same(counters, {"n": 9, "m": -2, "new": 4}, "counters")


@RECORD_CHECKS.add()
async def check_order_of_judging(store: RecordStore, fresh: FreshRecords) -> None:
    """R-038: a batch that could be refused for several reasons is refused for the first in the order."""
    writer = await seed(store, fresh, put("a"), changes=changes(1), sweeping_to=500)
    wrong: list[tuple[str, dict[str, object]]] = [
        ("incarnation", {"incarnation": fresh.id()}),
        ("epoch", {"epoch": 5}),
        ("upload", {"oldest_upload_at": 1}),
        ("revision", {"expect": {"a": 9}}),
        ("empty", {"expect_empty": [("a", "b")]}),
        ("quiet", {"expect_quiet": [("/d", True)], "quiet_since": 0}),
        ("ceiling", {"counters": {"n": (2, 1)}}),
    ]
    for start, (why, _) in enumerate(wrong):
        fields: dict[str, object] = {}
        for _, more in wrong[start:]:
            fields.update(more)
        kind = CeilingExceeded if why == "ceiling" else PreconditionFailed
        async with refused(writer, why, kind=kind):
            await writer.commit(put("b"), **fields)


@RECORD_CHECKS.add()
async def check_refused_first_commit(store: RecordStore, fresh: FreshRecords) -> None:
    """R-039: a refused first commit creates no partition."""
    writer = Writer(store, fresh.name(), fresh)
    async with refused(writer, "revision", subject="a"):
        await writer.commit(put("a"), expect={"a": 1})
    async with refused(writer, "ceiling", kind=CeilingExceeded):
        await writer.commit(put("a"), counters={"n": (2, 1)})
    await fresh.settle(store)
    same((await store.partitions(writer.partition, limit=9)).names, [], "partitions")
    same((await writer.commit(put("a"))).sequence, 1, "the first commit afterwards")
