"""What a hostile user found, each with the right answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from crux_workspace import Workspace, open_workspace
from crux_workspace.errors import ConflictError, InvalidInputError, StateError
from crux_workspace.storage import MemoryRecordStore
from crux_workspace.storage.records import Batch, Put


async def test_a_commit_whose_log_cannot_be_written_leaves_nothing() -> None:
    store = MemoryRecordStore()
    batch = Batch(commit_id="c" * 24, verb="write", now=1, incarnation=None, actor="\ud800")
    batch.puts = [Put("head\x01a\x01", b"{}")]
    with pytest.raises(UnicodeError):
        await store.commit("p", batch)
    assert await store.get_many("p", ["head\x01a\x01", "meta\x01"]) == [None, None]
    assert await store.sequences(["p"]) == [0]


async def test_the_error_of_a_callers_own_stream_reaches_the_caller(ws: Workspace) -> None:
    class OwnError(Exception):
        pass

    async def chunks() -> AsyncIterator[bytes]:
        yield b"x" * 100_000
        raise OwnError

    with pytest.raises(OwnError):
        await ws.write("/workspace/a.bin", chunks())
    assert not await ws.exists("/workspace/a.bin")


async def test_a_cut_page_cursor_is_refused(ws: Workspace) -> None:
    for name in "abc":
        await ws.write(f"/workspace/{name}", "x")
    cursor = (await ws.list("/workspace", limit=1)).cursor
    assert cursor is not None
    for cut in range(1, 12):
        with pytest.raises(InvalidInputError) as refused:
            await ws.list("/workspace", limit=1, cursor=cursor[:-cut])
        assert refused.value.code == "INVALID_CURSOR"


async def test_a_conflict_with_a_deletion_says_so(ws: Workspace) -> None:
    file = await ws.write("/workspace/a", "x")
    await ws.delete("/workspace/a")
    with pytest.raises(ConflictError) as refused:
        await ws.write("/workspace/a", "y", if_version=file)
    assert refused.value.details["last_operation"] == "delete"
    assert refused.value.details["current_version"] is None


async def test_a_view_closes_nothing() -> None:
    ws = await open_workspace("memory://")
    async with ws.for_namespace("n") as bound:
        await bound.write("/workspace/a", "x")
    await ws.acting_as("me").aclose()

    def blocking() -> None:
        with ws.as_sync() as sws:
            sws.write("/workspace/b", "y")

    await asyncio.to_thread(blocking)
    assert await ws.read_text("/workspace/b") == "y"
    await ws.aclose()
    with pytest.raises(StateError):
        await ws.read("/workspace/b")


@pytest.mark.parametrize(
    "url", [None, 5, b"memory://", "sqlite:///a%00.db", "sqlite:///\ud800.db", "sqlite:///a.db#f"]
)
async def test_a_url_that_is_none_is_refused_with_a_code(url: Any) -> None:
    with pytest.raises(InvalidInputError) as refused:
        await open_workspace(url)
    assert refused.value.code == "INVALID_ARGUMENT"
