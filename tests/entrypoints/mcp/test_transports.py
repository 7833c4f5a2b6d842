"""``crux-workspace mcp`` as a process: over stdio and over streamable HTTP, with the official client."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.subscriptions import ResourceUpdated

from crux_workspace import open_workspace
from crux_workspace.cli.main import main
from crux_workspace.errors import InvalidInputError
from crux_workspace.mcp.serving import http_app
from crux_workspace.model.addresses import is_loopback
from tests.support.ports import free_port
from tests.support.postgres import PostgresServer, empty

ROOT = Path(__file__).parents[3]
TOKEN = "0123456789abcdef0123"  # noqa: S105 - of a test
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("COV")},
    "PYTHONPATH": str(ROOT),
}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "crux_workspace.cli", "mcp", *arguments]


@contextmanager
def serving(url: str, *arguments: str, token: str | None = None) -> Iterator[str]:
    """Run the command over HTTP; gives its address."""
    port = free_port()
    environment = {**ENVIRONMENT, "CRUX_WORKSPACE_URL": url}
    if token is not None:
        environment["CRUX_WORKSPACE_MCP_TOKEN"] = token
    process = subprocess.Popen(
        command("--http", f":{port}", *arguments), env=environment, stderr=subprocess.PIPE
    )
    try:
        address = f"http://127.0.0.1:{port}/mcp"
        for _ in range(200):
            try:
                httpx.get(address, timeout=1)
                break
            except httpx.TransportError:
                assert process.poll() is None, process.stderr and process.stderr.read()
                import time

                time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=20)


@asynccontextmanager
async def authorized(address: str, token: str) -> AsyncIterator[Client]:
    import httpx2

    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        yield client


async def status_of(address: str, **headers: str) -> int:
    async with httpx.AsyncClient() as http:
        return (await http.post(address, json={}, headers=headers)).status_code


def text_of(result: Any) -> str:
    return str(result.content[0].text)


async def report(client: Client, url: str) -> None:
    """Write a report, edit it after somebody else did, publish it."""
    call = client.call_tool
    path = "/outputs/report.md"
    assert not (await call("writeWorkspaceFile", {"path": path, "content": "# Draft\n"})).is_error
    async with open_workspace(url) as ws:
        await ws.acting_as("agent:other").append(path, "a line of theirs\n")
    stale = await call("editWorkspaceFile", {"path": path, "find": "Draft", "replace": "Final"})
    assert stale.is_error
    assert "VERSION_CONFLICT" in text_of(stale)
    assert "append by agent:other" in text_of(stale)
    read = await call("readWorkspaceFile", {"path": path})
    assert "a line of theirs" in text_of(read)
    edited = await call("editWorkspaceFile", {"path": path, "find": "Draft", "replace": "Final"})
    assert not edited.is_error
    final = await call("finalizeWorkspaceFile", {"path": path, "kind": "report"})
    assert not final.is_error
    async with open_workspace(url) as ws:
        [artifact] = await ws.artifacts(status="final")
        assert (artifact.path, artifact.version, artifact.kind) == (path, 3, "report")
        assert await ws.read_text(path) == "# Final\na line of theirs\n"


OPTIONS = ("--extra", "finalize,history", "--read-before-write")


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_over_stdio(tmp_path: Path, store: str, request: pytest.FixtureRequest) -> None:
    url = f"sqlite:///{tmp_path}/work.db"
    if store == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        await empty(server)
        url = server.url()
    first, *rest = command("--url", url, *OPTIONS)
    parameters = StdioServerParameters(command=first, args=rest, env=ENVIRONMENT)
    async with Client(parameters) as client:
        assert client.server_info is not None
        assert client.server_info.name == "crux-workspace:default"
        await report(client, url)
        names = [resource.name for resource in (await client.list_resources()).resources]
        assert names == ["/outputs/report.md"]


async def test_over_http(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/work.db"
    with serving(url, *OPTIONS) as address:
        async with Client(address) as client:
            await report(client, url)
            uri = "workspace:///outputs/report.md"
            async with client.listen(resource_subscriptions=[uri]) as sub:
                async with open_workspace(url) as ws:
                    await ws.append("/outputs/report.md", "from another process\n")
                event = await asyncio.wait_for(anext(aiter(sub)), 10)
                assert event == ResourceUpdated(uri=uri)
        # A page of another site that a browser shows must not reach it.
        assert await status_of(address, Origin="https://evil.example") == 403
        assert await status_of(address, Host="evil.example") == 421


async def test_a_token_is_asked_for(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/work.db", "--namespace", "pinned", token=TOKEN) as address:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
            assert await status_of(address, **headers) == 401
        async with authorized(address, TOKEN) as client:
            wrote = await client.call_tool("writeWorkspaceFile", {"path": "/workspace/a", "content": "x"})  # fmt: skip
            assert not wrote.is_error
    async with open_workspace(f"sqlite:///{tmp_path}/work.db") as ws:
        assert await ws.exists("/workspace/a", namespace="pinned")


def test_an_open_address_needs_a_token() -> None:
    assert is_loopback("127.0.0.1")
    assert is_loopback("localhost")
    assert is_loopback("[::1]")
    assert not is_loopback("0.0.0.0")  # noqa: S104 - what must be refused
    assert not is_loopback("example.org")
    server: Any = None
    for host, token in (("0.0.0.0", None), ("example.org", None), ("127.0.0.1", "short")):  # noqa: S104
        with pytest.raises(InvalidInputError):
            http_app(server, host=host, token=token)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--http", "nonsense"), 2),
        (("--http", ":99999999"), 2),
        (("--extra", "nothing"), 1),
        (("--prefix", "x" * 80), 1),
        (("--http", "0.0.0.0:0"), 1),
    ],
)
def test_wrong_options(
    arguments: tuple[str, ...], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRUX_WORKSPACE_URL", f"sqlite:///{tmp_path}/w.db")
    monkeypatch.delenv("CRUX_WORKSPACE_MCP_TOKEN", raising=False)
    with pytest.raises(SystemExit) as left:
        main(["mcp", *arguments])
    assert left.value.code == code
