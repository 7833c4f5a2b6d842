"""Checks of partitions: their names, their tails, their end."""

from __future__ import annotations

from crux_workspace.storage.records import RecordStore
from crux_workspace.testing.checks import holds, same
from crux_workspace.testing.record_checks.bench import (
    RECORD_CHECKS,
    FreshRecords,
    Writer,
    everything,
    meta_of,
    put,
    refused,
    seed,
)

__all__: list[str] = []


async def _create(store: RecordStore, fresh: FreshRecords, names: list[str]) -> list[Writer]:
    writers = [Writer(store, name, fresh) for name in names]
    for writer in writers:
        await writer.commit(put("k", b'{"v":1}', writer.partition.encode()))
    await fresh.settle(store)
    return writers


async def _listed(store: RecordStore, prefix: str, limit: int) -> list[str]:
    names: list[str] = []
    after: str | None = None
    for _ in range(1_000):
        page = await store.partitions(prefix, after=after, limit=limit)
        holds(len(page.names) <= limit, f"a page of more than {limit} names")
        names += page.names
        if page.next is None:
            return names
        holds(after is None or page.next > after, "next does not move on")
        after = page.next
    holds(False, "the paging of partitions does not end")
    return names


@RECORD_CHECKS.add()
async def check_sequences(store: RecordStore, fresh: FreshRecords) -> None:
    """R-090: sequences answers for many partitions in order, 0 for absent ones, twice when asked twice."""
    one, two = await seed(store, fresh), await seed(store, fresh)
    await two.commit()
    absent = fresh.name()
    asked = [two.partition, absent, one.partition, two.partition]
    same(await store.sequences(asked), [2, 0, 1, 2], "sequences")
    same(await store.sequences([]), [], "of no partition")
    many = [fresh.name() for _ in range(1_500)]
    found = await store.sequences([*many, one.partition])
    same((sum(found), found[-1], len(found)), (1, 1, 1_501), "of 1,501 partitions")


@RECORD_CHECKS.add()
async def check_partition_prefix(store: RecordStore, fresh: FreshRecords) -> None:
    """R-091: partitions are listed by literal prefix, in code point order."""
    base = fresh.name("-")
    tails = [
        "a%b",
        "a_b",
        "a*b",
        "axb",
        "aXb",
        "a\x01main\x01",
        "a\x02",
        "aä",
        "a\uffee",
        "a\U0001f600",
    ]
    names = [base + tail for tail in tails]
    await _create(store, fresh, names)
    for prefix in [base, base + "a", base + "a%", base + "a_", base + "a*", base + "q", *names]:
        expected = sorted(n for n in names if n.startswith(prefix))
        page = await store.partitions(prefix, limit=50)
        same((page.names, page.next), (expected, None), f"partitions under {prefix!r}")


@RECORD_CHECKS.add()
async def check_partition_paging(store: RecordStore, fresh: FreshRecords) -> None:
    """R-092: pages of partitions give each name once; after is left out."""
    base = fresh.name("-")
    names = [f"{base}{n:02d}" for n in range(7)]
    await _create(store, fresh, names)
    for limit in (1, 2, 3, 6, 7, 8):
        same(await _listed(store, base, limit), names, f"names paged by {limit}")
    page = await store.partitions(base, after=names[2], limit=50)
    same(page.names, names[3:], "names after one that exists")
    page = await store.partitions(base, after=names[2] + "x", limit=50)
    same(page.names, names[3:], "names after one that does not")


@RECORD_CHECKS.add()
async def check_names_do_not_collide(store: RecordStore, fresh: FreshRecords) -> None:
    """R-093: partitions and keys that would be equal when joined stay apart."""
    base = fresh.name("-")
    pairs = [("a", "bc"), ("ab", "c"), ("a\x01", "b"), ("a", "\x01b"), ("a/", "b"), ("a", "/b")]
    pairs += [("a:b", "c"), ("a", "b:c"), ("A", "bc")]
    writers: dict[str, Writer] = {}
    for partition, key in pairs:
        writer = writers.setdefault(partition, Writer(store, base + partition, fresh))
        await writer.commit(put(key, f'"{partition}|{key}"'.encode(), partition.encode()))
    for partition, writer in writers.items():
        expected = {k: f'"{p}|{k}"'.encode() for p, k in pairs if p == partition}
        held = await everything(store, writer.partition)
        own = {r.key: r.value for r in held if not r.key.startswith(("meta", "log"))}
        same(own, expected, f"records of partition {partition!r}")


@RECORD_CHECKS.add()
async def check_drop(store: RecordStore, fresh: FreshRecords) -> None:
    """R-094: drop removes a partition with all it held; an absent one is no error; neighbours stay."""
    base = fresh.name("-")
    writers = await _create(
        store, fresh, [base + tail for tail in ("a", "a%", "a_", "a\x01", "ab")]
    )
    await store.drop(base + "absent")
    await store.drop(base + "a")
    await store.drop(base + "a_")
    await store.drop(base + "a_")
    await fresh.settle(store)
    left = [base + "a\x01", base + "a%", base + "ab"]
    same((await store.partitions(base, limit=9)).names, left, "partitions that are left")
    for writer in writers:
        stays = writer.partition in left
        records = await writer.everything()
        same([r.key for r in records if r.key == "k"], ["k"] * stays, repr(writer.partition))
        same(len(records), 3 * stays, f"records of {writer.partition!r}")
        same(await store.get_many(writer.partition, ["k"]) == [None], not stays, "get_many")
        same(await store.sequences([writer.partition]), [int(stays)], "sequences")


@RECORD_CHECKS.add()
async def check_recreate(store: RecordStore, fresh: FreshRecords) -> None:
    """R-095: a partition that is created again starts at 1 with another incarnation; old batches are refused."""
    old = await seed(store, fresh, put("a", b"{}", b"old"), put("b"), counters={"n": (3, None)})
    await old.commit(put("a"), sweeping_to=700)
    await store.drop(old.partition)
    async with refused(old, "incarnation"):
        await old.commit(put("a"))
    new = Writer(store, old.partition, fresh)
    same((await new.commit(put("a"), now=10)).sequence, 1, "sequence of the first commit")
    meta = await meta_of(store, new.partition)
    same(
        (meta.incarnation, meta.at, meta.counters, meta.swept), (new.incarnation, 10, {}, 0), "meta"
    )
    same(
        [r.key for r in await new.everything()],
        ["a", "log\x01" + "1".zfill(16) + "\x01", "meta\x01"],
        "keys",
    )
    for fields in ({"expect": {"a": 1}}, {}, {"expect": {"b": 0}}):
        async with refused(old, "incarnation"):
            await old.commit(put("b"), **fields)
    same((await new.one("a")).body, None, "no body of the old partition")
