"""Connections that break: each change takes effect once, nothing that streams is lost or doubled, and what cannot be known is said."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from crux_workspace import Workspace, open_workspace
from crux_workspace.errors import ConflictError, ErrorCode, StorageError
from crux_workspace.http import HttpWorkspace
from crux_workspace.testing.workspace import refused
from tests.http.test_equality import ALL, NAMESPACE, everything, outcome, pair_on
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.http_workspaces import Switchboard, switchboard

A = "/workspace/a.md"
TOKEN = "a-secret-token"  # noqa: S105 - of the tests


@asynccontextmanager
async def through(
    board: Switchboard, ws: Workspace, **options: Any
) -> AsyncIterator[tuple[FaultProxy, HttpWorkspace]]:
    """Give a client whose way to the service leads through a proxy."""
    parts = urlsplit(board.address(ws))
    assert parts.hostname is not None
    assert parts.port is not None
    async with fault_proxy((parts.hostname, parts.port)) as proxy:
        url = f"http://127.0.0.1:{proxy.port}{parts.path}"
        async with HttpWorkspace(url, **options) as over:
            yield proxy, over


@pytest.fixture
async def board() -> AsyncIterator[Switchboard]:
    async with switchboard() as opened:
        yield opened


@pytest.fixture
async def ws(tmp_path: Path) -> AsyncIterator[Workspace]:
    async with open_workspace(f"sqlite:///{tmp_path}/w.db?durability=normal") as opened:
        yield opened


SENT_ONCE = {"write a stream", "write text as a stream"}
"""Calls whose stream cannot be read again."""
ONCE_MORE = [case for case in ALL.values() if case.name not in SENT_ONCE and not case.steps]


@pytest.mark.parametrize(
    "fault",
    [{"cut_after_answer": 0}, {"cut_after_answer": 40}, {"cut_after_request": 30}],
    ids=["lost answer", "cut answer", "cut request"],
)
async def test_a_change_takes_effect_once(board: Switchboard, fault: dict[str, int]) -> None:
    for number, case in enumerate(ONCE_MORE):
        if number % 4 != sum(fault.values()) % 4:
            continue
        pair = await pair_on(board, case)
        expected = await outcome(case.call(pair.here, NAMESPACE))
        async with through(board, pair.behind) as (proxy, over):
            for name, value in fault.items():
                setattr(proxy.faults, name, value)
            found = await outcome(case.call(over, NAMESPACE))  # type: ignore[arg-type]
        assert found == expected, case.name
        seen = await everything(pair.behind, NAMESPACE)
        assert seen == await everything(pair.here, NAMESPACE), case.name


async def test_a_transaction_takes_effect_once_whichever_answer_is_lost(
    board: Switchboard, ws: Workspace
) -> None:
    for lost in range(6):
        path = f"/workspace/{lost}.md"
        async with through(board, ws) as (proxy, over):
            for step in range(6):
                if step == 0:
                    request = over.transaction()
                proxy.faults.cut_after_answer = 0 if step == lost else None
                if step == 0:
                    tx = await request.__aenter__()
                elif step == 1:
                    await tx.append(path, "one\n")
                elif step == 2:
                    await tx.append(path, "two\n")
                elif step == 3:
                    assert await tx.read_text(path) == "one\ntwo\n"
                elif step == 4:
                    await tx.write(f"{path}.bin", io.BytesIO(b"\x00" * 400_000))
                else:
                    await request.__aexit__(None, None, None)
        assert tx.committed is not None
        assert tx.replayed is None
        assert await ws.read_text(path) == "one\ntwo\n"
        assert (await ws.log(limit=1))[0].sequence == lost + 1


async def test_a_service_that_forgot_the_transaction_applied_nothing(
    board: Switchboard, ws: Workspace
) -> None:
    over = board.client(ws)
    runs = 0

    async def work(tx: Any) -> str:
        nonlocal runs
        runs += 1
        await tx.write(A, str(runs))
        if runs == 1:
            await board.forget_transactions()
        await tx.append(A, "!")
        return "done"

    with pytest.raises(ConflictError, match="forgotten"):
        await over.transaction(work)
    assert not await ws.exists(A)
    runs = 0
    assert await over.transaction(work, max_attempts=2) == "done"
    assert (runs, await ws.read_text(A)) == (2, "2!")


async def test_a_commit_is_found_again_by_its_key(board: Switchboard, ws: Workspace) -> None:
    async with through(board, ws) as (proxy, over):
        request = over.transaction()
        tx = await request.__aenter__()
        await tx.write(A, "x")
        proxy.faults.cut_after_answer = 0
        board.forgets_on_commit = True
        await request.__aexit__(None, None, None)
        assert tx.committed is not None
        assert [entry.commit for entry in await ws.log()] == [tx.committed.commit]


async def test_an_outcome_that_is_not_known_comes_with_its_key(
    board: Switchboard, ws: Workspace
) -> None:
    async with through(board, ws, timeout_ms=300, max_attempts=1) as (proxy, over):
        proxy.faults.silent = True
        with refused(ErrorCode.STORE_TIMEOUT, StorageError) as caught:
            await over.append(A, "once\n")
        proxy.faults.silent = False
        key = caught.value.details["idempotency_key"]
        proxy.reset()
        assert (await over.append(A, "once\n", idempotency_key=key)).version == 1
    assert await ws.read_text(A) == "once\n"


async def test_a_service_that_is_not_there_is_unavailable(
    board: Switchboard, ws: Workspace
) -> None:
    async with through(board, ws, max_attempts=2, token=TOKEN) as (proxy, over):
        proxy.faults.refuse = True
        proxy.reset()
        for call in (over.stat(A), over.write(A, "x"), over.stream(A).__anext__()):
            with refused(ErrorCode.STORE_UNAVAILABLE, StorageError) as caught:
                await call
            assert (
                "secret" not in f"{caught.value!r} {caught.value} {caught.value.details} {over!r}"
            )
            assert caught.value.__cause__ is not None


async def test_a_stream_goes_on_in_the_version_it_began_with(
    board: Switchboard, ws: Workspace
) -> None:
    data = bytes(range(256)) * 12_000
    await ws.write("/workspace/large", data)
    async with through(board, ws) as (proxy, over):
        received = bytearray()
        proxy.faults.cut_after_answer = 900_000
        async for chunk in over.stream("/workspace/large", offset=7):
            if not received:
                await ws.write("/workspace/large", b"another version")
            received += chunk
            if 1_000_000 < len(received) < 1_300_000:
                proxy.reset()
        assert received == data[7:]
        assert proxy.connections >= 3


async def test_a_file_is_sent_again_and_an_iterator_is_not(
    board: Switchboard, ws: Workspace
) -> None:
    data = b"0123456789" * 100_000

    async def chunks() -> AsyncIterator[bytes]:
        yield data
        yield data

    async with through(board, ws) as (proxy, over):
        file = io.BytesIO(b"before" + data)
        file.seek(6)
        proxy.faults.cut_after_request = 300_000
        assert (await over.write("/workspace/f", file)).version == 1
        assert await ws.read_bytes("/workspace/f") == data
        proxy.faults.cut_after_request = 300_000
        with refused(ErrorCode.STORE_UNAVAILABLE):
            await over.write("/workspace/i", chunks())
        assert not await ws.exists("/workspace/i")
        assert (await over.write("/workspace/i", chunks())).size == len(data) * 2


async def test_what_the_callers_stream_raises_is_the_callers(
    board: Switchboard, ws: Workspace
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"x" * 300_000
        raise ZeroDivisionError

    over = board.client(ws)
    with pytest.raises(ZeroDivisionError):
        await over.write("/workspace/i", chunks())
    assert not await ws.exists("/workspace/i")


async def test_a_lost_drop_is_not_repeated(board: Switchboard, ws: Workspace) -> None:
    await ws.write(A, "x")
    async with through(board, ws) as (proxy, over):
        proxy.faults.cut_after_answer = 0
        with refused(ErrorCode.STORE_UNAVAILABLE):
            await over.drop_namespace("default")
    assert list(await ws.namespaces()) == []
