"""Checks of `scan` with a delimiter."""

from __future__ import annotations

from crux_workspace.storage.records import Page, RecordStore
from crux_workspace.testing.checks import holds, same
from crux_workspace.testing.record_checks.bench import (
    RECORD_CHECKS,
    FreshRecords,
    Writer,
    pages,
    put,
    seed,
)

__all__: list[str] = []

_KEYS = [
    "h\x01a.md\x01",
    "h\x01b\x02c\x02d\x01",
    "h\x01b\x02e\x01",
    "h\x01b\x02f\x01",
    "h\x01b\x01",
    "h\x01b!\x01",
    "h\x01b!\x02x\x01",
    "h\x01\U0001f600\x02x\x01",
    "h\x01\U0001f600\x02y\x01",
    "h\x01\uffee\x02x\x01",
    "h\x01z\x01",
    "i\x01b\x02q\x01",
]


def _folded(keys: list[str], prefix: str, delimiter: str) -> list[str]:
    names = set()
    for key in keys:
        if key.startswith(prefix):
            cut = key.find(delimiter, len(prefix))
            names.add(key if cut < 0 else key[: cut + len(delimiter)])
    return sorted(names)


def _names(found: list[Page]) -> list[str]:
    return [name for p in found for name in sorted([*(r.key for r in p.records), *p.prefixes])]


async def _tree(store: RecordStore, fresh: FreshRecords) -> Writer:
    return await seed(store, fresh, *(put(k, b'{"v":1}', b"body") for k in _KEYS))


@RECORD_CHECKS.add()
async def check_folds(store: RecordStore, fresh: FreshRecords) -> None:
    """R-100: keys with the delimiter behind the prefix are folded into common prefixes, in order."""
    writer = await _tree(store, fresh)
    for prefix in ("h\x01", "h\x01b", "h\x01b\x02", "h\x01b\x02c", "h", "", "x"):
        keys = [r.key for r in await writer.everything()]
        page = await store.scan(writer.partition, prefix, limit=50, delimiter="\x02")
        records = [r.key for r in page.records]
        same(records, sorted(records), f"order of the records under {prefix!r}")
        same(page.prefixes, sorted(page.prefixes), f"order of the prefixes under {prefix!r}")
        same(_names([page]), _folded(keys, prefix, "\x02"), f"names under {prefix!r}")
        holds(all(p.endswith("\x02") for p in page.prefixes), "prefixes end with the delimiter")
        same([r.body for r in page.records], [None] * len(records), "bodies not asked for")


@RECORD_CHECKS.add()
async def check_folds_paged(store: RecordStore, fresh: FreshRecords) -> None:
    """R-101: over pages of any size each prefix and each record comes exactly once."""
    writer = await _tree(store, fresh)
    expected = _folded(_KEYS, "h\x01", "\x02")
    for limit in (1, 2, 3, 4, 7, 20):
        found = await pages(store, writer.partition, "h\x01", limit=limit, delimiter="\x02")
        same(_names(found), expected, f"names paged by {limit}")


@RECORD_CHECKS.add()
async def check_folds_reversed(store: RecordStore, fresh: FreshRecords) -> None:
    """R-102: folding backwards gives the same names in descending order, paged too."""
    writer = await _tree(store, fresh)
    expected = _folded(_KEYS, "h\x01", "\x02")
    for limit in (1, 2, 3, 4, 7, 20):
        found = await pages(
            store, writer.partition, "h\x01", limit=limit, delimiter="\x02", reverse=True
        )
        names = [
            name
            for p in found
            for name in sorted([*(r.key for r in p.records), *p.prefixes], reverse=True)
        ]
        same(names, expected[::-1], f"names paged backwards by {limit}")
        for page in found:
            same(page.prefixes, sorted(page.prefixes, reverse=True), "prefixes in descending order")


@RECORD_CHECKS.add()
async def check_after_a_prefix(store: RecordStore, fresh: FreshRecords) -> None:
    """R-103: an `after` that is a common prefix passes over everything below it."""
    writer = await _tree(store, fresh)
    expected = _folded(_KEYS, "h\x01", "\x02")
    for after in expected:
        page = await store.scan(writer.partition, "h\x01", after=after, limit=50, delimiter="\x02")
        same(_names([page]), [n for n in expected if n > after], f"names behind {after!r}")
        page = await store.scan(writer.partition, "h\x01", before=after, limit=50, delimiter="\x02")
        same(_names([page]), [n for n in expected if n < after], f"names before {after!r}")
    page = await store.scan(
        writer.partition, "h\x01", after="h\x01c\x02", limit=50, delimiter="\x02"
    )
    same(_names([page]), [n for n in expected if n > "h\x01c\x02"], "behind an absent prefix")


@RECORD_CHECKS.add()
async def check_folded_keys_count_once(store: RecordStore, fresh: FreshRecords) -> None:
    """R-104: many keys below one prefix count as one name towards the limit."""
    keys = [f"h\x01{d}\x02{n:03d}\x01" for d in "abc" for n in range(150)]
    writer = await seed(store, fresh, *(put(k) for k in [*keys, "h\x01z\x01"]))
    for reverse in (False, True):
        found = await pages(
            store, writer.partition, "h\x01", limit=4, delimiter="\x02", reverse=reverse
        )
        same((len(found[0].prefixes), len(found[0].records)), (3, 1), "names of a page of four")


@RECORD_CHECKS.add()
async def check_key_that_is_a_prefix(store: RecordStore, fresh: FreshRecords) -> None:
    """R-105: a key that ends with the delimiter is folded; delimiters inside the scan's prefix are not."""
    writer = await seed(store, fresh, put("a/"), put("a/b"), put("a/b/"), put("a"), put("a/b/c"))
    page = await store.scan(writer.partition, "a", limit=9, delimiter="/")
    same(([r.key for r in page.records], page.prefixes), (["a"], ["a/"]), "under 'a'")
    page = await store.scan(writer.partition, "a/", limit=9, delimiter="/")
    same(([r.key for r in page.records], page.prefixes), (["a/", "a/b"], ["a/b/"]), "under 'a/'")
    top = "\U0010ffff"
    writer = await seed(store, fresh, put(f"{top}a"), put(f"{top}b"))
    for reverse in (False, True):
        found = await pages(store, writer.partition, "", limit=1, delimiter=top, reverse=reverse)
        same([name for p in found for name in p.prefixes], [top], "the highest prefix of all")
