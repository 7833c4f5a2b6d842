"""What the tests of transactions look at: the newest commit in short, conflicts, and whether nothing was left behind."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from crux_workspace import Workspace
from crux_workspace.errors import ConflictError, ErrorCode
from crux_workspace.storage import Storage
from crux_workspace.storage.layout import partition_name
from tests.support.soundness import Records, check_sound

__all__ = [
    "BIG",
    "Told",
    "check_settled",
    "conflict",
    "net",
    "not_reached",
    "stored_assets",
    "tip",
    "whole",
]

BIG = b"\x00binary" * 40
"""Content that goes to the asset store."""

Told = list[dict[str, Any]]


async def net(ws: Workspace, **options: Any) -> list[str]:
    """Return the changes of the newest commit in short: ``create /a``, ``rename /a -> /b``."""
    [commit] = await ws.log(limit=1, **options)
    return [
        f"{change.type} {change.from_path} -> {change.path}"
        if change.from_path
        else f"{change.type} {change.path}"
        for change in commit.changes
    ]


async def tip(ws: Workspace, **options: Any) -> int:
    """Return the sequence of the newest commit."""
    commits = await ws.log(limit=1, **options)
    return commits[0].sequence if commits else 0


@contextmanager
def conflict(*paths: str) -> Iterator[Told]:
    """Expect that a transaction is refused for these very paths; gives their details."""
    told: Told = []
    with pytest.raises(ConflictError) as caught:
        yield told
    assert caught.value.code == ErrorCode.TRANSACTION_CONFLICT
    assert caught.value.retryable
    told.extend(caught.value.details["conflicts"])
    for one in told:
        assert set(one) == {
            "path",
            "base_version",
            "current_version",
            "last_operation",
            "last_actor",
        }
    if paths:
        assert sorted(one["path"] for one in told) == sorted(paths)


async def stored_assets(storage: Storage, prefix: str = "w/n/") -> set[str]:
    """Return the assets of the namespace that exist."""
    assert storage.assets is not None
    page = await storage.assets.list(prefix, limit=10_000)
    return {info.ref for info in page.assets}


async def check_settled(ws: Workspace, storage: Storage, clock: Any) -> Records:
    """Collect what nothing needs: then exactly the referenced assets are there, and the records are sound."""
    clock.now = max(clock.now, int(time.time() * 1000)) + 1_000  # asset stores have their own clock
    await ws.gc(dry_run=False)
    records = await check_sound(storage.records, partition_name("w", "n"))
    assert await stored_assets(storage) == records.referenced
    return records


def not_reached(why: str) -> None:
    """Fail: a block was entered that had to be refused."""
    pytest.fail(why)


def whole(value: object) -> int:
    """Return a JSON value that has to be a whole number."""
    assert isinstance(value, int)
    return value
