from __future__ import annotations

import asyncio

import pytest

from crux_workspace.telemetry import path_hash
from crux_workspace.telemetry.path_hasher import PathHasher


async def test_the_key_is_loaded_once() -> None:
    loads = 0

    async def load() -> bytes:
        nonlocal loads
        loads += 1
        return b"key"

    hasher = PathHasher(None, load)
    assert await hasher.hash("/a") == path_hash("/a", b"key")
    assert await hasher.hash("/b") == path_hash("/b", b"key")
    assert loads == 1


async def test_a_key_that_cannot_be_loaded_gives_no_hash_and_is_not_asked_for_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    loads = 0
    monkeypatch.setattr("crux_workspace.telemetry.path_hasher.time.monotonic", lambda: now)

    async def load() -> bytes:
        nonlocal loads
        loads += 1
        if loads == 1:
            raise OSError("/workspace/secret")
        return b"key"

    hasher = PathHasher(None, load)
    assert await hasher.hash("/a") is None
    assert await hasher.hash("/a") is None
    assert loads == 1
    now += 31
    assert await hasher.hash("/a") == path_hash("/a", b"key")


async def test_without_any_key_there_is_no_hash() -> None:
    assert await PathHasher(None, None).hash("/a") is None


async def test_what_cannot_be_hashed_gives_no_hash() -> None:
    assert await PathHasher(b"key", None).hash(7) is None  # type: ignore[arg-type]


async def test_cancellation_passes_through_the_loading_of_the_key() -> None:
    hasher = PathHasher(None, lambda: asyncio.get_running_loop().create_future())
    task = asyncio.create_task(hasher.hash("/a"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
