"""A file's bytes over HTTP: conditions, ranges, kinds, streams."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from crux_workspace import Workspace
from crux_workspace.errors import StorageError

AT = {"path": "/workspace/a.txt"}


async def fetch(http: httpx.AsyncClient, **headers: str) -> httpx.Response:
    return await http.get(
        "/v1/file", params=AT, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


@pytest.fixture
async def etag(ws: Workspace) -> str:
    file = await ws.write(AT["path"], "0123456789")
    return f'"{file.id}.{file.version}"'


@pytest.mark.parametrize(
    ("wanted", "content", "told"),
    [
        ("bytes=0-3", b"0123", "bytes 0-3/10"),
        ("bytes=8-", b"89", "bytes 8-9/10"),
        ("bytes=-3", b"789", "bytes 7-9/10"),
        ("bytes=5-99999999999", b"56789", "bytes 5-9/10"),
        ("bytes=-99", b"0123456789", "bytes 0-9/10"),
        ("bytes = 1-1", b"1", "bytes 1-1/10"),
    ],
)
async def test_a_range_is_a_part(
    http: httpx.AsyncClient, etag: str, wanted: str, content: bytes, told: str
) -> None:
    got = await fetch(http, range=wanted)
    assert (got.status_code, got.content, got.headers["content-range"]) == (206, content, told)
    assert got.headers["etag"] == etag


@pytest.mark.parametrize(
    "wanted",
    ["bytes=1-2,4-5", "lines=1-2", "bytes=", "bytes=-", "bytes=5-1", "bytes=a-b", "bytes=1-2 3"],
)
async def test_a_range_that_is_none_counts_for_nothing(
    http: httpx.AsyncClient, etag: str, wanted: str
) -> None:
    got = await fetch(http, range=wanted)
    if wanted == "bytes=1-2 3":  # spaces fold: 1-23
        assert got.status_code == 206
        return
    assert (got.status_code, got.content) == (200, b"0123456789")


@pytest.mark.parametrize("wanted", ["bytes=10-", "bytes=99-100", "bytes=-0"])
async def test_a_range_beyond_the_end_is_refused(
    http: httpx.AsyncClient, etag: str, wanted: str
) -> None:
    got = await fetch(http, range=wanted)
    assert (got.status_code, got.headers["content-range"]) == (416, "bytes */10")


async def test_if_range_gives_the_whole_when_the_file_changed(
    http: httpx.AsyncClient, ws: Workspace, etag: str
) -> None:
    assert (await fetch(http, range="bytes=0-1", if_range=etag)).status_code == 206
    await ws.write(AT["path"], "changed")
    got = await fetch(http, range="bytes=0-1", if_range=etag)
    assert (got.status_code, got.content) == (200, b"changed")
    assert (
        await fetch(http, range="bytes=0-1", if_range="Wed, 21 Oct 2015 07:28:00 GMT")
    ).status_code == 200


async def test_what_the_client_has_is_not_sent_again(
    http: httpx.AsyncClient, ws: Workspace, etag: str
) -> None:
    for header in (etag, f"W/{etag}", f'"x", {etag}', "*"):
        got = await fetch(http, if_none_match=header)
        assert (got.status_code, got.content, got.headers["etag"]) == (304, b"", etag), header
    await ws.set(AT["path"], kind="note")
    assert (await fetch(http, if_none_match=etag)).status_code == 304  # attributes are no version
    await ws.append(AT["path"], "!")
    assert (await fetch(http, if_none_match=etag)).status_code == 200
    assert (await fetch(http, if_match=etag)).status_code == 412
    assert (await fetch(http, if_match="*")).status_code == 200


async def test_head_tells_without_sending(http: httpx.AsyncClient, etag: str) -> None:
    got = await http.head("/v1/file", params=AT)
    assert (got.status_code, got.content, got.headers["content-length"]) == (200, b"", "10")
    assert got.headers["etag"] == etag
    told = await http.head("/v1/stat", params=AT)
    assert (told.status_code, told.content) == (200, b"")


async def test_a_file_is_never_a_page(http: httpx.AsyncClient, ws: Workspace) -> None:
    name = "/workspace/\u2028<script>\"'; é.html"
    await ws.write(name, "<script>alert(1)</script>", mime_type="text/html")
    got = await http.get("/v1/file", params={"path": name})
    assert got.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
    assert got.headers["content-disposition"].isascii()
    assert got.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert got.headers["x-content-type-options"] == "nosniff"
    await ws.set(name, mime_type='tëxt/html; x="a, b')
    assert (await http.get("/v1/file", params={"path": name})).headers[
        "content-type"
    ] == "application/octet-stream"


@pytest.mark.parametrize(
    ("headers", "params", "body", "kind", "value"),
    [
        ({}, {}, b"\xff\x00", "binary", b"\xff\x00"),
        ({"content-type": "text/markdown; charset=utf-8"}, {}, b"# a\r\n", "text", "# a\r\n"),
        ({"content-type": "application/json"}, {}, b'{"a": [1, 2]}', "json", {"a": [1, 2]}),
        ({"content-type": "application/json"}, {"kind": "text"}, b"{}", "text", "{}"),
        ({"content-type": "text/plain"}, {"kind": "binary"}, b"abc", "binary", b"abc"),
        ({}, {"kind": "json"}, b"null", "json", None),
        ({}, {"kind": "text"}, b"", "text", ""),
    ],
)
async def test_the_kind_is_told_or_seen(
    http: httpx.AsyncClient,
    ws: Workspace,
    headers: dict[str, str],
    params: dict[str, str],
    body: bytes,
    kind: str,
    value: Any,
) -> None:
    put = await http.put("/v1/file", params=AT | params, content=body, headers=headers)
    assert (put.status_code, put.json()["content_kind"]) == (201, kind), put.text
    if kind == "json":
        assert await ws.read_json(AT["path"]) == value
    else:
        assert (await ws.read_bytes(AT["path"])) == (
            value.encode() if isinstance(value, str) else value
        )


async def test_attributes_come_in_the_query(http: httpx.AsyncClient) -> None:
    params = AT | {
        "mime_type": "text/x-log",
        "metadata": '{"a": 1}',
        "status": "final",
        "artifact_kind": "log",
    }
    told = (await http.put("/v1/file", params=params | {"kind": "text"}, content=b"x")).json()
    assert [
        told[name]
        for name in ("mime_type", "metadata", "status", "artifact_kind", "pinned_version")
    ] == [
        "text/x-log",
        {"a": 1},
        "final",
        "log",
        1,
    ]
    for wrong in ("[1]", "{", "1", '{"a": NaN}'):
        answer = await http.put("/v1/file", params=AT | {"metadata": wrong}, content=b"x")
        assert answer.status_code == 400, wrong


async def test_only_the_expected_file_is_replaced(
    http: httpx.AsyncClient, ws: Workspace, etag: str
) -> None:
    async def put(**headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await http.put(
            "/v1/file", params=AT | {"kind": "text"}, content=b"new", headers=named
        )

    assert (await put(if_match='"0123456789abcdef0123456789abcdef.1"')).status_code == 412
    assert (await put(if_match=f"W/{etag}")).status_code == 412
    assert (await put(if_none_match="*")).status_code == 412
    assert (await put(if_none_match=etag)).status_code == 400
    assert (await put(if_match=etag, if_none_match="*")).status_code == 400
    first = await put(if_match=f'"x", {etag}')
    assert first.status_code == 200
    lost = await put(if_match=etag)
    assert (lost.status_code, lost.json()["details"]["current_version"]) == (412, 2)
    assert (await put(if_match="*")).status_code == 200
    await ws.delete(AT["path"])
    assert (await put(if_match="*")).status_code == 412
    assert (await put(if_none_match="*")).status_code == 200
    for verb, body in (
        ("append", {"text": "!"}),
        ("set", {"kind": "x"}),
        ("undo", {}),
        ("finalize", {}),
    ):
        stale = await http.post(f"/v1/{verb}", json=AT | body, headers={"if-match": etag})
        assert (stale.status_code, stale.json()["code"]) == (412, "VERSION_CONFLICT"), verb
        in_body = await http.post(f"/v1/{verb}", json=AT | body | {"if_version": etag})
        assert (in_body.status_code, in_body.json()["code"]) == (409, "VERSION_CONFLICT"), verb
    assert (await http.delete("/v1/file", params=AT, headers={"if-match": etag})).status_code == 412


async def test_two_who_saw_the_same_version_cannot_both_win(
    http: httpx.AsyncClient, ws: Workspace, etag: str
) -> None:
    async def put(number: int) -> int:
        body = f"by {number}".encode()
        answer = await http.put("/v1/file", params=AT, content=body, headers={"if-match": etag})
        return answer.status_code

    statuses = await asyncio.gather(*(put(number) for number in range(12)))
    assert sorted(statuses) == [200] + [412] * 11
    assert len(await ws.history(AT["path"])) == 2


async def test_large_bodies_stream_both_ways(http: httpx.AsyncClient, ws: Workspace) -> None:
    piece = bytes(range(256)) * 4_096
    pieces = 24

    async def body() -> AsyncIterator[bytes]:
        for _ in range(pieces):
            yield piece

    put = await http.put("/v1/file", params={"path": "/outputs/big.bin"}, content=body())
    assert put.json()["size"] == pieces * len(piece)
    seen, size = hashlib.sha256(), 0
    async with http.stream("GET", "/v1/file", params={"path": "/outputs/big.bin"}) as got:
        assert got.headers["content-length"] == str(pieces * len(piece))
        async for chunk in got.aiter_bytes():
            seen.update(chunk)
            size += len(chunk)
    assert seen.hexdigest() == put.json()["sha256"] == got.headers["x-workspace-sha256"]
    middle = await http.get(
        "/v1/file", params={"path": "/outputs/big.bin"}, headers={"range": "bytes=1048570-1048585"}
    )
    assert middle.content == (piece * 2)[1048570:1048586]


async def test_a_body_that_is_no_text_is_refused_and_nothing_stays(
    http: httpx.AsyncClient, ws: Workspace
) -> None:
    answer = await http.put("/v1/file", params=AT | {"kind": "text"}, content=b"ok\xff")
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_CONTENT")
    answer = await http.put("/v1/file", params=AT | {"kind": "json"}, content=b'{"a":')
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_CONTENT")
    deep = b"[" * 100_000
    answer = await http.put("/v1/file", params=AT | {"kind": "json"}, content=deep)
    assert answer.status_code == 400
    assert (
        await http.post("/v1/write", content=deep, headers={"content-type": "application/json"})
    ).status_code == 400
    assert await ws.stat(AT["path"]) is None


async def test_old_versions_and_past_trees_have_their_bytes(
    http: httpx.AsyncClient, ws: Workspace, etag: str
) -> None:
    await ws.write(AT["path"], "two")
    old = await http.get("/v1/file", params=AT | {"version": 1})
    assert (old.content, old.headers["etag"], old.headers["x-workspace-version"]) == (
        b"0123456789",
        etag,
        "1",
    )
    assert (await http.get("/v1/file", params=AT | {"at": "1"})).content == b"0123456789"
    assert (
        await http.get("/v1/file", params=AT | {"at": "1"}, headers={"range": "bytes=1-2"})
    ).content == b"12"
    assert (await http.get("/v1/file", params=AT | {"at": "0"})).status_code == 404
    assert (await http.get("/v1/file", params=AT | {"at": "99"})).status_code == 400
    assert (await http.get("/v1/file", params=AT | {"at": "1", "version": 1})).status_code == 400
    assert (await http.get("/v1/file", params=AT | {"version": 9})).json()[
        "code"
    ] == "VERSION_NOT_FOUND"
    await ws.delete(AT["path"])
    assert (await http.get("/v1/file", params=AT | {"version": 2})).content == b"two"
    gone = await http.get("/v1/file", params=AT | {"version": 3})
    assert gone.status_code == 404, gone.text
    assert (await http.get("/v1/file", params={"path": "/workspace"})).json()[
        "code"
    ] == "FILE_NOT_FOUND"
    assert (await http.get("/v1/file", params={"path": "/workspace/a.txt/"})).json()[
        "code"
    ] == "INVALID_PATH"


async def test_a_stream_that_cannot_begin_is_a_problem(
    http: httpx.AsyncClient, ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ws.write("/outputs/big.bin", b"\x00" * 1_000_000)

    async def broken(*_: object, **__: object) -> AsyncIterator[bytes]:
        if ws.id:
            raise StorageError("The asset store is away.")
        yield b""

    assets = ws._core.assets
    assert assets is not None
    monkeypatch.setattr(type(assets), "stream", broken)
    answer = await http.get("/v1/file", params={"path": "/outputs/big.bin"})
    assert (answer.status_code, answer.json()["code"]) == (503, "STORE_UNAVAILABLE")


async def test_text_in_its_file_goes_as_utf8(http: httpx.AsyncClient, ws: Workspace) -> None:
    await ws.write("/workspace/ü ?&#%.md", "grüße")
    got = await http.get("/v1/file", params={"path": "/workspace/ü ?&#%.md"})
    assert (got.text, got.headers["content-type"]) == ("grüße", "text/markdown; charset=utf-8")
    await ws.write("/workspace/a.json", {"ä": 1.5})
    got = await http.get("/v1/file", params={"path": "/workspace/a.json"})
    assert (got.content, got.headers["x-workspace-kind"]) == ('{"ä":1.5}'.encode(), "json")
    assert (await http.get("/v1/file", params={"path": "/workspace/empty"})).status_code == 404
    await ws.write("/workspace/empty", "")
    got = await http.get(
        "/v1/file", params={"path": "/workspace/empty"}, headers={"range": "bytes=0-"}
    )
    assert got.status_code == 416
    assert (await http.get("/v1/file", params={"path": "/workspace/empty"})).content == b""


async def test_a_condition_that_a_route_cannot_judge_is_refused(
    http: httpx.AsyncClient, ws: Workspace
) -> None:
    file = await ws.write("/workspace/a.txt", "one")
    stale = {"if-match": f'"{"0" * 32}.7"'}
    for route, body in (
        ("rename", {"src": "/workspace/a.txt", "dst": "/workspace/b.txt"}),
        ("move", {"src": "/workspace/a.txt", "dst": "/workspace/b.txt"}),
        ("copy", {"src": "/workspace/a.txt", "dst": "/workspace/b.txt"}),
        ("transaction", {"operations": [{"verb": "delete", "path": "/workspace/a.txt"}]}),
        ("transaction/begin", {}),
        ("gc", {"dry_run": False}),
    ):
        answer = await http.post(f"/v1/{route}", json=body, headers=stale)
        assert answer.status_code == 400, (route, answer.text)
    twice = {"path": "/workspace/a.txt", "content": "x", "if_version": 1}
    answer = await http.post("/v1/write", json=twice, headers=stale)
    assert answer.status_code == 400, answer.text
    assert await ws.stat("/workspace/a.txt") == file
    assert not await ws.exists("/workspace/b.txt")


@pytest.mark.parametrize("route", ["append", "write", "update", "put", "delete"])
async def test_a_repeated_change_with_if_match_is_told_its_first_answer(
    http: httpx.AsyncClient, ws: Workspace, route: str
) -> None:
    file = await ws.write("/workspace/a.txt", "one")
    headers = {"if-match": f'"{file.id}.1"', "idempotency-key": "k"}

    async def ask() -> httpx.Response:
        if route == "put":
            return await http.put("/v1/file", params=AT, content=b"two", headers=headers)
        if route == "delete":
            return await http.delete("/v1/file", params=AT, headers=headers)
        body = {"text": "two"} if route == "append" else {"content": "two"}
        return await http.post(f"/v1/{route}", json=AT | body, headers=headers)

    first, again = await ask(), await ask()
    assert first.status_code == again.status_code in (200, 204), again.text
    assert first.content == again.content
    assert [entry.version for entry in await ws.history("/workspace/a.txt")] == [2, 1]
    other = await http.post(
        "/v1/write", json=AT | {"content": "x"}, headers={"if-match": headers["if-match"]}
    )
    assert other.status_code == 412


@pytest.mark.parametrize(
    "given", [[("idempotency-key", "%fe")], [("idempotency-key", "%zz")], [("idempotency-key", "")],
              [("idempotency-key", "a"), ("idempotency-key", "b")], [("workspace-actor", "%ff")]],
)  # fmt: skip
async def test_a_malformed_label_is_refused(
    http: httpx.AsyncClient, ws: Workspace, given: list[tuple[str, str]]
) -> None:
    answer = await http.post(
        "/v1/append", json=AT | {"text": "x"}, headers=[*http.headers.items(), *given]
    )
    assert answer.status_code == 400, answer.text
    assert not await ws.exists("/workspace/a.txt")


async def test_a_transactions_answer_is_bounded(http: httpx.AsyncClient, ws: Workspace) -> None:
    await ws.write("/workspace/a.txt", "x" * 5_000_000)
    one = {"verb": "read", "path": "/workspace/a.txt", "max_inline_bytes": 10_000_000}
    answer = await http.post("/v1/transaction", json={"operations": [one] * 4})
    assert (answer.status_code, answer.json()["code"]) == (413, "COMMIT_TOO_LARGE"), answer.text


async def test_a_repeated_change_is_told_its_answer_again_whatever_the_file_is_by_now(
    http: httpx.AsyncClient, ws: Workspace
) -> None:
    at = "/workspace/a.md"
    for number in range(2):
        file = await ws.write(at, "one")
        condition = ("*", f'"{file.id}.{file.version}", "{"0" * 32}.7"')[number]
        key = {"if-match": condition, "idempotency-key": f"delete-{number}"}
        for _ in range(2):  # the file is gone by the second time
            answer = await http.delete("/v1/file", params={"path": at}, headers=key)
            assert answer.status_code == 204, answer.text
        fresh = key | {"idempotency-key": f"fresh-{number}"}
        for headers in (fresh, {"if-match": condition}):
            answer = await http.delete("/v1/file", params={"path": at}, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (412, "VERSION_CONFLICT")
        file = await ws.write(at, "one")
        await ws.write(at, "two", if_version=file)
        condition_of = {"if-match": "*", "idempotency-key": f"edit-{number}"}
        body = {"path": at, "find": "two", "replace": "three"}
        first = await http.post("/v1/edit", json=body, headers=condition_of)
        await ws.delete(at)
        again = await http.post("/v1/edit", json=body, headers=condition_of)
        assert (first.status_code, again.json()) == (200, first.json())
        other = await http.post("/v1/edit", json=body | {"replace": "four"}, headers=condition_of)
        assert other.status_code == 400  # the key was used for another request
