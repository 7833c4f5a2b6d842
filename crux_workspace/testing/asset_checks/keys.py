"""Checks of odd keys."""

from __future__ import annotations

from urllib.parse import quote

from crux_workspace.storage.assets import AssetStore
from crux_workspace.testing.asset_checks.shelf import (
    ASSET_CHECKS,
    FreshAssets,
    joined,
    keep,
    listed,
    shelf,
)
from crux_workspace.testing.checks import same

__all__: list[str] = []

_NAMES = [
    "a b",
    "a+b",
    "a%b",
    "a%20b",
    "a%2Bb",
    "ab",
    "a/b",
    "a\\b",
    "a:b",
    "a?b#c&d=e",
    "..",
    ".",
    "~",
    "*",
    "CON",
    "ä\U0001f600",
    "ж" * 16,
    "a\x01main\x01",
    "x" * 200,
]


def _encoded(name: str) -> str:
    encoded = quote(name, safe="")
    return encoded.replace(".", "%2E") if name in {".", ".."} else encoded


@ASSET_CHECKS.add()
async def check_odd_keys(store: AssetStore, fresh: FreshAssets) -> None:
    """A-040: keys of encoded spaces, plus and percent signs, dots and letters stay apart and come back."""
    prefix = shelf(fresh)
    held: dict[str, bytes] = {}
    for name in _NAMES:
        data = name.encode() + b"!"
        asset = await keep(store, f"{prefix}{_encoded(name)}/", data)
        held[asset.ref] = data
    same(len(held), len(_NAMES), "refs")
    for ref, data in held.items():
        same(await store.get(ref), data, f"get {ref!r}")
        same(await joined(store, ref, 1), data[1:], f"stream {ref!r}")
    found = await listed(store, fresh, prefix)
    same({a.ref for a in found}, set(held), "listed refs")
    for ref in held:
        await store.delete(ref)
    same(await listed(store, fresh, prefix), [], "assets after deleting all")


@ASSET_CHECKS.add()
async def check_literal_signs(store: AssetStore, fresh: FreshAssets) -> None:
    """A-041: a key is never decoded: `%20`, `+` and `%2B` are what they are, in listings too."""
    base = fresh.name()
    stems = [f"{base}{sign}b/" for sign in ("%20", "%2B", "%2520", "+", "-", "_", ".", "~")]
    refs = {stem: (await keep(store, stem, stem.encode())).ref for stem in stems}
    for stem, ref in refs.items():
        same(await store.get(ref), stem.encode(), f"get {stem!r}")
        same([a.ref for a in await listed(store, fresh, stem)], [ref], f"listed under {stem!r}")


@ASSET_CHECKS.add()
async def check_many_segments(store: AssetStore, fresh: FreshAssets) -> None:
    """A-042: keys may be deep, and long names that differ at their end stay apart."""
    prefix = shelf(fresh)
    deep = prefix + "d/" * 12
    same(await store.get((await keep(store, deep, b"deep")).ref), b"deep", "a deep key")
    stem = "y" * 199
    one = await keep(store, f"{prefix}{stem}a/", b"a")
    two = await keep(store, f"{prefix}{stem}b/", b"b")
    same([await store.get(a.ref) for a in (one, two)], [b"a", b"b"], "long names")
    same(len(await listed(store, fresh, prefix)), 3, "listed assets")
