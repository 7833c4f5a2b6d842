"""Checks of `get_many`."""

from __future__ import annotations

import asyncio

from crux_workspace.storage.records import RecordStore
from crux_workspace.testing.checks import holds, same
from crux_workspace.testing.record_checks.bench import (
    RECORD_CHECKS,
    FreshRecords,
    put,
    requires_room,
    seed,
)

__all__: list[str] = []

_ROUNDS = 40
_MANY = 2_500


@RECORD_CHECKS.add()
async def check_one_snapshot(store: RecordStore, fresh: FreshRecords) -> None:
    """R-010: get_many reads all keys from one snapshot while commits go on."""
    keys = [f"k{n}\x01" for n in range(12)]
    writer = await seed(store, fresh, *(put(k, b'{"n":0}', b"0") for k in keys))
    done = False

    async def write() -> None:
        nonlocal done
        for n in range(1, _ROUNDS):
            text = str(n).encode()
            await writer.commit(*(put(k, b'{"n":' + text + b"}", text) for k in keys))
        done = True

    async def read() -> None:
        while not done:
            found = await store.get_many(writer.partition, keys)
            seen = {(r.value, r.body, r.revision) if r is not None else None for r in found}
            same(len(seen), 1, "different commits seen in one answer")
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        for _ in range(3):
            group.create_task(read())


@RECORD_CHECKS.add()
async def check_order_of_keys(store: RecordStore, fresh: FreshRecords) -> None:
    """R-011: get_many answers in the order asked, equal keys twice, absent ones with None."""
    writer = await seed(store, fresh, *(put(k, f'"{k}"'.encode()) for k in "abc"))
    found = await store.get_many(writer.partition, ["c", "x", "a", "c", "b", "x", "A"])
    keys = [record.key if record is not None else None for record in found]
    same(keys, ["c", None, "a", "c", "b", None, None], "keys of the answer")
    same(found[0], found[3], "the same record asked for twice")


@RECORD_CHECKS.add()
async def check_get_without_bodies(store: RecordStore, fresh: FreshRecords) -> None:
    """R-012: get_many leaves bodies out when they are not asked for, and nothing else."""
    writer = await seed(store, fresh, put("a", b'{"v":1}', b"body"), put("b", b'{"v":2}'))
    bare = await store.get_many(writer.partition, ["a", "b"], bodies=False)
    whole = await store.get_many(writer.partition, ["a", "b"])
    same([r.body if r is not None else b"?" for r in bare], [None, None], "bodies left out")
    same([r.body if r is not None else b"?" for r in whole], [b"body", None], "bodies asked for")
    for left, right in zip(bare, whole, strict=True):
        holds(left is not None and right is not None, "a record is missing")
        if left is not None and right is not None:
            same(
                (left.key, left.value, left.revision, left.at),
                (right.key, right.value, right.revision, right.at),
                "a record read without its body",
            )


@RECORD_CHECKS.add()
async def check_get_from_nothing(store: RecordStore, fresh: FreshRecords) -> None:
    """R-013: get_many of an absent partition finds nothing, of no keys answers nothing."""
    absent = fresh.name()
    same(await store.get_many(absent, ["a", "b"]), [None, None], "an absent partition")
    same(await store.get_many(absent, []), [], "no keys, no partition")
    writer = await seed(store, fresh, put("a"))
    same(await store.get_many(writer.partition, []), [], "no keys")
    same(await store.sequences([absent]), [0], "reading creates no partition")


@RECORD_CHECKS.add()
async def check_values_are_bytes(store: RecordStore, fresh: FreshRecords) -> None:
    """R-014: values and bodies are bytes, and nobody can change what the store holds through them."""
    writer = await seed(store, fresh, put("a", b'{"v":1}', b"body"))
    (got,) = await store.get_many(writer.partition, ["a"])
    page = await store.scan(writer.partition, "a", limit=1, bodies=True)
    for record in (got, *page.records):
        holds(record is not None, "a record is missing")
        if record is not None:
            same(type(record.value), bytes, "type of a value")
            same(type(record.body), bytes, "type of a body")
            same((type(record.revision), type(record.at)), (int, int), "types of the stamps")


@RECORD_CHECKS.add()
async def check_exact_bytes(store: RecordStore, fresh: FreshRecords) -> None:
    """R-015: values and bodies come back byte for byte; an empty body is not a missing one."""
    bodies = {
        "empty": b"",
        "none": None,
        "nul": b"\x00a\x00\x00",
        "every": bytes(range(256)),
        "crlf": b"a\r\nb\rc\n",
        "text": "ä\U0001f600\ufeff".encode(),
    }
    values = {
        "empty": b"{}",
        "none": b'{ "space" : [1,  2] }',
        "nul": b'{"escaped":"\\u0000"}',
        "every": '{"k":"ä\U0001f600"}'.encode(),
        "crlf": b'{"b":1,"a":2,"b":3}',
        "text": b'{"n":1e400,"m":0.10}',
    }
    writer = await seed(store, fresh, *(put(k, values[k], bodies[k]) for k in bodies))
    found = await store.get_many(writer.partition, list(bodies))
    same({r.key: r.body for r in found if r is not None}, bodies, "bodies")
    same({r.key: r.value for r in found if r is not None}, values, "values")


@RECORD_CHECKS.add()
async def check_large_body(store: RecordStore, fresh: FreshRecords) -> None:
    """R-016: a body of 1 MiB comes back whole."""
    requires_room(store, body=1 << 20)
    body = bytes(range(256)) * 4096
    writer = await seed(store, fresh, put("large", b"{}", body))
    same((await writer.one("large")).body == body, True, "a body of 1 MiB is the same")


@RECORD_CHECKS.add()
async def check_many_keys(store: RecordStore, fresh: FreshRecords) -> None:
    """R-017: get_many takes thousands of keys in one call."""
    writer = await seed(store, fresh, *(put(f"k{n:05d}") for n in range(0, _MANY, 2)))
    found = await store.get_many(writer.partition, [f"k{n:05d}" for n in range(_MANY)])
    same(len(found), _MANY, "answers")
    same([n for n, r in enumerate(found) if r is not None], list(range(0, _MANY, 2)), "found")
