"""One documented form of everything that a request says; any other is refused instead of guessed."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import httpx
import pytest

from crux_workspace import Workspace
from crux_workspace.agent import PermissionGate, PermissionPolicy
from tests.server.conftest import SECRET
from tests.support.services import serving

A = "/workspace/a.md"


async def raw(url: str, head: str) -> bytes:
    """Send a request as it is written, and return the answer's first line and headers."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(f"{head}authorization: Bearer {SECRET}\r\n\r\n".encode())
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
    writer.close()
    return answer


@pytest.mark.parametrize("text", ["True", "TRUE", "1", "0", "null", "yes", "", " true"])
async def test_a_boolean_is_true_or_false(http: httpx.AsyncClient, text: str) -> None:
    answer = await http.get("/v1/list", params={"recursive": text})
    assert (answer.status_code, answer.json()["details"]) == (400, {"option": "recursive"})
    for good in ("true", "false"):
        assert (await http.get("/v1/list", params={"recursive": good})).status_code == 200


@pytest.mark.parametrize(
    "text", ["1e3", "1.0", "+1", "-0", "01", "0x1", "1_0", "null", "", "\u0661"]
)
async def test_a_number_is_decimal_digits(http: httpx.AsyncClient, text: str) -> None:
    answer = await http.get("/v1/list", params={"limit": text})
    assert (answer.status_code, answer.json()["details"]) == (400, {"option": "limit"})
    assert (await http.get("/v1/list", params={"limit": "10"})).status_code == 200


@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
async def test_a_text_of_another_charset_is_not_taken_for_utf8(
    http: httpx.AsyncClient, ws: Workspace, kind: str
) -> None:
    for charset, status in (("utf-16", 415), ("latin-1", 415), ("UTF-8", 201), ('"utf-8"', 200)):
        answer = await http.put(
            "/v1/file",
            params={"path": A},
            content=b'"x"',
            headers={"content-type": f"{kind}; charset={charset}"},
        )
        assert answer.status_code == status, (charset, answer.text)
    body = f'{{"path": "{A}", "content": "y"}}'
    for charset, status in (("utf-16", 415), ("utf-8", 200)):
        answer = await http.post(
            "/v1/write",
            content=body.encode(),
            headers={"content-type": f"application/json; charset={charset}"},
        )
        assert answer.status_code == status
    assert [entry.version for entry in await ws.history(A)] == [3, 2, 1]


async def test_a_part_of_a_file_cannot_be_put(http: httpx.AsyncClient, ws: Workspace) -> None:
    answer = await http.put(
        "/v1/file",
        params={"path": A},
        content=b"abc",
        headers={"content-range": "bytes 0-2/10"},
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_ARGUMENT")
    assert await ws.stat(A) is None


async def test_every_address_that_is_read_has_a_head(http: httpx.AsyncClient) -> None:
    answer = await http.head("/v1/events")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "content-length" not in answer.headers
    assert (await http.head("/v1/events", params={"cursor": "none"})).status_code == 400
    answer = await http.post("/healthz")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert (await http.head("/healthz")).status_code == 200


async def test_a_request_names_one_host_in_any_case(ws: Workspace) -> None:
    async with serving(ws, write=True, hosts=["LocalHost", "127.0.0.1"]) as url:
        for host, status in (
            ("localhost", b"200"),
            ("LOCALHOST", b"200"),
            ("LOCALHOST:8000", b"200"),
            ("127.0.0.1:1", b"200"),
            ("elsewhere.example", b"421"),
            ("localhost.elsewhere.example", b"421"),
            ("localhost\r\nhost: localhost", b"400"),
            ("localhost\r\nhost: elsewhere.example", b"400"),
        ):
            answer = await raw(url, f"GET /v1/list HTTP/1.1\r\nhost: {host}\r\n")
            assert answer.split()[1] == status, host


async def test_a_browser_writes_its_origin_in_any_case(ws: Workspace) -> None:
    async with serving(ws, write=True) as url, httpx.AsyncClient(base_url=url) as http:
        body = {"path": A, "content": "x"}
        for host, origin, status in (
            ("LocalHost:80", "http://localhost:80", 200),
            ("localhost:80", "http://elsewhere:80", 403),
        ):
            answer = await http.post(
                "/v1/write", json=body, headers={"host": host, "origin": origin}
            )
            assert answer.status_code == status


async def test_the_cookie_is_for_tls_alone_where_the_browser_speaks_it(
    http: httpx.AsyncClient, url: str
) -> None:
    host = urlsplit(url).netloc
    for origin, kept in ((f"https://{host}", True), (f"http://{host}", False)):
        answer = await http.post("/v1/session", json={}, headers={"origin": origin})
        assert ("secure" in answer.headers["set-cookie"].lower()) is kept


async def test_a_thread_is_named_and_not_walked_to(ws: Workspace) -> None:
    gate = PermissionGate(PermissionPolicy(), mode="interactive")
    async with serving(ws, write=True, gate=gate) as url:
        for path, status in (
            ("/threads/t/pending_interrupts", b"200"),
            ("/threads/t%3A1/pending_interrupts", b"200"),
            ("/threads/%2e%2e", b"404"),
            ("/threads/%2e%2e/pending_interrupts", b"404"),
            ("/threads/../pending_interrupts", b"404"),
            ("/threads/./pending_interrupts", b"404"),
            ("/threads//pending_interrupts", b"404"),
            ("/threads/t%2Fpending_interrupts", b"404"),
            ("/threads/a%5C..%5Cb/pending_interrupts", b"404"),
        ):
            answer = await raw(url, f"GET {path} HTTP/1.1\r\nhost: x\r\n")
            assert answer.split()[1] == status, (path, answer)
