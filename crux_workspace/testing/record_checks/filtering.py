"""Checks of `scan` with a filter."""

from __future__ import annotations

from crux_workspace.storage.records import Contains, RecordStore
from crux_workspace.testing.checks import holds, same
from crux_workspace.testing.record_checks.bench import (
    RECORD_CHECKS,
    FreshRecords,
    Writer,
    keys_of,
    pages,
    put,
    seed,
)

__all__: list[str] = []

_BODIES: dict[str, bytes | None] = {
    "k0": b"needle",
    "k1": b"hay",
    "k2": None,
    "k3": b"",
    "k4": b"hay \x00 nee\x00dle needle",
    "k5": b"NEEDLE",
    "k6": b"need%le ne_dle",
    "k7": "nädel needle".encode(),
    "k8": b"\xff\xfeneedle\xff",
}
_NEEDLES = [b"needle", b"%", b"_", b"e\x00d", b"\xff\xfe", "ä".encode(), b"NEE", b"absent", b""]


async def _haystack(store: RecordStore, fresh: FreshRecords) -> Writer:
    return await seed(store, fresh, *(put(k, b'{"needle":1}', b) for k, b in _BODIES.items()))


def _passing(needle: bytes) -> list[str]:
    return [k for k, body in _BODIES.items() if body is None or needle in body]


@RECORD_CHECKS.add("search")
async def check_filter_is_exact(store: RecordStore, fresh: FreshRecords) -> None:
    """R-110: a filter passes the bodies that contain the needle, byte for byte, and no others."""
    writer = await _haystack(store, fresh)
    for needle in _NEEDLES:
        for reverse in (False, True):
            page = await store.scan(
                writer.partition, "k", limit=20, filter=Contains(needle), reverse=reverse
            )
            expected = _passing(needle)
            same(
                [r.key for r in page.records],
                expected[::-1] if reverse else expected,
                f"records that contain {needle!r}",
            )


@RECORD_CHECKS.add()
async def check_filter_hides_nothing(store: RecordStore, fresh: FreshRecords) -> None:
    """R-111: a filter never hides a record that passes, nor one without a body; bodies come as asked."""
    writer = await _haystack(store, fresh)
    for needle in _NEEDLES:
        page = await store.scan(writer.partition, "k", limit=20, filter=Contains(needle))
        missing = set(_passing(needle)) - {r.key for r in page.records}
        same(missing, set(), f"records hidden from {needle!r}")
        same({r.body for r in page.records} - {None}, set(), "bodies that were not asked for")
        page = await store.scan(
            writer.partition, "k", limit=20, filter=Contains(needle), bodies=True
        )
        same({r.key: r.body for r in page.records}.items() <= _BODIES.items(), True, "bodies")


@RECORD_CHECKS.add()
async def check_filter_paged(store: RecordStore, fresh: FreshRecords) -> None:
    """R-112: filtered pages may be short or empty, and still reach every passing record once."""
    wanted = {7, 90, 91, 149}
    puts = [put(f"k{n:03d}", b"{}", b"gold" if n in wanted else b"sand") for n in range(150)]
    writer = await seed(store, fresh, *puts)
    expected = [f"k{n:03d}" for n in sorted(wanted)]
    for limit in (1, 2, 4, 200):
        for reverse in (False, True):
            found = await pages(
                store,
                writer.partition,
                "k",
                limit=limit,
                filter=Contains(b"gold"),
                reverse=reverse,
                bodies=True,
            )
            keys = keys_of(found)
            same(len(keys), len(set(keys)), "records returned twice")
            gold = [r.key for p in found for r in p.records if r.body == b"gold"]
            same(gold, expected[::-1] if reverse else expected, f"passing records by {limit}")
            holds(
                not store.capabilities.search or len(keys) == len(expected),
                "a record that does not pass was returned",
            )
