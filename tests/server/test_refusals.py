"""Whatever is refused is a problem with a code, and no spelling of an address leads round the rules."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from crux_workspace import Workspace
from crux_workspace.errors import ErrorCode
from tests.server.conftest import SECRET

JSON = {"content-type": "application/json"}


def check(answer: httpx.Response, status: int, code: str | None = None) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = answer.json()
    assert set(told) == {
        "type",
        "title",
        "status",
        "detail",
        "code",
        "hint",
        "details",
        "retryable",
    }
    assert told["status"] == status
    assert told["code"] in {each.value for each in ErrorCode}
    assert code in (None, told["code"]), told
    return told


async def raw(url: str, data: bytes) -> bytes:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.read(1 << 20), 5)
    finally:
        writer.close()


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/v1/",
        "/v1/nothing",
        "/v1/file/",
        "//v1/file",
        "/V1/file",
        "/v1//file",
        "/inspector",
        "/threads/x/resume",
        "/favicon.ico",
    ],
)
async def test_an_unknown_address_is_a_problem(http: httpx.AsyncClient, path: str) -> None:
    check(await http.get(path), 404)


@pytest.mark.parametrize(
    "target",
    [
        b"/v1/stat/../file?path=/workspace/a.md",
        b"/v1/%66ile?path=/workspace/a.md",
        b"/v1%2Ffile",
        b"/v1/file%00",
        b"/v1/file%3Fpath=/x",
        b"/%2e%2e/v1/file",
        b"/v1/..%2fv1/file",
        b"/health%7A",
    ],
)
async def test_an_address_has_one_spelling(url: str, target: bytes) -> None:
    token = f"authorization: Bearer {SECRET}\r\n".encode()
    answer = await raw(
        url, b"GET " + target + b" HTTP/1.1\r\nhost: x\r\n" + token + b"connection: close\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 404"), answer


@pytest.mark.parametrize(
    "path",
    [
        "/workspace/../outputs/a.md",
        "/workspace/%2e%2e/outputs/a.md",
        "/workspace/%2E%2E/a",
        "/workspace/a%2Fb",
        "/workspace/a%5cb",
        "/workspace\\a",
        "workspace/a.md",
        "",
        " ",
        "/workspace/a\x00b",
        "/workspace/a\nb",
        "/workspace/..",
        "..",
        "/../workspace/a",
        "/workspace/%252e%252e/a/..",
    ],
)
async def test_a_path_has_no_second_meaning(
    http: httpx.AsyncClient, ws: Workspace, path: str
) -> None:
    for method in ("GET", "PUT", "DELETE"):
        check(await http.request(method, "/v1/file", params={"path": path}), 400, "INVALID_PATH")
    for verb, body in (
        ("write", {"path": path, "content": "x"}),
        ("rename", {"src": path, "dst": "/outputs/x"}),
    ):
        check(await http.post(f"/v1/{verb}", json=body), 400, "INVALID_PATH")
    assert (await ws.list(recursive=True)).entries == []


async def test_encodings_of_a_parameter_are_undone_once(
    http: httpx.AsyncClient, ws: Workspace
) -> None:
    await ws.write("/workspace/%41.md", "percent")
    await ws.write("/workspace/A.md", "plain")
    assert (await http.get("/v1/file?path=/workspace/%41.md")).content == b"plain"
    assert (await http.get("/v1/file?path=%2Fworkspace%2F%2541.md")).content == b"percent"


@pytest.mark.parametrize(
    "query",
    [
        "path=/workspace/a&path=/workspace/b",
        "path=%ff",
        "path=/workspace/a&extra=1",
        "pa%74h=1&path=2",
        "path",
        "path=/a&version=x",
        "path=/a&version=0",
        "path=/a&version=1.5",
        "path=/a&version=99999999999999999999",
        "path=/a&namespace=",
        "&",
        "path=/workspace/a&at=yesterday",
        "path=/workspace/a&at=2024-01-01T00:00:00",
        "path=/workspace/a&version=-1",
        "path=/workspace/a&at=%D9%A1",
    ],
)
async def test_a_wrong_query_is_refused(http: httpx.AsyncClient, query: str) -> None:
    check(await http.get(f"/v1/file?{query}"), 400)


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"", JSON, 400),
        (b"{", JSON, 400),
        (b"[]", JSON, 400),
        (b"null", JSON, 400),
        (b'{"path": 1}', JSON, 400),
        (b'{"path": "/workspace/a"}', JSON, 400),
        (b'{"path": "/workspace/a", "content": 1, "more": 2}', JSON, 400),
        (b"\xff", JSON, 400),
        (b'{"path": "\\ud800", "content": 1}', JSON, 400),
        (b'{"path": "/workspace/a", "content": NaN}', JSON, 400),
        (b'{"path": "/workspace/a", "content": "\xff"}', JSON, 400),
        (b'{"path": "/workspace/a", "content": 1, "content_base64": "YQ=="}', JSON, 400),
        (b'{"path": "/workspace/a", "content_base64": "*"}', JSON, 400),
        (b'{"path": "/workspace/a", "content": 1, "if_version": "1"}', JSON, 400),
        (b'{"path": "/workspace/a", "content": 1, "if_version": -1}', JSON, 400),
        (b'{"path": "/workspace/a", "content": 1, "if_version": true}', JSON, 400),
        (b'{"path": "/workspace/a", "content": 1}', {}, 415),
        (b'{"path": "/workspace/a", "content": 1}', {"content-type": "text/plain"}, 415),
        (b'{"path": "/workspace/a", "content": 1}', JSON | {"content-encoding": "gzip"}, 415),
        (b'{"path": "/workspace/a", "content": 1, "status": "done"}', JSON, 400),
        (b'{"path": "/workspace/a", "content": 1, "kind": ""}', JSON, 400),
    ],
)
async def test_a_wrong_body_is_refused(
    http: httpx.AsyncClient, ws: Workspace, body: bytes, headers: dict[str, str], status: int
) -> None:
    check(await http.post("/v1/write", content=body, headers=headers), status)
    assert await ws.stat("/workspace/a") is None


async def test_numbers_keep_their_size(http: httpx.AsyncClient, ws: Workspace) -> None:
    big = 10**30
    await ws.write("/workspace/a.json", {"n": big})
    told = await http.get("/v1/content", params={"path": "/workspace/a.json"})
    assert (told.status_code, told.json()["content"]) == (200, {"n": big})


async def test_a_method_that_a_route_does_not_take(http: httpx.AsyncClient) -> None:
    answer = await http.patch("/v1/file")
    check(answer, 405)
    assert answer.headers["allow"] == "DELETE, GET, HEAD, PUT"
    check(await http.post("/healthz", json={}), 405)
    check(
        await http.options(
            "/v1/file",
            headers={"origin": "https://evil.example", "access-control-request-method": "PUT"},
        ),
        405,
    )


async def test_no_header_invites_other_sites(http: httpx.AsyncClient) -> None:
    answer = await http.get("/v1/list", headers={"origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/write HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        b"POST /v1/write HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
        b"POST /v1/write HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\nabc",
        b"\x16\x03\x01\x02\x00\x01",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_a_problem_too(url: str, data: bytes) -> None:
    answer = await raw(url, data)
    assert re.match(rb"HTTP/1.1 (400|401|404) ", answer), answer
    assert b"application/problem+json" in answer


async def test_a_failure_of_the_service_tells_nothing(
    http: httpx.AsyncClient,
    ws: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a secret of the inside")

    monkeypatch.setattr(Workspace, "stat", broken)
    told = check(await http.get("/v1/stat", params={"path": "/workspace/a"}), 500, "INTERNAL")
    assert "secret" not in str(told)
    assert "ZeroDivisionError" in caplog.text
    assert "secret" not in caplog.text


async def test_errors_of_the_verbs_keep_their_details(
    http: httpx.AsyncClient, ws: Workspace
) -> None:
    await ws.write("/workspace/a.md", "one one")
    body = {"path": "/workspace/a.md", "find": "one", "replace": "two"}
    told = check(await http.post("/v1/edit", json=body), 422, "EDIT_AMBIGUOUS")
    assert told["details"]["hits"] == 2
    assert told["hint"]
    check(await http.post("/v1/undo", json={"path": "/workspace/a.md"}), 409, "NOTHING_TO_UNDO")
    check(await http.get("/v1/file", params={"path": "/nowhere/a"}), 403, "OUTSIDE_MOUNTS")
    check(await http.get("/v1/list", params={"cursor": "x"}), 400, "INVALID_CURSOR")
    check(await http.get("/v1/events", params={"cursor": "x"}), 400, "INVALID_CURSOR")
    check(await http.get("/v1/events", headers={"last-event-id": "x"}), 400, "INVALID_CURSOR")
    check(await http.get("/v1/grep", params={"query": "(", "regex": "true"}), 400, "INVALID_REGEX")
    check(
        await http.get("/v1/resolve", params={"uri": "file:///etc/passwd"}), 400, "INVALID_ARGUMENT"
    )
    check(await http.post("/v1/undo_commit", json={"commit": "x"}), 404, "COMMIT_NOT_FOUND")
    check(
        await http.request("DELETE", "/v1/file", params={"path": "/workspace"}),
        409,
        "PATH_TYPE_CONFLICT",
    )
