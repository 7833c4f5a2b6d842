"""Several operations as one commit, in one request or over several."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from crux_workspace import Telemetry, Workspace, open_workspace
from crux_workspace.server import ServiceLimits
from tests.server.conftest import SECRET
from tests.support.services import serving, token_of

A, B = "/workspace/a.md", "/workspace/b.md"


async def send(http: httpx.AsyncClient, *operations: dict[str, Any], **more: Any) -> httpx.Response:
    headers = more.pop("headers", {})
    return await http.post(
        "/v1/transaction", json={"operations": operations} | more, headers=headers
    )


def write(path: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"verb": "write", "path": path, "content": content} | more


async def test_all_or_nothing(http: httpx.AsyncClient, ws: Workspace) -> None:
    await ws.write(A, "one")
    refused = await send(http, write(B, "b"), write(A, "two", if_version=7))
    told = refused.json()
    assert (refused.status_code, told["code"], told["details"]["operation"]) == (
        409,
        "VERSION_CONFLICT",
        1,
    )
    refused = await send(
        http, write(B, "b"), {"verb": "edit", "path": A, "find": "none", "replace": "x"}
    )
    assert (refused.status_code, refused.json()["details"]["operation"]) == (422, 1)
    assert await ws.stat(B) is None
    assert len(await ws.log()) == 1
    done = await send(http, write(B, "b"), write(A, "two", if_version=1))
    assert [each["version"] for each in done.json()["results"]] == [1, 2]
    assert len(await ws.log()) == 2


async def test_every_verb_of_a_transaction(http: httpx.AsyncClient, ws: Workspace) -> None:
    at = {"path": A}
    done = await send(
        http,
        write(A, "one"),
        {"verb": "append", "text": "\ntwo"} | at,
        {"verb": "edit", "find": "two", "replace": "2"} | at,
        {"verb": "read"} | at,
        {"verb": "read_many", "paths": [A, B]},
        {"verb": "exists"} | at,
        {"verb": "is_dir", "path": "/workspace"},
        {"verb": "stat"} | at,
        {"verb": "list", "path": "/workspace"},
        {"verb": "grep", "query": "2"},
        {"verb": "set", "kind": "note"} | at,
        {"verb": "finalize"} | at,
        {"verb": "artifacts"},
        {"verb": "withdraw"} | at,
        {"verb": "copy", "src": A, "dst": B},
        {"verb": "rename", "src": B, "dst": "/outputs/b.md"},
        {"verb": "move", "src": "/outputs/b.md", "dst": "/outputs/c.md"},
        {"verb": "delete", "path": "/outputs/c.md"},
        {"verb": "write", "path": "/outputs/x.bin", "content_base64": "AAEC"},
    )
    results = done.json()["results"]
    assert results[3]["content"] == "one\n2"
    assert (results[4][A]["content"], results[4][B]) == ("one\n2", None)
    assert results[5:7] == [True, True]
    assert [results[7]["path"], len(results[8]["entries"]), len(results[9]["matches"])] == [A, 1, 1]
    assert results[17] is None
    assert await ws.read_bytes("/outputs/x.bin") == b"\x00\x01\x02"
    assert [entry.verb for entry in await ws.log()] == ["transaction"]


@pytest.mark.parametrize(
    "operation",
    [
        {},
        {"verb": "undo", "path": A},
        {"verb": 1},
        {"verb": "write", "path": A},
        {"verb": "stat", "path": A, "at": "1"},
        {"verb": "stat", "path": A, "namespace": "x"},
        {"verb": "transaction", "operations": []},
        {"verb": "delete", "path": A, "purge": True},
        {"verb": "copy", "src": A, "dst": B, "to_namespace": "x"},
        {"verb": "__class__"},
        {"verb": "write", "path": A, "content": "x", "idempotency_key": "k"},
    ],
)
async def test_what_cannot_be_in_one_is_refused(
    http: httpx.AsyncClient, ws: Workspace, operation: dict[str, Any]
) -> None:
    await ws.write(A, "x")
    answer = await send(http, write(B, "b"), operation)
    assert answer.status_code == 400, answer.text
    assert answer.json()["details"]["operation"] == 1
    assert await ws.stat(B) is None


async def test_a_repeated_request_takes_effect_once(http: httpx.AsyncClient, ws: Workspace) -> None:
    key = {"idempotency-key": "k1"}
    first = (await send(http, {"verb": "append", "path": A, "text": "x"}, headers=key)).json()
    again = (await send(http, {"verb": "append", "path": A, "text": "x"}, headers=key)).json()
    assert again == {"results": None, "commit": first["commit"], "replayed": True}
    assert await ws.read_text(A) == "x"


async def test_contended_counters_lose_nothing(http: httpx.AsyncClient, ws: Workspace) -> None:
    await ws.write(A, "")

    async def add(number: int) -> int:
        operations = [
            {"verb": "read", "path": A},
            {"verb": "append", "path": A, "text": f"{number}\n"},
        ]
        return (await send(http, *operations, max_attempts=50)).status_code

    assert set(await asyncio.gather(*(add(number) for number in range(20)))) == {200}
    assert sorted((await ws.read_text(A)).split(), key=int) == [str(n) for n in range(20)]


# -- over several requests


async def begin(http: httpx.AsyncClient, **headers: str) -> dict[str, str]:
    answer = await http.post("/v1/transaction/begin", json={}, headers=headers)
    assert answer.status_code == 201, answer.text
    return {"workspace-transaction": answer.json()["transaction"]}


async def test_an_open_one_sees_its_own_changes_only(
    http: httpx.AsyncClient, ws: Workspace
) -> None:
    await ws.write(A, "one")
    inside = await begin(http)
    await http.post("/v1/append", json={"path": A, "text": " two"}, headers=inside)
    put = await http.put(
        "/v1/file", params={"path": B, "kind": "text"}, content=b"b", headers=inside
    )
    assert put.json()["version"] == 1
    told = await http.get("/v1/content", params={"path": A}, headers=inside)
    assert told.json()["content"] == "one two"
    assert (await http.get("/v1/list", params={"path": "/workspace"}, headers=inside)).json()[
        "entries"
    ][1]["path"] == B
    assert (await http.get("/v1/file", params={"path": B}, headers=inside)).content == b"b"
    many = await http.post("/v1/read_many", json={"paths": [A]}, headers=inside)
    assert many.json()["contents"][A]["content"] == "one two"
    assert await ws.stat(B) is None
    done = await http.post("/v1/transaction/commit", json={}, headers=inside)
    assert done.json()["commit"]["sequence"] == 2
    assert await ws.read_text(A) == "one two"
    again = await http.post("/v1/transaction/commit", json={}, headers=inside)
    assert again.json() == done.json()
    late = await http.post("/v1/transaction/rollback", json={}, headers=inside)
    assert (late.status_code, late.json()["code"]) == (409, "TRANSACTION_CLOSED")


async def test_a_conflict_applies_nothing(http: httpx.AsyncClient, ws: Workspace) -> None:
    await ws.write(A, "one")
    inside = await begin(http)
    await http.get("/v1/content", params={"path": A}, headers=inside)
    await http.post("/v1/write", json={"path": B, "content": "b"}, headers=inside)
    await ws.write(A, "meanwhile")
    done = await http.post("/v1/transaction/commit", json={}, headers=inside)
    assert (done.status_code, done.json()["code"]) == (409, "TRANSACTION_CONFLICT")
    assert [each["path"] for each in done.json()["details"]["conflicts"]] == [A]
    assert await ws.stat(B) is None


async def test_preconditions_hold_inside(http: httpx.AsyncClient, ws: Workspace) -> None:
    await ws.write(A, "one")
    inside = await begin(http)
    stale = {"if-match": '"0123456789abcdef0123456789abcdef.1"'}
    answer = await http.put("/v1/file", params={"path": A}, content=b"x", headers=inside | stale)
    assert answer.status_code == 412
    answer = await http.put(
        "/v1/file", params={"path": A}, content=b"x", headers=inside | {"if-none-match": "*"}
    )
    assert (answer.status_code, answer.json()["code"]) == (412, "VERSION_CONFLICT")
    assert (await http.post("/v1/transaction/rollback", json={}, headers=inside)).status_code == 204
    assert await ws.read_text(A) == "one"


async def test_what_it_does_not_offer_is_refused(http: httpx.AsyncClient, ws: Workspace) -> None:
    inside = await begin(http)
    for path in ("history", "diff", "log", "usage", "cursor", "events"):
        answer = await http.get(f"/v1/{path}", params={"path": A}, headers=inside)
        assert answer.status_code == 400, path
    bodies: list[dict[str, Any]] = [{"path": A}, {"operations": []}, {}]
    for body in bodies:
        for path in ("undo", "redo", "gc", "transaction", "transaction/begin"):
            assert (await http.post(f"/v1/{path}", json=body, headers=inside)).status_code == 400
    answer = await http.get("/v1/stat", params={"path": A, "at": "0"}, headers=inside)
    assert answer.status_code == 400
    answer = await http.get("/v1/stat", params={"path": A, "namespace": "other"}, headers=inside)
    assert answer.status_code == 400
    key = {"idempotency-key": "k"}
    answer = await http.post("/v1/write", json={"path": A, "content": "x"}, headers=inside | key)
    assert answer.status_code == 200  # the key belongs to the transaction, not to its parts


async def test_a_key_of_a_whole_transaction(http: httpx.AsyncClient, ws: Workspace) -> None:
    for expected in (None, 1):
        answer = await http.post("/v1/transaction/begin", json={}, headers={"idempotency-key": "k"})
        assert (answer.json()["replayed"] or {}).get("sequence") == expected
        inside = {"workspace-transaction": answer.json()["transaction"]}
        await http.post("/v1/append", json={"path": A, "text": "x"}, headers=inside)
        done = (await http.post("/v1/transaction/commit", json={}, headers=inside)).json()
        assert (done["commit"]["sequence"], done["replayed"]) == (1, expected == 1)
    assert await ws.read_text(A) == "x"


async def test_one_that_is_left_alone_is_dropped(ws: Workspace) -> None:
    token = token_of(SECRET, access="readwrite", all_namespaces=True)
    limits = ServiceLimits(transaction_seconds=1, max_transactions=2)
    async with (
        serving(ws, tokens=[token], limits=limits) as url,
        httpx.AsyncClient(base_url=url, headers={"authorization": f"Bearer {SECRET}"}) as http,
    ):
        inside = await begin(http)
        await http.post("/v1/write", json={"path": A, "content": "x"}, headers=inside)
        await begin(http)
        full = await http.post("/v1/transaction/begin", json={})
        assert (full.status_code, full.headers["retry-after"]) == (429, "1")
        async with asyncio.timeout(20):  # until the first one makes room
            while (  # noqa: ASYNC110 - a service is asked
                await http.post("/v1/transaction/begin", json={})
            ).status_code == 429:
                await asyncio.sleep(0.05)
        late = await http.post("/v1/transaction/commit", json={}, headers=inside)
        assert (late.status_code, late.json()["code"]) == (409, "TRANSACTION_CLOSED")
        assert await ws.stat(A) is None


async def test_a_transaction_over_http_is_one_span() -> None:
    """However it ends."""
    seen = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(seen))
    async with open_workspace("memory://", telemetry=Telemetry(tracer_provider=provider)) as ws:
        limits = ServiceLimits(max_transaction_bytes=50_000)
        async with (
            serving(ws, write=True, limits=limits) as url,
            httpx.AsyncClient(base_url=url) as http,
        ):
            body = {"path": A, "content": "x"}
            for size, end in ((1, "commit"), (1, "rollback"), (60_000, None)):
                inside = await begin(http)
                body = {"path": A, "content": "x" * size}
                await http.post("/v1/write", json=body, headers=inside)
                if end is not None:
                    await http.post(f"/v1/transaction/{end}", json={}, headers=inside)
            conflicting = await begin(http)
            await http.post("/v1/write", json=body | {"content": "y"}, headers=conflicting)
            await ws.write(A, "meanwhile")
            await http.post("/v1/transaction/commit", json={}, headers=conflicting)
            await begin(http)  # and one that the end of the service drops
    ended = [
        (span.attributes or {})["crux.workspace.status"]
        for span in seen.get_finished_spans()
        if (span.attributes or {}).get("crux.workspace.operation") == "transaction"
    ]
    assert ended == ["ok", "cancelled", "cancelled", "error", "cancelled"]
