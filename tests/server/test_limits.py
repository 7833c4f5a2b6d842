"""Clients that send too much, too slowly or not at all cannot hold the service up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from crux_workspace import ContentOptions, Workspace, open_workspace
from crux_workspace.engine.gathering import gather
from crux_workspace.errors import InvalidInputError
from crux_workspace.server import ServiceLimits, dispatching, exchange
from crux_workspace.server.dispatching import Service
from tests.server.conftest import SECRET
from tests.support.services import serving, token_of
from tests.watch.conftest import until

AUTH = f"authorization: Bearer {SECRET}\r\n".encode()
PUT = b"PUT /v1/file?path=/workspace/a.bin HTTP/1.1\r\nhost: x\r\n" + AUTH


@asynccontextmanager
async def limited(ws: Workspace, **limits: Any) -> AsyncIterator[httpx.AsyncClient]:
    token = token_of(SECRET, access="readwrite", all_namespaces=True)
    async with (
        serving(ws, tokens=[token], limits=ServiceLimits(**limits)) as url,
        httpx.AsyncClient(
            base_url=url, headers={"authorization": f"Bearer {SECRET}"}, timeout=10
        ) as client,
    ):
        yield client


@asynccontextmanager
async def connected(
    client: httpx.AsyncClient,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    parts = urlsplit(str(client.base_url))
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def everything(reader: asyncio.StreamReader) -> bytes:
    try:
        return await asyncio.wait_for(reader.read(-1), 5)
    except ConnectionResetError:
        return b""


async def test_bodies_above_their_limit_are_refused(ws: Workspace) -> None:
    async with limited(ws, max_body_bytes=1_000, max_json_bytes=500) as client:
        at = {"path": "/workspace/a.bin"}
        assert (await client.put("/v1/file", params=at, content=b"x" * 1_000)).status_code == 201
        told = await client.put("/v1/file", params=at, content=b"x" * 1_001)
        assert (told.status_code, told.json()["code"]) == (413, "FILE_TOO_LARGE")

        async def unannounced() -> AsyncIterator[bytes]:
            for _ in range(100):
                yield b"x" * 100

        told = await client.put("/v1/file", params=at, content=unannounced())
        assert (told.status_code, told.json()["code"]) == (413, "FILE_TOO_LARGE")
        told = await client.put("/v1/file", params=at | {"kind": "json"}, content=b"1" * 501)
        assert told.status_code == 413
        told = await client.post("/v1/write", json=at | {"content": "x" * 500})
        assert told.status_code == 413
        assert len(await ws.history("/workspace/a.bin")) == 1


async def test_large_bodies_share_what_memory_they_may_take(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []
    plain = Service.hold

    def hold(self: Service, size: int) -> None:
        plain(self, size)
        held.append(size)

    monkeypatch.setattr(Service, "hold", hold)
    head = b"POST /v1/write HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n" + AUTH
    async with limited(ws, max_held_bytes=100_000) as client:
        async with connected(client) as (_, writer):
            writer.write(head + b"content-length: 90000\r\n\r\n" + b" " * 80_000)
            await until(lambda: sum(held) == 80_000)
            body = {"path": "/workspace/a", "content": "x" * 30_000}
            answer = await client.post("/v1/write", json=body)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        await until(lambda: sum(held) == 0)
        assert (await client.post("/v1/write", json=body)).status_code == 200
        kind = {"content-type": "application/json"}
        for _ in range(5):  # what was refused holds nothing
            answer = await client.post("/v1/write", content=b"[" * 60_000, headers=kind)
            assert answer.status_code == 400
        assert (await client.post("/v1/write", json=body)).status_code == 200


async def test_a_client_that_is_still_sending_is_told_why(ws: Workspace) -> None:
    at = {"path": "/workspace/a.bin"}
    async with limited(ws, max_body_bytes=100_000) as client:
        for size in (2_000_000, 40_000_000):
            told = await client.put("/v1/file", params=at, content=b"x" * size)
            assert (told.status_code, told.json()["code"]) == (413, "FILE_TOO_LARGE"), size
            assert told.headers["connection"] == "close"

        async def unannounced() -> AsyncIterator[bytes]:
            for _ in range(300):
                yield b"x" * 100_000

        told = await client.put("/v1/file", params=at, content=unannounced())
        assert (told.status_code, told.json()["code"]) == (413, "FILE_TOO_LARGE")
        async with connected(client) as (reader, writer):
            writer.write(PUT + b"content-length: 8000000\r\n\r\n" + b"x" * 200_000)
            answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
            assert answer.startswith(b"HTTP/1.1 413")  # it comes while the client is sending
            for _ in range(78):
                writer.write(b"x" * 100_000)
                await writer.drain()
            problem = await everything(reader)  # and the connection ends without a reset
        assert b"FILE_TOO_LARGE" in problem
        assert await ws.stat("/workspace/a.bin") is None


async def test_a_refused_client_that_sends_without_end_is_cut_off(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "_LINGER_BYTES", 3_000_000)
    async with limited(ws, max_body_bytes=1_000) as client, connected(client) as (_, writer):
        writer.write(PUT + b"content-length: 99999999999\r\n\r\n")
        with pytest.raises(ConnectionError):
            for _ in range(100_000):
                writer.write(b"x" * 100_000)
                await asyncio.wait_for(writer.drain(), 5)


async def test_who_asks_before_sending_is_not_told_to_send_in_vain(ws: Workspace) -> None:
    async with limited(ws, max_body_bytes=1_000) as client, connected(client) as (reader, writer):
        writer.write(PUT + b"expect: 100-continue\r\ncontent-length: 99999\r\n\r\n")
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
        assert answer.startswith(b"HTTP/1.1 413"), answer


async def test_a_body_that_lies_about_its_end_costs_nothing(ws: Workspace) -> None:
    async with limited(ws, max_body_bytes=10_000) as client:
        async with connected(client) as (reader, writer):
            writer.write(PUT + b"content-length: 99999999999\r\n\r\nxxx")
            answer = await everything(reader)
        assert answer.startswith(b"HTTP/1.1 413")
        assert b"connection: close" in answer


async def test_queries_headers_and_operations_are_bounded(ws: Workspace) -> None:
    async with limited(ws, max_query_bytes=300, max_header_bytes=2_000, max_operations=2) as client:
        assert (await client.get("/v1/grep", params={"query": "x" * 400})).status_code == 414
        answer = await client.get("/v1/list", headers={"x-long": "x" * 2_500})
        assert answer.status_code == 431
        write = {"verb": "write", "path": "/workspace/a", "content": "x"}
        answer = await client.post("/v1/transaction", json={"operations": [write] * 3})
        assert (answer.status_code, answer.json()["code"]) == (413, "COMMIT_TOO_LARGE")
        async with connected(client) as (reader, writer):
            writer.write(b"GET /v1/list HTTP/1.1\r\n")
            for _ in range(100):
                writer.write(b"x-more: " + b"y" * 100 + b"\r\n")
                await asyncio.sleep(0)
            assert (await everything(reader)).startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize(
    "sent", [b"", b"GET /v1/li", b"GET /v1/list HTTP/1.1\r\nhost: x\r\n", b"\r\n\r\n"]
)
async def test_a_connection_without_a_request_is_let_go(ws: Workspace, sent: bytes) -> None:
    async with limited(ws, idle_seconds=0.2) as client, connected(client) as (reader, writer):
        writer.write(sent)
        assert (await everything(reader)).startswith(b"HTTP/1.1 408")


async def test_a_body_that_stops_is_let_go_and_nothing_is_written(ws: Workspace) -> None:
    async with limited(ws, idle_seconds=0.2) as client:
        for head in (
            b"content-length: 100\r\n\r\nabc",
            b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        ):
            async with connected(client) as (reader, writer):
                writer.write(PUT + head)
                answer = await everything(reader)
            assert answer.startswith(b"HTTP/1.1 408"), answer
        assert await ws.stat("/workspace/a.bin") is None


async def test_a_body_that_crawls_is_let_go(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_LINGER_S", 0.3)
    async with limited(ws, idle_seconds=0.3, slowest_bytes_per_second=10_000) as client:
        async with connected(client) as (reader, writer):
            writer.write(PUT + b"content-length: 1000\r\n\r\n")

            async def crawl() -> None:
                while not writer.is_closing():
                    writer.write(b"x")
                    await asyncio.sleep(0.05)

            crawling = asyncio.ensure_future(crawl())
            answer = await everything(reader)
            crawling.cancel()
        assert answer.startswith(b"HTTP/1.1 408"), answer


async def test_an_upload_that_breaks_off_leaves_nothing(ws: Workspace) -> None:
    async with limited(ws) as client:
        async with connected(client) as (_, writer):
            writer.write(PUT + b"content-length: 100000\r\n\r\n" + b"x" * 70_000)
            await writer.drain()
        async with connected(client) as (reader, writer):
            writer.write(PUT + b"content-length: 100000\r\n\r\n" + b"x" * 70_000)
            writer.write_eof()
            await everything(reader)
        await asyncio.sleep(0.1)
        assert await ws.stat("/workspace/a.bin") is None
        assert await ws.log() == []
        assert (await client.get("/v1/list")).status_code == 200


async def test_a_reader_that_stops_is_let_go(ws: Workspace) -> None:
    await ws.write("/workspace/big.bin", b"\x00" * 30_000_000)
    async with (
        limited(ws, idle_seconds=0.3, max_requests=1) as client,
        connected(client) as (reader, writer),
    ):
        writer.write(
            b"GET /v1/file?path=/workspace/big.bin HTTP/1.1\r\nhost: x\r\n" + AUTH + b"\r\n"
        )
        await reader.read(1_000)
        assert (await client.get("/v1/list")).status_code == 503
        for _ in range(50):
            await asyncio.sleep(0.1)
            if (answer := await client.get("/v1/list")).status_code == 200:
                break
        assert answer.status_code == 200
        assert len(await everything(reader)) < 30_000_000


async def test_a_client_that_closes_its_half_gets_its_answer(ws: Workspace) -> None:
    body = b'{"path": "/workspace/a.md", "content": "x"}'
    head = b"POST /v1/write HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n" + AUTH
    async with limited(ws) as client, connected(client) as (reader, writer):
        writer.write(head + f"content-length: {len(body)}\r\n\r\n".encode() + body)
        writer.write_eof()
        answer = await everything(reader)
    assert answer.startswith(b"HTTP/1.1 200"), answer


async def test_more_requests_than_it_works_on_come_again(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = asyncio.Event()
    asked: list[Workspace] = []
    plain = Workspace.stat

    async def slow(self: Workspace, *args: Any, **options: Any) -> Any:
        asked.append(self)
        await waiting.wait()
        return await plain(self, *args, **options)

    monkeypatch.setattr(Workspace, "stat", slow)
    async with limited(ws, max_requests=2) as client:
        at = {"path": "/workspace/a"}
        held = [asyncio.ensure_future(client.get("/v1/stat", params=at)) for _ in range(2)]
        await until(lambda: len(asked) == 2)
        answer = await client.get("/v1/list")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["retryable"] is True
        assert (await client.get("/healthz")).status_code == 200
        waiting.set()
        assert [one.status_code for one in await asyncio.gather(*held)] == [200, 200]
        assert (await client.get("/v1/list")).status_code == 200


async def test_a_request_that_takes_too_long_is_told_so(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(*_: object, **__: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(Workspace, "stat", slow)
    async with limited(ws, request_seconds=0.2) as client:
        answer = await client.get("/v1/stat", params={"path": "/workspace/a"})
        assert (answer.status_code, answer.json()["code"]) == (504, "STORE_TIMEOUT")
        assert "Idempotency-Key" in answer.json()["hint"]


async def test_streams_and_connections_are_counted(ws: Workspace) -> None:
    async with limited(ws, max_streams=1, max_connections=3) as client:
        async with client.stream("GET", "/v1/events") as stream:
            assert stream.status_code == 200
            answer = await client.get("/v1/events")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            async with connected(client), connected(client) as (second, _):
                assert (await everything(second)).startswith(b"HTTP/1.1 503")
        await asyncio.sleep(0.1)
        async with client.stream("GET", "/v1/events") as stream:
            assert stream.status_code == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_requests": 0},
        {"idle_seconds": -1},
        {"max_body_bytes": 1.5},
        {"max_streams": True},
        {"idle_seconds": "1"},
    ],
)
def test_wrong_limits_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        ServiceLimits(**wrong)


async def test_what_does_not_end_is_cut_off_when_the_service_stops(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = asyncio.Event()

    async def endless(*_: object, **__: object) -> None:
        begun.set()
        await asyncio.sleep(60)

    monkeypatch.setattr(Workspace, "stat", endless)
    async with asyncio.timeout(10), limited(ws, shutdown_seconds=0.2) as client:
        at = {"path": "/workspace/a"}
        asking = asyncio.ensure_future(client.get("/v1/stat", params=at))
        await begun.wait()
    with pytest.raises(httpx.TransportError):
        await asking


@pytest.mark.parametrize("content", ["x" * 90_000, "line\n" * 20_000, {"a": "x" * 90_000}])
async def test_a_read_gathers_no_more_than_it_may(content: Any) -> None:
    """Whatever the client says that it wants inline."""
    at = {"path": "/workspace/large"}
    small = "/workspace/small"
    for inline in (0, 1 << 20):  # in the asset store, and in the record
        async with (
            open_workspace(
                "memory://", content=ContentOptions(inline_text_below_bytes=inline)
            ) as ws,
            limited(ws, max_read_bytes=50_000, max_held_bytes=100_000) as client,
        ):
            await ws.write(at["path"], content)
            await ws.write(small, "y" * 30_000)
            everything_of_it = {"max_inline_bytes": str((1 << 63) - 1)}
            asked: list[tuple[str, dict[str, str]]] = [
                ("content", at | everything_of_it),
                ("content", at | everything_of_it | {"version": "1"}),
                ("content", at | {"start_line": "1"}),
                ("file", at | {"form": "text"}),
                ("file", at | {"form": "json"}),
                ("diff", at | {"from_version": "1", "to_version": "1"}),
            ]
            begun = await client.post("/v1/transaction/begin", json={})
            inside = {"workspace-transaction": begun.json()["transaction"]}
            answers = [await client.get(f"/v1/{route}", params=given) for route, given in asked]
            answers += [
                await client.get("/v1/file", params=at, headers=inside),
                await client.get("/v1/content", params=asked[0][1], headers=inside),
                await client.post("/v1/read_many", json={"paths": [at["path"]]}),
                await client.post("/v1/read_many", json={"paths": [small, f"{small}/", small]}),
                await client.post(
                    "/v1/transaction",
                    json={"operations": [{"verb": "read", "path": small}] * 2},
                ),
            ]
            for answer in answers:
                if answer.request.url.path == "/v1/read_many" and answer.status_code == 400:
                    continue  # a slash behind a file
                told = answer.json()
                assert (answer.status_code, told["code"]) == (413, "FILE_TOO_LARGE"), answer.url
                assert told["details"]["limit"] == 50_000
            if isinstance(content, str):
                given = at | {"max_inline_bytes": "40000"}
                piece = await client.get("/v1/content", params=given)
                assert (piece.status_code, piece.json()["truncated"]) == (200, True)
                lines = await client.get(
                    "/v1/content", params=at | {"start_line": "1", "end_line": "1"}
                )
                assert lines.status_code == (413 if "\n" not in content or inline else 200)
            whole = await client.get("/v1/file", params=at)  # it is streamed
            assert (whole.status_code, len(whole.content) > 50_000) == (200, True)
            for _ in range(5):  # nothing stays held
                assert (await client.get("/v1/content", params={"path": small})).status_code == 200


async def test_reads_share_what_memory_they_may_take(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = {"path": "/workspace/a", "max_inline_bytes": "60000"}
    await ws.write(at["path"], "x" * 60_000)
    going, asked = asyncio.Event(), asyncio.Event()
    plain = dispatching.Service.hold

    def hold(self: dispatching.Service, size: int) -> None:
        plain(self, size)
        if size == 60_000:
            asked.set()

    async def slow(*_: object, **__: object) -> Any:
        gather("/workspace/a", 60_000)
        await going.wait()

    monkeypatch.setattr(dispatching.Service, "hold", hold)
    async with limited(ws, max_held_bytes=100_000) as client:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Workspace, "stat", slow)
            held = asyncio.ensure_future(client.get("/v1/stat", params={"path": "/workspace/a"}))
            await asked.wait()
        answer = await client.get("/v1/content", params=at)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        going.set()
        assert (await held).status_code == 200
        assert (await client.get("/v1/content", params=at)).status_code == 200


async def begun_by(client: httpx.AsyncClient) -> dict[str, str]:
    answer = await client.post("/v1/transaction/begin", json={})
    assert answer.status_code == 201, answer.text
    return {"workspace-transaction": answer.json()["transaction"]}


async def test_a_transaction_holds_no_more_than_one_may(ws: Workspace) -> None:
    for number in range(300):
        await ws.write(f"/workspace/many/{number}", "x" * 1_000)
    await ws.write("/workspace/big", "x" * 60_000)

    def write(path: str, size: int) -> dict[str, Any]:
        return {"path": f"/workspace/{path}", "content": "x" * size}

    async with limited(ws, max_transaction_bytes=200_000, max_uploaded_bytes=500_000) as client:
        cases: list[list[tuple[str, dict[str, Any]]]] = [
            [("write", write(str(number), 60_000)) for number in range(9)],
            [("write", write("same", 60_000)), *[("write", write("same", 60_000))] * 8],
            [("write", write(f"e{number}", 0)) for number in range(300)],
            [("read_many", {"paths": [f"/workspace/many/{n}" for n in range(300)]})],
            [("copy", {"src": "/workspace/many", "dst": "/workspace/copy"})],
            [("append", {"path": "/workspace/big", "text": "y"}) for _ in range(3)]
            + [("copy", {"src": "/workspace/big", "dst": f"/workspace/c{n}"}) for n in range(9)],
        ]
        for number, steps in enumerate(cases):
            inside = await begun_by(client)
            answers = [
                await client.post(f"/v1/{verb}", json=body, headers=inside) for verb, body in steps
            ]
            codes = [answer.json().get("code") for answer in answers]
            if number == 1:  # the same file again: what it was before is let go of
                assert codes == [None] * 9
                await client.post("/v1/transaction/rollback", json={}, headers=inside)
                continue
            assert "COMMIT_TOO_LARGE" in codes, (number, codes)
            refused = answers[codes.index("COMMIT_TOO_LARGE")]
            assert (refused.status_code, refused.json()["details"]["limit"]) == (413, 200_000)
            late = await client.post("/v1/transaction/commit", json={}, headers=inside)
            assert (late.status_code, late.json()["code"]) == (409, "TRANSACTION_CLOSED")
        inside = await begun_by(client)
        told = [
            await client.put(
                "/v1/file",
                params={"path": f"/workspace/{number}.bin"},
                content=b"x" * 200_000,
                headers=inside,
            )
            for number in range(3)
        ]
        assert [one.status_code for one in told] == [201, 201, 413]
        assert told[-1].json()["details"]["limit"] == 500_000
        assert (await ws.log(limit=1))[0].sequence == 301
        assert (await ws.gc()).assets == 0  # what was uploaded is gone


async def test_all_transactions_together_hold_no_more_than_they_may(ws: Workspace) -> None:
    async with limited(ws, max_staged_bytes=200_000) as client:
        held = [await begun_by(client) for _ in range(4)]
        body = {"path": "/workspace/a", "content": "x" * 60_000}
        answers = [await client.post("/v1/write", json=body, headers=inside) for inside in held]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 503]
        assert answers[-1].headers["retry-after"] == "1"
        ends = [
            await client.post("/v1/transaction/rollback", json={}, headers=inside)
            for inside in held
        ]
        assert [end.status_code for end in ends] == [204, 204, 204, 409]
        inside = await begun_by(client)
        assert (await client.post("/v1/write", json=body, headers=inside)).status_code == 200
