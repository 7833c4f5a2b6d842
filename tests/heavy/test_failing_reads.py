"""The asset store fails at each call of each way to read what is in parts: a typed error, and the next call works."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crux_workspace import Workspace
from crux_workspace.errors import ErrorCode, StorageError
from crux_workspace.testing import FaultyAssetStore
from tests.heavy.conftest import Heavy
from tests.support.slow_stores import TurningAssetStore

LOG = "/workspace/log.txt"
LARGE = "a line of some length\n" * 20_000
TEXT = LARGE + "a small part\n" + LARGE + "the end\n"


async def _streamed(ws: Workspace) -> str:
    return b"".join([chunk async for chunk in ws.stream(LOG)]).decode()


async def _windowed(ws: Workspace) -> Any:
    return await ws.read(LOG, start_line=19_999, end_line=20_003)


async def _in_transaction(ws: Workspace) -> Any:
    async with ws.transaction() as tx:
        return await tx.read_text(LOG), await tx.grep("the end")


READS: dict[str, Callable[[Workspace], Awaitable[Any]]] = {
    "read": lambda ws: ws.read(LOG),
    "range": lambda ws: ws.read(LOG, offset=len(LARGE) - 10, max_inline_bytes=100),
    "window": _windowed,
    "read_text": lambda ws: ws.read_text(LOG),
    "read_many": lambda ws: ws.read_many([LOG]),
    "stream": _streamed,
    "grep": lambda ws: ws.grep("the end", context_lines=1),
    "diff": lambda ws: ws.diff(LOG),
    "view": lambda ws: ws.at(3).read_text(LOG),
    "transaction": _in_transaction,
}


async def _write(heavy: Heavy) -> None:
    ws = heavy.open()
    await ws.write(LOG, LARGE)
    for part in ("a small part\n", LARGE, "the end\n"):
        await ws.append(LOG, part)


async def _outcome(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except StorageError as error:
        return error


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_failing_asset_store_is_told_of(heavy: Heavy, name: str, when: Any) -> None:
    await _write(heavy)
    expected = await READS[name](heavy.open())
    for number in range(1, 50):
        double = FaultyAssetStore(heavy.assets, fail_on_call=number, when=when)
        ws = heavy.open(assets=double)
        found = await _outcome(READS[name](ws))
        if isinstance(found, StorageError):
            assert found.code == ErrorCode.STORE_UNAVAILABLE
            assert found.retryable
            assert await READS[name](ws) == expected
            continue
        assert found == expected
        if not double.failed:
            break
    assert number > 1


@pytest.mark.parametrize("name", READS)
async def test_a_cancelled_read_leaves_nothing_running(heavy: Heavy, name: str) -> None:
    await _write(heavy)
    ws = heavy.open(assets=TurningAssetStore(heavy.assets))
    steps, ended = 0, False
    while not ended:
        call = asyncio.ensure_future(READS[name](ws))
        for _ in range(steps):
            await asyncio.sleep(0)
        ended = call.done()
        call.cancel()
        await asyncio.wait([call])
        assert ended or call.cancelled() or call.exception() is None
        steps = steps + 1 if steps < 40 else steps * 2
    gc.collect()
    for _ in range(20):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
