"""Random batches and what came of them, to hold a store against the reference."""

from __future__ import annotations

import random
from typing import Any

from crux_workspace.model.changes import Change
from crux_workspace.storage import (
    Batch,
    CeilingExceeded,
    PreconditionFailed,
    Put,
    RecordStore,
    Take,
)

__all__ = ["PART", "outcome", "pages", "random_batch", "random_key"]

PART = "ws\x01n\x01"
FOLDERS = ["a", "a\x02b", "a\x02b\x02c", "a!", "é", "\U0001f600", "z\uffff", ""]


def random_key(rng: random.Random) -> str:
    """Return a key like a file's head."""
    folder = rng.choice(FOLDERS)
    name = rng.choice("abcxyz%_")
    return f"head\x01{folder}\x02{name}\x01" if folder else f"head\x01{name}\x01"


def random_batch(
    rng: random.Random, n: int, revisions: dict[str, int], incarnation: str | None
) -> Batch:
    """Return a batch of anything, some of it to be refused."""
    keys = [random_key(rng) for _ in range(rng.randint(1, 6))]
    puts: dict[str, Put] = {}
    for name in keys:
        body: Any = rng.choice([None, b"", b"one two", rng.randbytes(20)])
        held = [k for k in revisions if k.startswith("head")]
        if held and rng.random() < 0.3:
            body = Take(rng.choice(held))
        puts[name] = Put(name, b'{"n":%d}' % n, body)
    if rng.random() < 0.3:
        puts["mark"] = Put("state\x01\x04\x01", b"{}", b"marked")
    deletes = [random_key(rng) for _ in range(rng.randint(0, 2))]
    expect = {k: revisions.get(k, 0) for k in keys if rng.random() < 0.5}
    if rng.random() < 0.1:
        expect[keys[0]] = 999
    return Batch(
        commit_id=f"{n:032x}",
        verb="write",
        now=1000 + rng.randint(-5, 5) * n,
        incarnation=incarnation,
        expect=expect,
        expect_empty=[(f"{keys[0]}\x02", f"{keys[0]}\x03")] if rng.random() < 0.5 else [],
        expect_quiet=[("/a", True)] if rng.random() < 0.2 else [],
        quiet_since=max(0, n - 3),
        puts=list(puts.values()),
        deletes=deletes,
        counters={"files": (rng.randint(-1, 2), 30)},
        changes=[Change("update", f"/{k}", file_id="f") for k in ("a/x", "b")]
        if rng.random() < 0.9
        else [Change("update", f"/many/{i:04d}") for i in range(1500)],
    )


async def outcome(store: RecordStore, batch: Batch) -> tuple[Any, ...]:
    """Commit, and return what came of it."""
    try:
        done = await store.commit(PART, batch)
    except (PreconditionFailed, CeilingExceeded) as error:
        return type(error), *error.args
    return done.sequence, done.at


async def pages(store: RecordStore, prefix: str, **options: Any) -> list[Any]:
    """Every record and prefix of all pages, in order, however the store cuts its pages."""
    found: list[Any] = []
    at: Any = None
    at_end = options.get("reverse", False)
    side = "before" if at_end else "after"
    for _ in range(500):
        page = await store.scan(PART, prefix, **options, **{side: at})
        names = {r.key: r for r in page.records} | dict.fromkeys(page.prefixes)
        found.extend(sorted(names.items(), key=lambda item: item[0], reverse=bool(at_end)))
        if page.next is None:
            break
        at = page.next
    return found
