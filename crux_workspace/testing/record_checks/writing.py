"""Checks of what a commit writes."""

from __future__ import annotations

from crux_workspace.storage.layout import META_KEY, decode_meta, log_key, number
from crux_workspace.storage.records import SEQUENCE_MARK, RecordStore
from crux_workspace.testing.checks import same
from crux_workspace.testing.record_checks.bench import (
    RECORD_CHECKS,
    FreshRecords,
    Writer,
    meta_of,
    put,
    requires_room,
    seed,
)

__all__: list[str] = []


@RECORD_CHECKS.add()
async def check_dense_sequences(store: RecordStore, fresh: FreshRecords) -> None:
    """R-040: the commits of a partition are numbered 1, 2, 3 without gaps, each partition by itself."""
    one = Writer(store, fresh.name(), fresh)
    two = Writer(store, fresh.name(), fresh)
    given = [(await w.commit(put("a"))).sequence for w in (one, one, two, one, two, one)]
    same(given, [1, 2, 1, 3, 2, 4], "sequences")
    same((await one.commit()).sequence, 5, "a commit that puts nothing")
    same(await store.sequences([one.partition, two.partition]), [5, 2], "last sequences")


@RECORD_CHECKS.add()
async def check_stamps(store: RecordStore, fresh: FreshRecords) -> None:
    """R-041: a record's revision and time are those of the commit that last wrote it."""
    writer = await seed(store, fresh, put("a"), put("b"), now=1_000)
    committed = await writer.commit(put("b"), put("c"), now=2_000)
    same((committed.sequence, committed.at), (2, 2_000), "what the commit returns")
    for key, stamp in {"a": (1, 1_000), "b": (2, 2_000), "c": (2, 2_000)}.items():
        record = await writer.one(key)
        same((record.revision, record.at), stamp, f"stamps of {key}")
    await writer.commit(put("c"), now=3_000)
    scanned = await store.scan(writer.partition, "", after="a", before="d", limit=9)
    stamps = {r.key: (r.revision, r.at) for r in scanned.records}
    same(stamps, {"b": (2, 2_000), "c": (3, 3_000)}, "stamps as a scan tells them")
    for sequence, at in ((1, 1_000), (2, 2_000), (3, 3_000)):
        record = await writer.one(log_key(sequence))
        same((record.revision, record.at), (sequence, at), "stamps of the log")
    meta = await writer.one(META_KEY)
    same((meta.revision, meta.at), (3, 3_000), "stamps of meta")


@RECORD_CHECKS.add()
async def check_time_goes_forward(store: RecordStore, fresh: FreshRecords) -> None:
    """R-042: a commit whose clock is behind gets the time of the last commit."""
    writer = await seed(store, fresh, put("a"), now=5_000)
    same((await writer.commit(put("b"), now=4_000)).at, 5_000, "a clock that is behind")
    same((await writer.one("b")).at, 5_000, "stamp of its record")
    same((await writer.commit(put("c"), now=5_001)).at, 5_001, "a clock that goes on")
    same((await writer.commit(put("d"), now=0)).at, 5_001, "a clock that starts anew")
    same((await meta_of(store, writer.partition)).at, 5_001, "meta's time")


@RECORD_CHECKS.add()
async def check_deletes_before_puts(store: RecordStore, fresh: FreshRecords) -> None:
    """R-043: deletes come before puts, and a delete of an absent key is no error."""
    writer = await seed(store, fresh, put("a", b'{"v":1}', b"old"), put("b"), put("c"))
    await writer.commit(put("a", b'{"v":2}'), deletes=["a", "b", "absent"])
    record = await writer.one("a")
    same((record.value, record.body, record.revision), (b'{"v":2}', None, 2), "put over a delete")
    found = await store.get_many(writer.partition, ["b", "c", "absent"])
    same([r is not None for r in found], [False, True, False], "what is left")


@RECORD_CHECKS.add()
async def check_sequence_mark(store: RecordStore, fresh: FreshRecords) -> None:
    """R-044: the sequence mark in a put's key becomes the commit's sequence, wherever it stands."""
    writer = await seed(store, fresh, put(f"s\x01{SEQUENCE_MARK}\x01", b'{"v":1}'))
    await writer.commit(
        put(f"s\x01{SEQUENCE_MARK}\x01", b'{"v":2}', b"body"),
        put(f"{SEQUENCE_MARK}\x01{SEQUENCE_MARK}"),
    )
    page = await store.scan(writer.partition, "s\x01", limit=9)
    same([r.key for r in page.records], [f"s\x01{number(n)}\x01" for n in (1, 2)], "keys")
    same((await writer.one(f"s\x01{number(2)}\x01")).body, b"body", "body of such a record")
    await writer.one(f"{number(2)}\x01{number(2)}")


@RECORD_CHECKS.add()
async def check_put_replaces_whole(store: RecordStore, fresh: FreshRecords) -> None:
    """R-045: a put replaces value and body; what a batch does not name stays as it is."""
    writer = await seed(store, fresh, put("a", b'{"v":1}', b"one"), put("b", b'{"v":1}', b"two"))
    untouched = await writer.one("b")
    await writer.commit(put("a", b'{"v":2}'))
    same((await writer.one("a")).body, None, "body after a put without one")
    await writer.commit(put("a", b'{"v":3}', b"three"))
    same((await writer.one("a")).body, b"three", "body after a put with one")
    same(await writer.one("b"), untouched, "a record nobody wrote")
    await writer.commit(deletes=["a"])
    await writer.commit(put("a", b'{"v":4}'))
    same((await writer.one("a")).body, None, "a deleted record leaves no body behind")


@RECORD_CHECKS.add()
async def check_meta(store: RecordStore, fresh: FreshRecords) -> None:
    """R-046: meta tells sequence, incarnation, time, counters, epoch and swept time."""
    writer = await seed(store, fresh, put("a"), now=1_000, counters={"n": (2, None)})
    meta = await meta_of(store, writer.partition)
    same((meta.sequence, meta.incarnation, meta.at), (1, writer.incarnation, 1_000), "commit 1")
    same((meta.counters, meta.epoch, meta.swept), ({"n": 2}, 0, 0), "commit 1")
    await writer.commit(
        put(f"keep\x01{SEQUENCE_MARK}\x01x\x01"),
        now=2_000,
        counters={"n": (3, None), "m": (7, None)},
        sweeping_to=500,
    )
    await writer.commit(put("a"), now=3_000, counters={"m": (-2, None)}, sweeping_to=400)
    record = await writer.one(META_KEY)
    meta = decode_meta(record.value)
    same((meta.sequence, meta.incarnation, meta.at), (3, writer.incarnation, 3_000), "commit 3")
    same((meta.counters, meta.epoch, meta.swept), ({"n": 5, "m": 5}, 1, 500), "commit 3")
    same((record.body, record.revision, record.at), (None, 3, 3_000), "the record itself")


@RECORD_CHECKS.add()
async def check_large_batch(store: RecordStore, fresh: FreshRecords) -> None:
    """R-047: a batch of thousands of puts and deletes is one commit."""
    requires_room(store, total=3_000 * 12)
    keys = [f"k{n:05d}" for n in range(3_000)]
    writer = await seed(store, fresh, *(put(k, b'{"v":1}', b"body") for k in keys))
    await writer.commit(
        *(put(k, b'{"v":2}') for k in keys[:1_000]),
        deletes=keys[1_000:2_000],
        expect=dict.fromkeys(keys, 1),
    )
    records = [r for r in await writer.everything() if r.key.startswith("k0")]
    same([r.key for r in records], keys[:1_000] + keys[2_000:], "keys that are left")
    same({(r.revision, r.body) for r in records}, {(2, None), (1, b"body")}, "their state")
