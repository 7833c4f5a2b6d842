"""What lets a client be exact: numbered steps, commits told again, text and JSON forms, updates, places of quiet watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from crux_workspace import Workspace
from crux_workspace.api.transaction import TransactionRequest
from crux_workspace.server.dispatching import Service
from tests.watch.conftest import until

A = "/workspace/a.md"


async def _begun(http: httpx.AsyncClient) -> dict[str, str]:
    answer = await http.post("/v1/transaction/begin", json={})
    return {"workspace-transaction": answer.json()["transaction"]}


async def test_a_step_that_is_sent_again_is_staged_once(
    http: httpx.AsyncClient, ws: Workspace
) -> None:
    inside = await _begun(http)

    async def append(step: str, text: str) -> httpx.Response:
        body = {"path": A, "text": text}
        return await http.post("/v1/append", json=body, headers={**inside, "workspace-step": step})

    first = await append("1", "one\n")
    assert (await append("1", "one\n")).content == first.content
    assert (await append("5", "two\n")).status_code == 200
    refused = await http.post(
        "/v1/edit", json={"path": A, "find": "x", "replace": "y"}, headers={**inside, "workspace-step": "6"}
    )  # fmt: skip
    again = await http.post(
        "/v1/edit", json={"replace": "y", "find": "x", "path": A}, headers={**inside, "workspace-step": "6"}
    )  # fmt: skip
    assert (refused.status_code, again.content) == (422, refused.content)
    for step in ("5", "0", "-1", "x", "99999999999"):
        assert (await append(step, "no\n")).status_code == 400, step
    for _ in range(2):
        ended = await http.post("/v1/transaction/commit", json={}, headers=inside)
        assert ended.json()["commit"]["sequence"] == 1
    assert await ws.read_text(A) == "one\ntwo\n"
    assert len(await ws.log()) == 1
    late = await append("7", "late")
    assert (late.status_code, late.json()["code"]) == (409, "TRANSACTION_CLOSED")


async def test_a_number_belongs_to_one_request(http: httpx.AsyncClient, ws: Workspace) -> None:
    inside = await _begun(http)
    numbered = {**inside, "workspace-step": "1"}
    body = {"path": A, "content": {"a": 1, "b": [2]}}
    first = await http.post("/v1/write", json=body, headers=numbered)
    turned = {"content": {"b": [2], "a": 1}, "path": A}
    assert (await http.post("/v1/write", json=turned, headers=numbered)).content == first.content
    for route, other, more in (
        ("write", body | {"content": {"a": 1, "b": [3]}}, {}),
        ("write", body | {"mime_type": "text/plain"}, {}),
        ("write", body | {"path": "/workspace/b.md"}, {}),
        ("write", body, {"if-match": "*"}),
        ("set", {"path": A}, {}),
        ("delete", {"path": A}, {}),
    ):
        answer = await http.post(f"/v1/{route}", json=other, headers={**numbered, **more})
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_ARGUMENT"), route
    numbered["workspace-step"] = "2"
    at = {"path": "/workspace/c.bin"}
    for content, status in ((b"one", 201), (b"one", 201), (b"two", 400), (b"", 400)):
        answer = await http.put("/v1/file", params=at, content=content, headers=numbered)
        assert answer.status_code == status, (content, answer.text)
    answer = await http.put("/v1/file", params={"path": A}, content=b"one", headers=numbered)
    assert answer.status_code == 400
    ends: list[tuple[dict[str, Any], dict[str, str], int]] = [
        ({}, {}, 200),
        ({}, {}, 200),
        ({"verb": "import"}, {}, 400),
        ({}, {"idempotency-key": "k"}, 400),
    ]
    for end, more, status in ends:
        answer = await http.post("/v1/transaction/commit", json=end, headers={**inside, **more})
        assert answer.status_code == status, answer.text
    assert await ws.read_json(A) == {"a": 1, "b": [2]}
    assert await ws.read_bytes("/workspace/c.bin") == b"one"
    assert len(await ws.log()) == 1


async def test_a_step_whose_upload_broke_off_can_be_sent_again(
    http: httpx.AsyncClient, ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {**(await _begun(http)), "workspace-step": "1"}

    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionAbortedError

    ended: list[int] = []
    plain = Service.hold

    def hold(self: Service, size: int) -> None:
        plain(self, size)
        if size <= 0:  # a request lets go of what it held
            ended.append(size)

    monkeypatch.setattr(Service, "hold", hold)
    with pytest.raises(ConnectionAbortedError):
        await http.put("/v1/file", params={"path": A}, content=broken(), headers=headers)
    await until(lambda: len(ended) == 1)
    put = await http.put("/v1/file", params={"path": A}, content=b"whole", headers=headers)
    assert (put.status_code, put.json()["size"]) == (201, 5), put.text
    assert (await http.post("/v1/transaction/commit", json={}, headers=headers)).status_code == 200
    assert await ws.read_bytes(A) == b"whole"
    assert len(await ws.history(A)) == 1


async def test_who_asks_while_a_commit_is_on_its_way_waits_for_its_end(
    http: httpx.AsyncClient, ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not be told that nothing was applied: a client would do it all again."""
    inside = await _begun(http)
    await http.post("/v1/write", json={"path": A, "content": "x"}, headers=inside)
    going, begun = asyncio.Event(), asyncio.Event()
    plain = TransactionRequest.end

    async def slow(self: Any, *args: Any, **options: Any) -> None:
        begun.set()
        await going.wait()
        await plain(self, *args, **options)

    monkeypatch.setattr(TransactionRequest, "end", slow)

    async def commit() -> httpx.Response:
        return await http.post("/v1/transaction/commit", json={}, headers=inside)

    lost = asyncio.ensure_future(commit())
    await begun.wait()
    lost.cancel()
    again = [asyncio.ensure_future(commit()) for _ in range(3)]
    await asyncio.sleep(0.1)
    assert not any(each.done() for each in again)
    going.set()
    answers = [(await each).json() for each in again]
    assert [answer["commit"]["sequence"] for answer in answers] == [1, 1, 1]
    assert len(await ws.log()) == 1


async def test_a_commit_that_conflicts_is_told_again(
    http: httpx.AsyncClient, ws: Workspace
) -> None:
    inside = await _begun(http)
    await http.post("/v1/write", json={"path": A, "content": "mine"}, headers=inside)
    await ws.write(A, "theirs")
    answers = [await http.post("/v1/transaction/commit", json={}, headers=inside) for _ in range(2)]
    assert [answer.json()["code"] for answer in answers] == ["TRANSACTION_CONFLICT"] * 2
    assert answers[0].json()["details"] == answers[1].json()["details"]


async def test_a_commit_takes_its_key_and_verb_late(http: httpx.AsyncClient, ws: Workspace) -> None:
    for body, headers, verb in (
        ({"verb": "import"}, {}, "import"),
        ({}, {"idempotency-key": "k%201"}, "transaction"),
    ):
        inside = await _begun(http)
        await http.post("/v1/append", json={"path": A, "text": "x"}, headers=inside)
        await http.post("/v1/transaction/commit", json=body, headers={**inside, **headers})
        assert (await ws.log(limit=1))[0].verb == verb
    known = await http.post("/v1/transaction/begin", json={}, headers={"idempotency-key": "k 1"})
    assert known.json()["replayed"]["sequence"] == 2


@pytest.mark.parametrize(
    ("content", "form", "body"),
    [
        ({"a": [1, 2.0]}, "bytes", b'{"a":[1,2.0]}'),
        ({"a": [1, 2.0]}, "json", b'{"a":[1,2.0]}'),
        ({"a": 1}, "text", b'{\n  "a": 1\n}\n'),
        ("[1]", "json", b"[1]"),
        ("\u00e9\r\n", "text", b"\xc3\xa9\r\n"),
        (b"\x00", "text", None),
        ("no JSON", "json", None),
    ],
)
async def test_a_file_comes_in_the_form_that_is_asked_for(
    http: httpx.AsyncClient, ws: Workspace, content: Any, form: str, body: bytes | None
) -> None:
    await ws.write(A, content)
    inside = await _begun(http)
    for headers in ({}, inside):
        got = await http.get("/v1/file", params={"path": A, "form": form}, headers=headers)
        if body is None:
            assert got.json()["code"] in ("BINARY_CONTENT", "INVALID_CONTENT")
        else:
            assert got.content == body


async def test_an_update_keeps_attributes_and_is_remembered(
    http: httpx.AsyncClient, ws: Workspace
) -> None:
    seen = await ws.write(A, "one", metadata={"m": 1}, kind="note")
    key = {"idempotency-key": "k"}
    nothing = await http.post("/v1/update", json={"path": A}, headers=key)
    assert nothing.json() is None
    body = {"path": A, "content": "two", "if_version": f"{seen.id}.{seen.version}"}
    made = (await http.post("/v1/update", json=body, headers=key)).json()
    assert (made["version"], made["metadata"], made["artifact_kind"]) == (2, {"m": 1}, "note")
    known = await http.post("/v1/update", json={"path": A}, headers=key)
    assert known.json() == made
    stale = await http.post("/v1/update", json=body)
    assert (stale.status_code, stale.json()["code"]) == (409, "VERSION_CONFLICT")


async def test_a_body_is_put_on_the_version_that_the_query_names(
    http: httpx.AsyncClient, ws: Workspace
) -> None:
    file = await ws.write(A, "one")
    for expected, status in (("0", 409), ("1", 200), (f"{file.id}.2", 200), (f"{file.id}.2", 409)):
        params = {"path": A, "kind": "text", "if_version": expected}
        put = await http.put("/v1/file", params=params, content=b"x")
        assert put.status_code == status, expected
    gone = await http.post("/v1/delete", json={"path": A, "if_version": 2})
    assert gone.json()["code"] == "VERSION_CONFLICT"
    assert (await http.post("/v1/delete", json={"path": A, "if_version": 3})).json() is None
