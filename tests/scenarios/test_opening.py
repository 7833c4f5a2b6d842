"""Opening, binding, closing, and the blocking form."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from crux_workspace import Workspace, open_workspace, open_workspace_sync, workspace
from crux_workspace.errors import ErrorCode
from crux_workspace.storage import memory_storage, storage
from crux_workspace.testing.workspace import refused
from storage_adapters import open_storage

A = "/workspace/a"


async def test_open_workspace_as_a_context_or_awaited(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/work.db"
    async with open_workspace(url) as ws:
        await ws.write(A, "text")
        await ws.write("/workspace/b", b"\x00" * 100)
    again = await open_workspace(url)
    assert await again.read_text(A) == "text"
    assert await again.read_bytes("/workspace/b") == b"\x00" * 100
    await again.aclose()
    await again.aclose()


async def test_open_workspace_defaults_id_and_namespace(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/work.db"
    async with open_workspace(url) as ws:
        await ws.write(A, "text")
    async with open_workspace(url, id="default", namespace="default") as ws:
        assert await ws.read_text(A) == "text"
    async with open_workspace(url, id="other") as ws:
        assert not await ws.exists(A)


async def test_assets_may_live_elsewhere(tmp_path: Path) -> None:
    url, assets = f"sqlite:///{tmp_path}/work.db", f"file://{tmp_path}/assets"
    async with open_workspace(url, assets) as ws:
        await ws.write(A, b"\x00" * 100)
    assert any(path.is_file() for path in (tmp_path / "assets").rglob("*"))
    async with open_workspace(url, assets) as ws:
        assert await ws.read_bytes(A) == b"\x00" * 100


async def test_memory_urls() -> None:
    async with open_workspace("memory://") as ws:
        await ws.write(A, b"\x00" * 100)
        assert await ws.read_bytes(A) == b"\x00" * 100


@pytest.mark.parametrize("url", ["", "rubbish", "nosuchscheme://x", "sqlite://"])
async def test_bad_urls_are_refused(url: str) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT):
        await open_workspace(url)


async def test_one_storage_is_shared_and_closed_by_who_opened_it(tmp_path: Path) -> None:
    async with open_storage(f"sqlite:///{tmp_path}/work.db") as shared:
        one = workspace(id="one", namespace="n", storage=shared)
        two = workspace(id="two", namespace="n", storage=shared)
        await one.write(A, "one")
        await one.aclose()
        await two.write(A, "two")
        assert await two.read_text(A) == "two"
        await two.aclose()


async def test_calls_after_close_are_refused(ws: Workspace) -> None:
    await ws.write(A, "text")
    await ws.aclose()
    await ws.aclose()
    for call in (lambda: ws.read(A), lambda: ws.write(A, ""), ws.list):
        with refused(ErrorCode.WORKSPACE_CLOSED):
            await call()


async def test_close_waits_for_commits_in_flight(make_ws: Any) -> None:
    ws, other = make_ws(), make_ws()
    task = asyncio.create_task(ws.write(A, "text"))
    await asyncio.sleep(0)
    await ws.aclose()
    results = await asyncio.gather(task, return_exceptions=True)
    landed = not isinstance(results[0], BaseException)
    assert await other.exists(A) == landed


async def test_a_close_that_was_cancelled_is_taken_up_by_the_next_one(tmp_path: Path) -> None:
    ws = await open_workspace(f"sqlite:///{tmp_path}/work.db")
    gate = asyncio.Event()
    in_flight = asyncio.create_task(ws._core.in_flight.shielded(gate.wait()))
    closing = asyncio.create_task(ws.aclose())
    await asyncio.sleep(0.01)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    gate.set()
    await in_flight
    await ws.aclose()
    with refused(ErrorCode.WORKSPACE_CLOSED):
        await ws._core.records.sequences([])


async def test_a_bound_view_refuses_another_namespace(make_ws: Any) -> None:
    ws = make_ws(namespace=None)
    bound = ws.for_namespace("thread:9")
    await bound.write(A, "text")
    assert await ws.read_text(A, namespace="thread:9") == "text"
    with refused(ErrorCode.INVALID_ARGUMENT):
        await bound.read(A, namespace="other")
    with refused(ErrorCode.INVALID_ARGUMENT):
        await bound.read(A, namespace="thread:9")


async def test_an_unbound_call_is_refused(make_ws: Any) -> None:
    ws = make_ws(namespace=None)
    with refused(ErrorCode.INVALID_ARGUMENT):
        await ws.write(A, "text")


async def test_the_namespace_may_be_a_callable(make_ws: Any) -> None:
    asked: list[Any] = []

    async def choose(request: Any) -> str:
        asked.append(request)
        return "chosen"

    ws = make_ws(namespace=choose)
    await ws.write(A, "text")
    await ws.write(A, "other", namespace="given")
    assert await ws.read_text(A, namespace="chosen") == "text"
    assert (asked[0].input, asked[0].prompt_id) == (None, None)
    plain = make_ws(namespace=lambda _request: "chosen")
    assert await plain.read_text(A) == "text"


async def test_namespace_is_refused_where_it_means_nothing(ws: Workspace) -> None:
    for call in (
        lambda: ws.namespaces(namespace="n"),  # type: ignore[call-arg]
        lambda: ws.drop_namespace("x", namespace="n"),  # type: ignore[call-arg]
    ):
        with pytest.raises((TypeError, ValueError)):
            await call()


def test_an_id_is_required() -> None:
    with pytest.raises(TypeError):
        workspace()  # type: ignore[call-arg]


async def test_without_assets_binary_and_oversized_content_is_refused() -> None:
    whole = memory_storage()
    ws = workspace(id="w", namespace="n", storage=storage(records=whole.records))
    await ws.write(A, "x" * 64_000)
    with refused(ErrorCode.ASSET_STORE_REQUIRED):
        await ws.write(A, b"\x00")
    with refused(ErrorCode.ASSET_STORE_REQUIRED):
        await ws.write(A, "x" * 64_001)
    assert (await ws.stat(A)).version == 1  # type: ignore[union-attr]
    await ws.aclose()


async def test_the_default_storage_is_memory() -> None:
    ws = workspace(id="w", namespace="n")
    await ws.write(A, b"\x00")
    assert await ws.read_bytes(A) == b"\x00"
    await ws.aclose()


async def test_a_dropped_namespace_is_empty_and_its_numbers_restart(ws: Workspace) -> None:
    await ws.write(A, "one")
    await ws.write(A, "two")
    await ws.drop_namespace("n")
    assert list(await ws.namespaces()) == []
    assert not await ws.exists(A)
    assert (await ws.write(A, "three")).version == 1
    assert [entry.sequence for entry in await ws.log()] == [1]


async def test_a_namespace_exists_from_its_first_commit_even_when_empty(ws: Workspace) -> None:
    assert list(await ws.namespaces()) == []
    await ws.write(A, "")
    await ws.delete(A)
    assert list(await ws.namespaces()) == ["n"]


def test_the_blocking_form_has_the_same_verbs(tmp_path: Path) -> None:
    with open_workspace_sync(f"sqlite:///{tmp_path}/work.db") as ws:
        assert ws.write(A, "one\n").version == 1
        assert ws.read_text(A) == "one\n"
        ws.edit(A, "one", "two")
        assert [entry.version for entry in ws.history(A)] == [2, 1]
        assert b"".join(ws.stream(A)) == b"two\n"
        assert [entry.path for entry in ws.walk("/")] == [A]
        assert ws.at(1).read_text(A) == "one\n"
        with refused(ErrorCode.FILE_NOT_FOUND):
            ws.read("/workspace/none")
    with refused(ErrorCode.WORKSPACE_CLOSED):
        ws.read(A)


async def test_as_sync_works_from_a_thread_and_not_on_its_own_loop(ws: Workspace) -> None:
    blocking = ws.as_sync()
    file = await asyncio.to_thread(blocking.write, A, "text")
    assert file.version == 1
    with refused(ErrorCode.WRONG_THREAD):
        blocking.read(A)


def test_another_loop_is_refused() -> None:
    ws = workspace(id="w", namespace="n")
    asyncio.run(ws.write(A, "text"))

    async def elsewhere() -> None:
        with refused(ErrorCode.WRONG_LOOP):
            await ws.read(A)

    asyncio.run(elsewhere())
