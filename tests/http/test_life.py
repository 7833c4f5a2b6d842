"""A client as an object: its form, how it opens and ends, who may do what, and what models get of it."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from crux_workspace import (
    Mount,
    NamespaceRequest,
    Replayed,
    RetrieverHit,
    RetrieverSource,
    Transaction,
    WatchHandle,
    Workspace,
    WorkspaceView,
    open_workspace,
    prompt,
    workspace,
)
from crux_workspace.errors import ErrorCode, StateError, UnsupportedError
from crux_workspace.http import HttpTransaction, HttpView, HttpWatchHandle, HttpWorkspace
from crux_workspace.http import workspace as http_workspace
from crux_workspace.model.settings import ToolOptions
from crux_workspace.testing.workspace import refused
from tests.architecture.public_surface import members
from tests.support.http_workspaces import Switchboard, switchboard
from tests.support.services import serving, token_of
from tests.watch.conftest import until

A = "/workspace/a.md"
READER, WRITER = "reader-secret-of-1", "writer-secret-of-1"
PAIRS: dict[str, tuple[type, type]] = {
    "workspace": (Workspace, HttpWorkspace),
    "view": (WorkspaceView, HttpView),
    "transaction": (Transaction, HttpTransaction),
    "watch": (WatchHandle, HttpWatchHandle),
}
LOCAL = {"as_sync", "closed", "close", "drives"}
"""Names that belong to an object's own process and runtime."""
OWN = {"open", "tried"}


@pytest.fixture
async def board() -> AsyncIterator[Switchboard]:
    async with switchboard() as opened:
        yield opened


@pytest.fixture
async def ws() -> AsyncIterator[Workspace]:
    async with open_workspace("memory://", id="research") as opened:
        yield opened


@pytest.mark.parametrize("pair", PAIRS)
def test_a_client_has_every_name_of_a_workspace(pair: str) -> None:
    local, over = (
        {name for name, value in members(kind) if isinstance(value, FunctionType | property)}
        for kind in PAIRS[pair]
    )
    assert local - over <= LOCAL
    assert over - local <= OWN


def parameters(call: Any) -> list[Any]:
    found = list(inspect.signature(call).parameters.values())[1:]
    return [parameter.replace(annotation=None) for parameter in found]


@pytest.mark.parametrize(
    ("pair", "name"),
    [
        (pair, name)
        for pair, (local, over) in PAIRS.items()
        for name, value in members(local)
        if isinstance(value, FunctionType) and hasattr(over, name)
    ],
)
def test_parameters_and_kinds_are_the_same(pair: str, name: str) -> None:
    local, over = (dict(members(kind))[name] for kind in PAIRS[pair])
    assert parameters(over) == parameters(local)
    assert inspect.iscoroutinefunction(over) == inspect.iscoroutinefunction(local)
    assert inspect.isasyncgenfunction(over) == inspect.isasyncgenfunction(local)
    assert (inspect.getdoc(over) or "").endswith((".", "``)."))


def test_importing_it_loads_no_http_library() -> None:
    code = (
        "import sys, crux_workspace, crux_workspace.http\n"
        "heavy = {'httpx', 'httpcore', 'tenacity', 'starlette', 'uvicorn', 'crux_workspace.engine', 'crux_workspace.api'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd()
    )
    assert found.stdout == "[]\n"


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str, extra: str) -> None:
        raise UnsupportedError(f"{module} of {extra}")

    monkeypatch.setattr(http_workspace, "need_extra", missing)
    with pytest.raises(UnsupportedError, match="httpx of http"):
        HttpWorkspace("http://127.0.0.1")


async def test_it_opens_and_ends(board: Switchboard, ws: Workspace) -> None:
    url = board.address(ws)
    over = HttpWorkspace(url)
    for name in ("id", "mounts"):
        with refused(ErrorCode.WORKSPACE_CLOSED, StateError):
            getattr(over, name)
    with refused(ErrorCode.WORKSPACE_CLOSED):
        over.describe()
    assert await over is over
    assert (over.id, over.mounts, over.closed) == ("research", ws.mounts, False)
    assert over.describe() == ws.describe()
    view = over.for_namespace("n").acting_as("agent:writer")
    await view.aclose()
    await view.write(A, "x")
    assert [entry.actor for entry in await ws.log(namespace="n")] == ["agent:writer"]
    handle = over.watch()
    await over.aclose()
    await over.aclose()
    assert handle.stopped
    for call in (over.stat(A), view.write(A, "y"), over.open(), over.transaction().__aenter__()):
        with refused(ErrorCode.WORKSPACE_CLOSED, StateError):
            await call
    with refused(ErrorCode.INVALID_ARGUMENT):
        async with HttpWorkspace(url, id="another"):
            pass


async def test_closing_waits_for_what_is_on_its_way(board: Switchboard, ws: Workspace) -> None:
    over = HttpWorkspace(board.address(ws))
    writing = asyncio.create_task(over.write(A, "x"))
    await until(lambda: bool(over._caller.core.in_flight))
    await over.aclose()
    assert (await writing).version == 1


async def test_it_belongs_to_one_loop(board: Switchboard, ws: Workspace) -> None:
    over = board.client(ws)
    await over.stat(A)
    with refused(ErrorCode.WRONG_LOOP, StateError):
        await asyncio.to_thread(lambda: asyncio.run(over.stat(A)))


async def test_namespaces_are_told_as_to_a_workspace(board: Switchboard) -> None:
    ws = workspace(id="w", namespace=None)
    asked: list[NamespaceRequest] = []

    async def tell(request: NamespaceRequest) -> str:
        asked.append(request)
        return "told"

    over = board.client(ws, namespace=tell)
    await over.write(A, "x")
    assert list(await ws.namespaces()) == ["told"]
    bound = over.for_namespace("n")
    for call in (bound.stat(A, namespace="n"), board.client(ws).stat(A)):
        with refused(ErrorCode.INVALID_ARGUMENT):
            await call
    with refused(ErrorCode.INVALID_ARGUMENT):
        bound.for_namespace("m")
    async with bound.transaction() as tx:
        await tx.write(A, "x", namespace="n")
        with refused(ErrorCode.INVALID_ARGUMENT):
            await tx.write(A, "x", namespace="m")
    assert await over.at(1).exists(A)
    assert not await over.at(0, namespace="other").exists(A)


async def test_a_token_may_do_what_it_may(ws: Workspace) -> None:
    tokens = [
        token_of(READER, access="read"),
        token_of(WRITER, access="readwrite", mounts=("/outputs",)),
    ]
    await ws.write(A, "x")
    async with serving(ws, tokens=tokens) as url:
        async with HttpWorkspace(url, token=READER) as reader:
            assert await reader.read_text(A) == "x"
            assert {mount.access for mount in reader.mounts} == {"read"}
            with refused(ErrorCode.PERMISSION_DENIED):
                await reader.write(A, "y")
            with refused(ErrorCode.PERMISSION_DENIED):
                async with reader.transaction():
                    pass
        async with HttpWorkspace(url, token=WRITER) as writer:
            await writer.write("/outputs/o", "y")
            for call in (writer.read_text(A), writer.write(A, "y")):
                with refused(ErrorCode.OUTSIDE_MOUNTS):
                    await call
            assert [mount.path for mount in writer.mounts] == ["/outputs"]
        with refused(ErrorCode.PERMISSION_DENIED):
            async with HttpWorkspace(url, token=READER[::-1]):
                pass


async def test_a_transaction_is_replayed_by_its_key(board: Switchboard, ws: Workspace) -> None:
    over = board.client(ws)

    def work(tx: HttpTransaction) -> str:
        assert repr(tx) == "HttpTransaction(open)"
        return "done"

    async def write(tx: HttpTransaction) -> str:
        await tx.write(A, "x")
        return "done"

    assert await over.transaction(work) == "done"
    assert await over.transaction(write, idempotency_key="k") == "done"
    again = await over.transaction(write, idempotency_key="k")
    (entry,) = await ws.log()
    assert again == Replayed(entry.sequence, entry.commit, entry.at)
    async with over.transaction(idempotency_key="k") as tx:
        await tx.write(A, "dropped")
        assert tx.replayed == again
    assert await ws.read_text(A) == "x"
    with refused(ErrorCode.TRANSACTION_CLOSED):
        await tx.stat(A)
    with refused(ErrorCode.INVALID_ARGUMENT):
        tx.transaction()


async def test_a_transaction_that_lost_conflicts_and_is_run_again(
    board: Switchboard, ws: Workspace
) -> None:
    over = board.client(ws)
    await ws.write("/workspace/n.json", {"n": 0})

    async def count(tx: HttpTransaction) -> int:
        value: Any = await tx.read_json("/workspace/n.json")
        await asyncio.sleep(0)
        await tx.write("/workspace/n.json", {"n": value["n"] + 1})
        return int(value["n"])

    runs = (over.transaction(count, max_attempts=50) for _ in range(8))
    assert set(await asyncio.gather(*runs)) == set(range(8))
    request = over.transaction()
    tx = await request.__aenter__()
    await tx.read_json("/workspace/n.json")
    await tx.write("/workspace/other", "x")
    await ws.write("/workspace/n.json", {"n": 0})
    with refused(ErrorCode.TRANSACTION_CONFLICT) as caught:
        await request.__aexit__(None, None, None)
    assert caught.value.details["conflicts"][0]["path"] == "/workspace/n.json"
    assert not await ws.exists("/workspace/other")


async def test_a_transaction_names_its_verb(board: Switchboard, ws: Workspace) -> None:
    async with board.client(ws).transaction() as tx:
        tx.verb = "import"
        await tx.write(A, "x")
    assert [entry.verb for entry in await ws.log()] == ["import"]


async def test_models_get_tools_and_prompts(board: Switchboard, ws: Workspace) -> None:
    over = board.client(ws, tools=ToolOptions(prefix="far"))
    await over.open()
    tools = over.as_tools(namespace="n", delete=True)
    result = await tools["writeFarWorkspaceFile"].call({"path": A, "content": "# Hi"})
    assert result.ok, result
    assert await ws.read_text(A, namespace="n") == "# Hi"
    bound = over.for_namespace("n")
    assert (
        await bound.as_context(include=[A]).text()
        == await ws.for_namespace("n").as_context(include=[A]).text()
    )
    injection = await over.inject()
    assert injection.metadata["workspace"]["namespace"] == "default"
    resolved = await prompt(id="agent", use=[over]).resolve()
    assert "research" in resolved.system


async def test_a_source_on_the_other_side_is_shown(board: Switchboard) -> None:
    def retrieve(query: str, *, limit: int | None = None) -> list[RetrieverHit]:
        return [RetrieverHit("s", "c", "found text", source_path="doc.md")]

    class Retriever:
        pass

    retriever: Any = Retriever()
    retriever.retrieve = retrieve
    mounts = [
        Mount("/workspace"),
        Mount("/sources", access="read", source=RetrieverSource(retriever, query="q")),
    ]
    ws = workspace(id="w", namespace="n", mounts=mounts)
    over = board.client(ws)
    await over.open()
    assert [(mount.path, mount.source_kind) for mount in over.mounts] == [
        ("/sources", "retriever"),
        ("/workspace", None),
    ]
    (file,) = [file async for file in over.walk("/sources")]
    assert await over.read_text(file.path) == await ws.read_text(file.path)
    assert await over.read(file.path) == await ws.read(file.path)
    source = over.mounts[0].source
    assert source is not None
    with refused(ErrorCode.CAPABILITY_MISSING):
        source.list("/sources", None)  # type: ignore[arg-type]
