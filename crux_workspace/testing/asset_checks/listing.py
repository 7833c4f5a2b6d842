"""Checks of `list`."""

from __future__ import annotations

from crux_workspace.storage.assets import AssetInfo, AssetPage, AssetStore
from crux_workspace.testing.asset_checks.shelf import (
    ASSET_CHECKS,
    FreshAssets,
    keep,
    listed,
    shelf,
)
from crux_workspace.testing.checks import same

__all__: list[str] = []


@ASSET_CHECKS.add()
async def check_listing(store: AssetStore, fresh: FreshAssets) -> None:
    """A-050: a listing tells ref, size and time as the put did, ordered by ref; what was deleted is gone."""
    prefix = shelf(fresh)
    assets = [await keep(store, prefix, b"x" * n) for n in range(6)]
    gone = assets.pop()
    await store.delete(gone.ref)
    expected = sorted((AssetInfo(a.ref, a.size, a.created_at) for a in assets), key=lambda a: a.ref)
    found = await listed(store, fresh, prefix)
    same([(a.ref, a.size) for a in found], [(a.ref, a.size) for a in expected], "assets")
    drift = [abs(f.created_at - e.created_at) for f, e in zip(found, expected, strict=True)]
    same([ms for ms in drift if ms > 2_000], [], "times that differ by more than two seconds")


@ASSET_CHECKS.add()
async def check_listing_paged(store: AssetStore, fresh: FreshAssets) -> None:
    """A-051: pages of a listing give each asset once, in order; after is left out."""
    prefix = shelf(fresh)
    refs = sorted([(await keep(store, f"{prefix}{n % 3}/", b"x")).ref for n in range(11)])
    for limit in (1, 2, 3, 5, 10, 11, 12):
        found = await listed(store, fresh, prefix, limit=limit)
        same([a.ref for a in found], refs, f"assets paged by {limit}")
    page = await store.list(prefix, after=refs[4], limit=50)
    same([a.ref for a in page.assets], refs[5:], "assets after one")
    await store.delete(refs[4])
    await fresh.settle(store)
    page = await store.list(prefix, after=refs[4], limit=50)
    same([a.ref for a in page.assets], refs[5:], "assets after one that was deleted")


@ASSET_CHECKS.add()
async def check_listing_prefix(store: AssetStore, fresh: FreshAssets) -> None:
    """A-052: a prefix is literal, and need not end at a slash."""
    base = fresh.name()
    stems = [base + tail for tail in ("/ab/", "/abc/", "/a_c/", "/aXc/", "/a.c/", "b/ab/", "/AB/")]
    refs = {stem: (await keep(store, stem, b"x")).ref for stem in stems}
    for prefix in (base, base + "/", base + "/ab", base + "/ab/", base + "/a_", base + "/q"):
        expected = {ref for stem, ref in refs.items() if stem.startswith(prefix)}
        found = [a.ref for a in await listed(store, fresh, prefix)]
        same(len(found), len(set(found)), "assets listed twice")
        same(set(found), expected, f"assets under {prefix!r}")


@ASSET_CHECKS.add()
async def check_listing_nothing(store: AssetStore, fresh: FreshAssets) -> None:
    """A-053: a listing of nothing is one empty page."""
    page = await store.list(shelf(fresh), limit=5)
    same(page, AssetPage([]), "the page")
