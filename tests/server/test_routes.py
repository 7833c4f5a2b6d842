"""Each route, as a client meets it."""

from __future__ import annotations

import httpx


async def test_bytes_go_in_and_out(http: httpx.AsyncClient) -> None:
    put = await http.put(
        "/v1/file", params={"path": "/workspace/a.txt", "kind": "text"}, content=b"hello"
    )
    assert put.status_code == 201, put.text
    etag = put.headers["etag"]
    got = await http.get("/v1/file", params={"path": "/workspace/a.txt"})
    assert (got.status_code, got.content, got.headers["etag"]) == (200, b"hello", etag)
    part = await http.get(
        "/v1/file", params={"path": "/workspace/a.txt"}, headers={"range": "bytes=1-2"}
    )
    assert (part.status_code, part.content, part.headers["content-range"]) == (
        206,
        b"el",
        "bytes 1-2/5",
    )
    same = await http.get(
        "/v1/file", params={"path": "/workspace/a.txt"}, headers={"if-none-match": etag}
    )
    assert (same.status_code, same.content) == (304, b"")
    lost = await http.put(
        "/v1/file",
        params={"path": "/workspace/a.txt"},
        content=b"x",
        headers={"if-none-match": "*"},
    )
    assert (lost.status_code, lost.json()["code"]) == (412, "VERSION_CONFLICT")
    gone = await http.delete(
        "/v1/file", params={"path": "/workspace/a.txt"}, headers={"if-match": etag}
    )
    assert gone.status_code == 204
    none = await http.get("/v1/file", params={"path": "/workspace/a.txt"})
    assert (none.status_code, none.json()["code"]) == (404, "FILE_NOT_FOUND")
    old = await http.get("/v1/file", params={"path": "/workspace/a.txt", "version": 1})
    assert old.content == b"hello"


async def test_a_transaction_is_one_commit(http: httpx.AsyncClient) -> None:
    operations = [
        {"verb": "write", "path": "/workspace/a.md", "content": "a"},
        {"verb": "append", "path": "/workspace/a.md", "text": "b"},
        {"verb": "read", "path": "/workspace/a.md"},
        {"verb": "write", "path": "/workspace/b.bin", "content_base64": "AAE="},
    ]
    done = (await http.post("/v1/transaction", json={"operations": operations})).json()
    assert done["results"][2]["content"] == "ab", done
    log = (await http.get("/v1/log")).json()
    assert [entry["verb"] for entry in log] == ["transaction"]
    assert done["commit"]["commit"] == log[0]["commit"]
    begun = (await http.post("/v1/transaction/begin", json={})).json()
    inside = {"workspace-transaction": begun["transaction"]}
    await http.post("/v1/write", json={"path": "/workspace/c.md", "content": "c"}, headers=inside)
    assert (await http.get("/v1/stat", params={"path": "/workspace/c.md"})).json() is None
    staged = await http.get("/v1/file", params={"path": "/workspace/c.md"}, headers=inside)
    assert staged.content == b"c", staged.text
    ended = await http.post("/v1/transaction/commit", json={}, headers=inside)
    assert ended.json()["commit"]["sequence"] == 2


async def test_events_follow(http: httpx.AsyncClient) -> None:
    async with http.stream("GET", "/v1/events") as stream:
        lines = stream.aiter_lines()
        seen = [await anext(lines) for _ in range(4)]
        assert seen[2] == "event: ready", seen
        await http.post("/v1/write", json={"path": "/workspace/e.md", "content": {"a": 1}})
        seen = [await anext(lines) for _ in range(4)]
        assert seen[2] == "event: change", seen
        assert "/workspace/e.md" in seen[3]


async def test_every_get_answers(http: httpx.AsyncClient) -> None:
    await http.post("/v1/write", json={"path": "/workspace/a.md", "content": "one"})
    await http.post("/v1/edit", json={"path": "/workspace/a.md", "find": "one", "replace": "two"})
    at = {"path": "/workspace/a.md"}
    for path, params in (
        ("content", at),
        ("stat", at),
        ("exists", at),
        ("is_dir", at),
        ("list", {}),
        ("grep", {"query": "two"}),
        ("history", at),
        ("diff", at),
        ("artifacts", {}),
        ("log", {}),
        ("cursor", {}),
        ("usage", {}),
        ("namespaces", {}),
        ("describe", {}),
        ("session", {}),
        ("list", {"at": "1", "recursive": "true"}),
        ("traces/versions", {}),
    ):
        got = await http.get(f"/v1/{path}", params=params)
        assert got.status_code == 200, (path, got.text)
    for path in ("/healthz", "/readyz", "/openapi.json"):
        assert (await http.get(path)).status_code == 200
