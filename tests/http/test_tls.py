"""A service behind a proxy that ends TLS: what a client trusts, and what it does not."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator

import httpx
import pytest

from crux_workspace import Workspace, open_workspace
from crux_workspace.errors import StorageError
from crux_workspace.http import HttpWorkspace
from tests.support.services import serving, token_of
from tests.support.tls_proxy import tls_proxy

SECRET = "a-secret-over-tls-alone"  # noqa: S105 - of the tests
A = "/workspace/a.md"


@pytest.fixture
async def ws() -> AsyncIterator[Workspace]:
    async with open_workspace("memory://") as opened:
        yield opened


@pytest.fixture
async def proxied(ws: Workspace) -> AsyncIterator[tuple[str, ssl.SSLContext]]:
    token = token_of(SECRET, access="readwrite", all_namespaces=True)
    async with serving(ws, tokens=[token]) as url, tls_proxy(url) as found:
        yield found


async def test_a_client_that_trusts_the_certificate_works(
    proxied: tuple[str, ssl.SSLContext], ws: Workspace
) -> None:
    url, trusting = proxied
    async with (
        httpx.AsyncClient(verify=trusting, timeout=10) as client,
        HttpWorkspace(url, token=SECRET, client=client) as remote,
    ):
        async with remote.watch(recursive=True) as feed:
            await remote.write(A, "one")
            event = await asyncio.wait_for(anext(feed), 10)
            assert (event.path, event.version) == (A, 1)
        large = bytes(1_000_000)
        await remote.write("/workspace/b.bin", large)
        assert await remote.read_bytes("/workspace/b.bin") == large
        async with remote.transaction() as tx:
            await tx.append(A, " two")
            await tx.write("/workspace/c.md", "c")
    assert await ws.read_text(A) == "one two"
    assert (await ws.log(limit=1))[0].sequence == 3


async def test_a_certificate_that_nobody_vouches_for_is_refused(
    proxied: tuple[str, ssl.SSLContext], ws: Workspace
) -> None:
    url, trusting = proxied
    other_name = url.replace("localhost", "127.0.0.1")
    async with httpx.AsyncClient(verify=trusting) as knowing:
        for address, client in ((url, None), (other_name, knowing)):
            remote = HttpWorkspace(address, token=SECRET, client=client, max_attempts=1)
            with pytest.raises(StorageError) as refused:
                await remote.write(A, "one")
            assert refused.value.code == "STORE_UNAVAILABLE"
            assert SECRET not in str(refused.value)
            await remote.aclose()
    assert await ws.log() == []


async def test_a_browser_behind_the_proxy_gets_a_cookie_for_tls_alone(
    proxied: tuple[str, ssl.SSLContext],
) -> None:
    url, trusting = proxied
    async with httpx.AsyncClient(verify=trusting, base_url=url) as browser:
        signed_in = await browser.post(
            "/v1/session",
            json={},
            headers={"authorization": f"Bearer {SECRET}", "origin": url},
        )
        assert "secure" in signed_in.headers["set-cookie"].lower()
        own = {"x-workspace-request": "1", "origin": url}
        body = {"path": A, "content": "x"}
        assert (await browser.post("/v1/write", json=body, headers=own)).status_code == 200
        other = own | {"origin": "https://elsewhere.example"}
        assert (await browser.post("/v1/write", json=body, headers=other)).status_code == 403
