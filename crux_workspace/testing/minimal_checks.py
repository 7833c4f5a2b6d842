"""The checks of the minimal store contract: what `journaled` relies on."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from crux_workspace.storage.minimal import CreatingStore, JsonObject, MinimalStore
from crux_workspace.testing.checks import Checks, Fresh, NotApplicable, holds, same

__all__ = ["MINIMAL_CHECKS"]

FreshMinimal = Fresh[MinimalStore]
MINIMAL_CHECKS: Checks[MinimalStore] = Checks()

_ODD: JsonObject = {
    "null": None,
    "yes": True,
    "int": 9_007_199_254_740_991,
    "float": 0.1,
    "empty": "",
    "text": "a\tb\r\n\x01\x02\x7f\\\"'<&> ä \u2028 \ufeff \U0001f600",
    "list": [[], {}, [1, "1", None]],
    "": {"nested": {"deep": [{"a.b": "$x"}]}},
    "__proto__": 1,
}


@asynccontextmanager
async def _both(store: MinimalStore, fresh: FreshMinimal) -> AsyncIterator[list[MinimalStore]]:
    """Give the store, and a second one on the same data where that can be had."""
    if fresh.hooks.another is None:
        yield [store]
        return
    second = await fresh.hooks.another(store)
    try:
        yield [store, second]
    finally:
        close = getattr(second, "aclose", None)
        if close is not None:
            await close()


def _creating(store: MinimalStore) -> CreatingStore:
    if not isinstance(store, CreatingStore):
        raise NotApplicable("create is not declared")
    return store


@MINIMAL_CHECKS.add()
async def check_reads_follow_writes(store: MinimalStore, fresh: FreshMinimal) -> None:
    """M-001: what is acknowledged is there for the next call, also through another store on the same data."""
    keys = [fresh.name(f"/{n}") for n in range(5)]
    async with _both(store, fresh) as stores:
        for number in range(20):
            writer = stores[number % len(stores)]
            for key in keys:
                await writer.put(key, {"n": number})
            for reader in stores:
                same([await reader.get(key) for key in keys], [{"n": number}] * 5, "after a put")
        await store.delete(keys[0])
        for reader in stores:
            same(await reader.get(keys[0]), None, "after a delete")
            held = [key for key in keys if await reader.get(key) is not None]
            same(held, keys[1:], "what was put and not deleted")


@MINIMAL_CHECKS.add()
async def check_get_absent(store: MinimalStore, fresh: FreshMinimal) -> None:
    """M-002: get of an absent key is None, whatever is beside it."""
    key = fresh.name("/a")
    await store.put(key + "/b", {"n": 1})
    await store.put(key + "x", {"n": 2})
    for absent in (key, key + "/", key + "/b/c", fresh.name()):
        same(await store.get(absent), None, f"get of {absent!r}")


@MINIMAL_CHECKS.add()
async def check_values(store: MinimalStore, fresh: FreshMinimal) -> None:
    """M-003: any JSON object comes back as it was put."""
    for value in ({}, _ODD, {"list": [_ODD, _ODD]}):
        key = fresh.name()
        await store.put(key, copy.deepcopy(value))
        found = await store.get(key)
        same(found, value, "the object")
        holds(
            value is not _ODD or (found is not None and found["yes"] is True),
            "a boolean is no number",
        )


@MINIMAL_CHECKS.add()
async def check_keys(store: MinimalStore, fresh: FreshMinimal) -> None:
    """M-004: keys that differ in case, in a sign or at their end are different keys."""
    base = fresh.name("/")
    names = ["a", "A", "a.b", "a_b", "a-b", "a/b", "ab", "0", "00", "a.", "a..b", "x" * 120]
    names.append("x" * 119 + "y")
    for name in names:
        await store.put(base + name, {"name": name})
    for name in names:
        same(await store.get(base + name), {"name": name}, f"the object at {name!r}")
    page = await store.list(base)
    same(sorted(key for key, _ in page.entries), sorted(base + n for n in names), "listed keys")


@MINIMAL_CHECKS.add()
async def check_large_values(store: MinimalStore, fresh: FreshMinimal) -> None:
    """M-005: an object of 200 KiB comes back whole."""
    key = fresh.name()
    value = {"rows": [[f"key-{n}", "x" * 100, n] for n in range(1_700)]}
    await store.put(key, copy.deepcopy(value))
    same(await store.get(key) == value, True, "the object")


@MINIMAL_CHECKS.add()
async def check_get_isolated(store: MinimalStore, fresh: FreshMinimal) -> None:
    """M-006: changing an object that get or list returned changes nothing in the store."""
    key = fresh.name()
    await store.put(key, {"list": [1]})
    found = await store.get(key)
    assert found is not None
    found["list"].append(2)
    for _, listed in (await store.list(key)).entries:
        listed["list"].append(3)
    same(await store.get(key), {"list": [1]}, "the object")


@MINIMAL_CHECKS.add()
async def check_put_replaces(store: MinimalStore, fresh: FreshMinimal) -> None:
    """M-010: put replaces the whole object; of puts at the same time one stays, whole."""
    key = fresh.name()
    await store.put(key, {"a": 1, "b": {"c": 1}})
    await store.put(key, {"b": {}})
    same(await store.get(key), {"b": {}}, "the object")
    values = [{"n": n, "text": str(n) * 2_000} for n in range(8)]
    await asyncio.gather(*(store.put(key, value) for value in values))
    holds(await store.get(key) in values, "one of eight that were put at the same time")


@MINIMAL_CHECKS.add()
async def check_put_isolated(store: MinimalStore, fresh: FreshMinimal) -> None:
    """M-011: changing an object after it was put changes nothing in the store."""
    key = fresh.name()
    value: JsonObject = {"list": [1]}
    await store.put(key, value)
    value["list"].append(2)
    same(await store.get(key), {"list": [1]}, "the object")


@MINIMAL_CHECKS.add()
async def check_delete(store: MinimalStore, fresh: FreshMinimal) -> None:
    """M-012: delete removes one key, and an absent one is no error."""
    base = fresh.name("/")
    for name in ("a", "a/b", "ab"):
        await store.put(base + name, {"n": 1})
    for _ in range(3):
        await store.delete(base + "a")
    same(await store.get(base + "a"), None, "the deleted object")
    same(
        sorted(k for k, _ in (await store.list(base)).entries), [base + "a/b", base + "ab"], "left"
    )


@MINIMAL_CHECKS.add()
async def check_list_pages(store: MinimalStore, fresh: FreshMinimal) -> None:
    """M-020: pages of a listing give every object with its value."""
    base = fresh.name("/")
    values = {f"{base}{n:02d}": {"n": n} for n in range(23)}
    for key, value in values.items():
        await store.put(key, value)
    for limit in (None, 1, 2, 7, 22, 23, 24):
        found: dict[str, JsonObject] = {}
        cursor: str | None = None
        for _ in range(100):
            page = await store.list(base, limit=limit, cursor=cursor)
            found.update(page.entries)
            if limit is not None:
                holds(len(page.entries) <= limit, f"a page of more than {limit}")
            cursor = page.cursor
            if cursor is None:
                break
        same(cursor, None, "the cursor after the last page")
        same(found, values, f"objects listed by {limit}")


@MINIMAL_CHECKS.add()
async def check_list_prefix(store: MinimalStore, fresh: FreshMinimal) -> None:
    """M-021: a prefix is literal, and need not end at a slash."""
    base = fresh.name("/")
    names = ["a/b", "a/bc", "a.b", "a_b", "aXb", "A/b", "ab"]
    for name in names:
        await store.put(base + name, {"n": 1})
    for prefix in ("", "a", "a/", "a/b", "a.", "a_", "q"):
        expected = sorted(base + n for n in names if n.startswith(prefix))
        found = sorted(key for key, _ in (await store.list(base + prefix)).entries)
        same(found, expected, f"keys under {prefix!r}")


@MINIMAL_CHECKS.add()
async def check_create(store: MinimalStore, fresh: FreshMinimal) -> None:
    """M-030: create stores where nothing is, and changes nothing where something is."""
    creating, key = _creating(store), fresh.name()
    same(await creating.create(key, {"n": 1}), True, "a first create")
    for _ in range(2):
        same(await creating.create(key, {"n": 2}), False, "a create of what is there")
    same(await store.get(key), {"n": 1}, "the object")
    await store.put(key, {"n": 3})
    same(await creating.create(key, {"n": 4}), False, "a create of what was put")
    await store.delete(key)
    same(await creating.create(key, {"n": 5}), True, "a create of what was deleted")
    same(await store.get(key), {"n": 5}, "the object in the end")


@MINIMAL_CHECKS.add()
async def check_create_races(store: MinimalStore, fresh: FreshMinimal) -> None:
    """M-031: of creates that are made at the same time exactly one stores, also through another store on the same data."""
    _creating(store)
    async with _both(store, fresh) as stores:
        for _ in range(5):
            key = fresh.name()
            calls = [_creating(stores[n % len(stores)]).create(key, {"n": n}) for n in range(8)]
            results = await asyncio.gather(*calls)
            same(sorted(results), [False] * 7 + [True], "what eight creates said")
            same(await store.get(key), {"n": results.index(True)}, "the object")
