"""Files that a source shows, over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from crux_workspace import (
    BinaryContent,
    ListResult,
    Mount,
    TextContent,
    WorkspaceFile,
    open_workspace,
)
from crux_workspace.errors import InvalidInputError
from crux_workspace.server import service_app
from tests.support.services import serving, token_of


class Papers:
    """Two texts, a picture whose bytes it gives, and one whose bytes it does not."""

    def list(self, path: str, options: Any) -> ListResult:
        return ListResult([WorkspaceFile(f"/papers/{name}") for name in ("a.md", "b.md")])

    def read(self, path: str, options: Any) -> Any:
        if path.endswith("lost"):
            raise RuntimeError("secret of the source")
        if path.endswith(".md"):
            return TextContent(path, f"text of {path}", size=20)
        return BinaryContent(path) if path.endswith(".png") else None

    def read_bytes(self, path: str, options: Any) -> bytes:
        return b"\x89PNG" if path.endswith(".png") else f"text of {path}".encode()


@pytest.fixture
async def http() -> Any:
    mounts = [Mount("/workspace"), Mount("/papers", access="read", source=Papers())]
    async with (
        open_workspace("memory://", mounts=mounts) as ws,
        serving(ws, write=True) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        yield client


async def test_their_bytes_come_without_a_size_or_tag(http: httpx.AsyncClient) -> None:
    for name, content in (("a.md", b"text of /papers/a.md"), ("c.png", b"\x89PNG")):
        got = await http.get(
            "/v1/file", params={"path": f"/papers/{name}"}, headers={"range": "bytes=0-1"}
        )
        assert (got.status_code, got.content) == (200, content), got.text
        assert "etag" not in got.headers
    assert (await http.head("/v1/file", params={"path": "/papers/a.md"})).status_code == 200


async def test_what_a_source_does_not_do_is_told(http: httpx.AsyncClient) -> None:
    listed = await http.get("/v1/list", params={"path": "/", "recursive": "true"})
    assert [entry["path"] for entry in listed.json()["entries"]] == ["/papers/a.md", "/papers/b.md"]
    assert (await http.get("/v1/history", params={"path": "/papers/a.md"})).json() == []
    answer = await http.get("/v1/diff", params={"path": "/papers/a.md"})
    assert (answer.status_code, answer.json()["code"]) == (501, "SOURCE_UNSUPPORTED")
    answer = await http.post("/v1/write", json={"path": "/papers/a.md", "content": "x"})
    assert answer.status_code == 403
    assert (await http.get("/v1/file", params={"path": "/papers/none"})).status_code == 404
    answer = await http.get("/v1/content", params={"path": "/papers/lost"})
    assert (answer.status_code, answer.json()["code"]) == (503, "STORE_UNAVAILABLE")
    assert "secret" not in answer.text
    copied = await http.post("/v1/copy", json={"src": "/papers/a.md", "dst": "/workspace/a.md"})
    assert copied.json()["size"] == len("text of /papers/a.md")


async def test_a_listing_can_leave_out_what_fails() -> None:
    class Broken(Papers):
        def list(self, path: str, options: Any) -> ListResult:
            raise RuntimeError("secret of the source")

    mounts = [Mount("/workspace"), Mount("/papers", access="read", source=Broken())]
    async with open_workspace("memory://", mounts=mounts) as ws:
        await ws.write("/workspace/a.md", "text")
        async with serving(ws) as url, httpx.AsyncClient(base_url=url) as http:
            whole = {"path": "/", "recursive": "true"}
            assert (await http.get("/v1/list", params=whole)).status_code == 503
            told = (await http.get("/v1/list", params=whole | {"partial": "true"})).json()
            assert told["failed"] == {"/papers": "STORE_UNAVAILABLE"}
            assert [entry["path"] for entry in told["entries"]] == ["/workspace/a.md"]
            found = (await http.get("/v1/grep", params={"query": "text", "partial": "true"})).json()
            assert found["failed"] == {"/papers": "STORE_UNAVAILABLE"}


async def test_a_part_of_a_source_cannot_be_lent() -> None:
    mounts = [Mount("/workspace"), Mount("/papers", access="read", source=Papers())]
    async with open_workspace("memory://", mounts=mounts) as ws:
        whole = token_of("secret-of-the-papers", mounts=["/papers"])
        service_app(ws, tokens=[whole])
        with pytest.raises(InvalidInputError, match="only as a whole"):
            service_app(ws, tokens=[token_of("secret-of-the-papers", mounts=["/papers/a"])])
