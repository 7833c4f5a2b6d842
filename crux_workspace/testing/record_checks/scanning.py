"""Checks of `scan` without delimiter and filter."""

from __future__ import annotations

from crux_workspace.storage.records import Page, RecordStore
from crux_workspace.testing.checks import same
from crux_workspace.testing.record_checks.bench import (
    RECORD_CHECKS,
    FreshRecords,
    keys_of,
    pages,
    put,
    seed,
)

__all__: list[str] = []

_ODD = [
    "k",
    "k\x01",
    "k\x01\x01",
    "k\x01a\x02b\x01",
    "k\x01a\x01",
    "k\x02",
    "k ",
    "k!",
    "k%",
    "k*",
    "k0",
    "kA",
    "k_",
    "ka",
    "k~",
    "k\x7f",
    "kä",
    "k\ud7ff",
    "k\ue000",
    "k\uffee",
    "k\uffff",
    "k\U00010000",
    "k\U0001f600",
    "k\U0010ffff",
    "k\U0010ffff\U0010ffff",
]


@RECORD_CHECKS.add()
async def check_code_point_order(store: RecordStore, fresh: FreshRecords) -> None:
    """R-020: a scan is ordered by code point, not by collation or UTF-16 unit."""
    writer = await seed(store, fresh, *(put(k) for k in reversed(_ODD)))
    page = await store.scan(writer.partition, "k", limit=100)
    same([r.key for r in page.records], sorted(_ODD), "keys in order")
    same(page.next, None, "next of the last page")


@RECORD_CHECKS.add()
async def check_prefix_is_literal(store: RecordStore, fresh: FreshRecords) -> None:
    """R-021: no character of a prefix is a pattern, and case counts."""
    stems = ["a%b", "a_b", "a*b", "a?b", "a[b]", "a\\b", "axb", "aXb", "AXB", "a'b", 'a"b', "ab"]
    keys = [stem + tail for stem in stems for tail in ("", "\x01", "z")]
    writer = await seed(store, fresh, *(put(k) for k in keys))
    for prefix in [*stems, "a", "A", "%", "_", "*", "a%", "a_", "a[", "a\\", "a\\b"]:
        page = await store.scan(writer.partition, prefix, limit=100)
        expected = sorted(k for k in keys if k.startswith(prefix))
        same([r.key for r in page.records], expected, f"keys that start with {prefix!r}")


@RECORD_CHECKS.add()
async def check_paging_while_writing(store: RecordStore, fresh: FreshRecords) -> None:
    """R-022: a record that exists during the whole paging is returned exactly once."""
    stay = [f"k{n:03d}" for n in range(0, 60, 2)]
    for reverse in (False, True):
        writer = await seed(store, fresh, *(put(k) for k in stay))
        seen: list[str] = []
        bound: str | None = None
        for round_number in range(100):
            page = await store.scan(
                writer.partition,
                "k",
                after=None if reverse else bound,
                before=bound if reverse else None,
                limit=4,
                reverse=reverse,
            )
            seen += [r.key for r in page.records]
            bound = page.next
            if bound is None:
                break
            middle = f"k{round_number * 4 % 60 + 1:03d}"
            rewritten = stay[round_number % len(stay)]
            await writer.commit(put(middle), put(rewritten))
            await writer.commit(deletes=[middle])
        kept = [k for k in seen if k in set(stay)]
        same(kept, sorted(stay, reverse=reverse), "records that existed all the time")


@RECORD_CHECKS.add()
async def check_bounds_are_strict(store: RecordStore, fresh: FreshRecords) -> None:
    """R-023: after and before are left out, in both directions, whether or not such keys exist."""
    keys = [f"k{c}" for c in "bdfh"]
    writer = await seed(store, fresh, put("j"), *(put(k) for k in keys), put("l"))
    bounds = [None, "a", "j", "k", "ka", "kb", "kc", "kd", "kf", "kh", "ki", "l", "z"]
    for after in bounds:
        for before in bounds:
            expected = [
                k for k in keys if (after is None or k > after) and (before is None or k < before)
            ]
            for reverse in (False, True):
                page = await store.scan(
                    writer.partition, "k", after=after, before=before, reverse=reverse, limit=9
                )
                same(
                    [r.key for r in page.records],
                    expected[::-1] if reverse else expected,
                    f"keys between {after!r} and {before!r}, reverse={reverse}",
                )


@RECORD_CHECKS.add()
async def check_paging(store: RecordStore, fresh: FreshRecords) -> None:
    """R-024: pages of any size give each record once, in order, in both directions."""
    writer = await seed(store, fresh, *(put(k) for k in _ODD), put("j"), put("l"))
    for limit in (1, 2, 3, 5, len(_ODD) - 1, len(_ODD), len(_ODD) + 1):
        for reverse in (False, True):
            found = await pages(store, writer.partition, "k", limit=limit, reverse=reverse)
            same(keys_of(found), sorted(_ODD, reverse=reverse), f"paged by {limit}")


@RECORD_CHECKS.add()
async def check_short_pages(store: RecordStore, fresh: FreshRecords) -> None:
    """R-025: a page without next is the last; one with next is followed by nothing lost."""
    writer = await seed(store, fresh, *(put(f"k{n}") for n in range(9)))
    page = await store.scan(writer.partition, "k", limit=9)
    same(len(page.records), 9, "records of a page as large as the range")
    rest = Page([])
    if page.next is not None:
        rest = await store.scan(writer.partition, "k", after=page.next, limit=9)
    same((rest.records, rest.next), ([], None), "behind the last record")
    page = await store.scan(writer.partition, "k", limit=4)
    same(page.next is None, False, "next of a page that is not the last")


@RECORD_CHECKS.add()
async def check_highest_prefix(store: RecordStore, fresh: FreshRecords) -> None:
    """R-026: a prefix that ends in the last code point, or none at all, has no wrong upper bound."""
    top = "\U0010ffff"
    keys = ["j", f"k{top}", f"k{top}a", f"k{top}{top}", "l", top, f"{top}{top}", f"{top}z"]
    keys += ["k\ud7ff", "k\ud7ffz", "k\ue000"]
    writer = await seed(store, fresh, *(put(k) for k in keys))
    for prefix in (f"k{top}", top, f"{top}{top}", "k\ud7ff", f"k{top}{top}{top}"):
        for reverse in (False, True):
            page = await store.scan(writer.partition, prefix, limit=50, reverse=reverse)
            expected = sorted((k for k in keys if k.startswith(prefix)), reverse=reverse)
            same([r.key for r in page.records], expected, f"keys under {prefix!r}")
    everything = [r.key for r in await writer.everything()]
    same([k for k in everything if k in set(keys)], sorted(keys), "all keys of the partition")
    same(everything, sorted(everything), "all keys in order")


@RECORD_CHECKS.add()
async def check_scan_bodies(store: RecordStore, fresh: FreshRecords) -> None:
    """R-027: a scan leaves bodies out unless they are asked for, and tells the same as get_many."""
    writer = await seed(store, fresh, put("ka", b'{"v":1}', b"body"), put("kb", b'{"v":2}'))
    bare = await store.scan(writer.partition, "k", limit=9)
    same([r.body for r in bare.records], [None, None], "bodies of a plain scan")
    asked = await store.scan(writer.partition, "k", limit=9, bodies=True)
    same(asked.records, await store.get_many(writer.partition, ["ka", "kb"]), "with bodies")
    got = await store.get_many(writer.partition, ["ka", "kb"], bodies=False)
    same(bare.records, got, "without bodies")


@RECORD_CHECKS.add()
async def check_scan_of_nothing(store: RecordStore, fresh: FreshRecords) -> None:
    """R-028: a scan of an absent partition or an empty range is one empty page."""
    absent = fresh.name()
    writer = await seed(store, fresh, put("k"))
    for partition, prefix in ((absent, ""), (absent, "k"), (writer.partition, "q")):
        for reverse in (False, True):
            page = await store.scan(partition, prefix, limit=5, reverse=reverse)
            same((page.records, page.prefixes, page.next), ([], [], None), "an empty page")
    same(await store.sequences([absent]), [0], "scanning creates no partition")
