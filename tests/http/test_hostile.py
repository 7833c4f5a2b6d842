"""Answers that are wrong on purpose: whatever a service sends, what is raised is one of ours, bounded, and without the token."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from crux_workspace.errors import (
    ErrorCode,
    InvalidInputError,
    PermissionDeniedError,
    StorageError,
    WorkspaceError,
)
from crux_workspace.http import HttpWorkspace
from crux_workspace.http.connection import MAX_ANSWER_BYTES
from crux_workspace.http.problems import KIND_OF, MAX_PROBLEM_BYTES, error_of_problem
from crux_workspace.testing.workspace import refused

TOKEN = "a-secret-token-of-mine"  # noqa: S105 - of the tests
A = "/workspace/a.md"
Answer = Callable[[httpx.Request], httpx.Response]

CALLS: dict[str, Callable[[HttpWorkspace], Awaitable[Any]]] = {
    "open": lambda ws: ws.open(),
    "write": lambda ws: ws.write(A, "x"),
    "put": lambda ws: ws.write(A, "x" * 400_000),
    "edit": lambda ws: ws.edit(A, "a", "b"),
    "update": lambda ws: ws.update(A, str),
    "rename": lambda ws: ws.rename(A, "/workspace/b"),
    "finalize": lambda ws: ws.finalize(A),
    "list": lambda ws: ws.list(),
    "walk": lambda ws: anext(ws.walk()),
    "read": lambda ws: ws.read(A),
    "read_many": lambda ws: ws.read_many([A]),
    "read_json": lambda ws: ws.read_json(A),
    "stat": lambda ws: ws.stat(A),
    "exists": lambda ws: ws.exists(A),
    "grep": lambda ws: ws.grep("x"),
    "history": lambda ws: ws.history(A),
    "diff": lambda ws: ws.diff(A),
    "artifacts": lambda ws: ws.artifacts(),
    "log": lambda ws: ws.log(),
    "undo_commit": lambda ws: ws.undo_commit("1-a"),
    "cursor": lambda ws: ws.cursor(),
    "usage": lambda ws: ws.usage(),
    "namespaces": lambda ws: ws.namespaces(),
    "gc": lambda ws: ws.gc(),
    "delete": lambda ws: ws.delete(A),
    "drop_namespace": lambda ws: ws.drop_namespace("n"),
    "read_bytes": lambda ws: ws.read_bytes(A),
    "read_text": lambda ws: ws.read_text(A),
    "stream": lambda ws: anext(ws.stream(A)),
    "stream of nothing": lambda ws: anext(ws.stream(A, length=0), None),
    "resolve": lambda ws: ws.resolve("x"),
    "transaction": lambda ws: ws.transaction().__aenter__(),
    "watch": lambda ws: ws.watch().ready(),
}


def client(answer: Answer, *, own: bool = True, **options: Any) -> HttpWorkspace:
    """Make a client of something that answers, by default as the service's own."""

    def answered(request: httpx.Request) -> httpx.Response:
        response = answer(request)
        if own:
            response.headers["x-workspace-service"] = "1"
        return response

    transport = httpx.MockTransport(answered)
    return HttpWorkspace(
        "https://files.test/base",
        **{
            "token": TOKEN,
            "max_attempts": 1,
            "client": httpx.AsyncClient(transport=transport),
            **options,
        },
    )


def always(response: Callable[[], httpx.Response]) -> Answer:
    return lambda _: response()


JSON = {"content-type": "application/json"}
BAD: dict[str, Callable[[], httpx.Response]] = {
    "HTML": lambda: httpx.Response(200, text="<html>"),
    "nothing": lambda: httpx.Response(200),
    "deep": lambda: httpx.Response(200, text="[" * 100_000, headers=JSON),
    "a number": lambda: httpx.Response(200, json=7),
    "a list of numbers": lambda: httpx.Response(200, json=[7]),
    "an object": lambda: httpx.Response(200, json={"kind": ["file"], "path": 1}),
    "wrong fields": lambda: httpx.Response(
        200,
        json={
            "kind": "file",
            "path": A,
            "version": "1",
            "entries": [{}],
            "matches": {},
            "exists": 1,
        },
    ),
    "no UTF-8": lambda: httpx.Response(200, content=b'"\xff"', headers=JSON),
    "compressed": lambda: httpx.Response(
        200, content=gzip.compress(b"null"), headers={"content-encoding": "gzip"}
    ),
    "an empty list": lambda: httpx.Response(200, json=[]),
    "null": lambda: httpx.Response(200, text="null", headers=JSON),
    "no content": lambda: httpx.Response(204),
    "a proxy's word": lambda: httpx.Response(200, json={"status": "ok"}),
    "a part": lambda: httpx.Response(206, text="part", headers={"content-range": "bytes 0-3/9"}),
    "accepted": lambda: httpx.Response(202, json=[]),
    "JSON by another name": lambda: httpx.Response(200, text="[]"),
    "not modified": lambda: httpx.Response(304),
    "teapot": lambda: httpx.Response(418, text="no"),
    "a problem of lies": lambda: httpx.Response(400, json={"code": "NO_SUCH_CODE", "details": 1}),
}


GOOD_FOR = {
    "an empty list": {"history", "artifacts", "log"},
    "null": {"stat", "delete"},
    "no content": {"drop_namespace"},
}
"""Calls that each of these is an answer to."""


BYTES = {"read_bytes", "read_text", "stream", "stream of nothing", "resolve"}
"""Calls that any body of the service's own is an answer to."""
NO_JSON = {"HTML", "nothing", "deep", "no UTF-8", "compressed"}


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("bad", BAD)
async def test_an_answer_that_is_none_is_corrupt(bad: str, own: bool) -> None:
    good = GOOD_FOR.get(bad, set())
    if BAD[bad]().status_code == 200:
        good = good | BYTES | (set() if bad in NO_JSON else {"read_json"})
    for name in CALLS.keys() - (good if own else set()):
        call = CALLS[name]
        ws = client(always(BAD[bad]), own=own)
        with pytest.raises(StorageError) as caught:
            pytest.fail(f"{name} took it for {await call(ws)!r}")
        assert caught.value.code == ErrorCode.RECORD_CORRUPT, name
        await ws.aclose()


async def test_what_came_instead_is_told() -> None:
    page = httpx.Response(203, text="<html>", headers=[(b"content-type", b"text/html; x=\xff")])
    for answer, told in (
        (page, "status 203 with no content type instead of JSON"),
        (httpx.Response(200, html="<html>"), "status 200 with text/html; charset=utf-8 instead of"),
        (httpx.Response(204), "status 204 with no content type instead of a file's bytes"),
    ):
        ws = client(lambda _, answer=answer: answer)  # type: ignore[misc]
        with pytest.raises(StorageError, match=re.escape(told)):
            await (ws.read_bytes(A) if "bytes" in told else ws.stat(A))
        await ws.aclose()


OWN = {"x-workspace-version": "2", "x-workspace-kind": "text", "etag": f'"{"0" * 32}.2"'}


def part(span: str, body: bytes = b"part", version: str = "2") -> httpx.Response:
    """Make an answer that is a part of a file."""
    headers = {**OWN, "content-range": span, "x-workspace-version": version}
    return httpx.Response(206, content=body, headers=headers)


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (lambda: part("bytes 0-3/9"), {}),
        (lambda: part("bytes 0-3/9"), {"offset": 5}),
        (lambda: part("bytes 5-7/9"), {"offset": 5}),
        (lambda: part("bytes 5-8/9"), {"offset": 5, "length": 2}),
        (lambda: part("bytes 5-8/*"), {"offset": 5}),
        (lambda: part(""), {"offset": 5}),
        (lambda: part("bytes 5-8/9", b"ab"), {"offset": 5}),
        (lambda: part("bytes 5-8/9", b""), {"offset": 5}),
    ],
)
async def test_a_part_that_was_not_asked_for_is_refused(
    answer: Callable[[], httpx.Response], wanted: dict[str, int]
) -> None:
    ws = client(lambda _: answer())
    with refused(ErrorCode.RECORD_CORRUPT):
        assert not [chunk async for chunk in ws.stream(A, **wanted)]  # type: ignore[arg-type]
    await ws.aclose()


async def test_a_stream_does_not_go_on_in_another_version() -> None:
    async def breaks() -> AsyncIterator[bytes]:
        yield b"begun"
        raise httpx.ReadError("broken")

    def answer(request: httpx.Request) -> httpx.Response:
        if "range" in request.headers:
            return part("bytes 5-8/9", version="3")
        return httpx.Response(200, content=breaks(), headers=OWN)

    ws = client(answer, max_attempts=3)
    with refused(ErrorCode.RECORD_CORRUPT):
        assert not [chunk async for chunk in ws.stream(A)]
    await ws.aclose()


async def test_a_commit_whose_answer_says_nothing_is_not_taken_for_one() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        begins = request.url.path.endswith("begin")
        return httpx.Response(200, json={"transaction": "t"} if begins else {"status": "ok"})

    ws = client(answer)
    with refused(ErrorCode.RECORD_CORRUPT):
        await ws.transaction(lambda tx: tx.verb)
    await ws.aclose()


async def test_a_transaction_is_given_up_after_an_answer_that_is_none() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        begins = request.url.path.endswith("begin")
        return httpx.Response(200, json={"transaction": "t"} if begins else [])

    ws = client(answer)
    tx = await ws.transaction().__aenter__()
    with refused(ErrorCode.RECORD_CORRUPT):
        await tx.delete(A)
    with pytest.raises(StorageError, match="given up"):
        await tx.stat(A)
    await ws.aclose()


async def test_a_redirection_is_not_followed() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(307, headers={"location": "https://evil.test/v1/stat"})

    for follows in (False, True):
        transport = httpx.MockTransport(answer)
        own = httpx.AsyncClient(transport=transport, follow_redirects=follows)
        ws = client(answer, client=own)
        with refused(ErrorCode.STORE_UNAVAILABLE):
            await ws.stat(A)
        await ws.aclose()
        assert not own.is_closed
        await own.aclose()
    assert [request.url.host for request in seen] == ["files.test", "files.test"]
    assert {request.url.path for request in seen} == {"/base/v1/stat"}


async def test_answers_are_bounded() -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1 << 20
            yield b" " * (1 << 20)

    ws = client(lambda _: httpx.Response(500, content=endless()))
    with refused(ErrorCode.STORE_UNAVAILABLE):
        await ws.stat(A)
    assert sent <= MAX_PROBLEM_BYTES + (2 << 20)
    assert sent < MAX_ANSWER_BYTES


async def test_a_busy_service_is_asked_again_as_late_as_it_says() -> None:
    answers = [
        httpx.Response(
            503, json={"code": "STORE_UNAVAILABLE", "retryable": True}, headers={"retry-after": "0"}
        ),
        httpx.Response(502, text="proxy", headers={"retry-after": "soon"}),
        httpx.Response(200, text="null", headers=JSON),
    ]
    ws = client(lambda _: answers.pop(0), max_attempts=3)
    assert await ws.stat(A) is None


async def test_one_key_goes_with_all_attempts_of_a_change() -> None:
    keys: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["idempotency-key"])
        raise httpx.ReadError("gone")

    ws = client(answer, max_attempts=3)
    for _ in range(2):
        with refused(ErrorCode.STORE_UNAVAILABLE) as caught:
            await ws.append(A, "x")
        assert caught.value.details["idempotency_key"] == keys[-1]
    assert len(keys) == 6
    assert len(set(keys)) == 2


@pytest.mark.parametrize("code", ErrorCode)
def test_every_code_comes_back_as_its_class(code: ErrorCode) -> None:
    told = {
        "code": str(code),
        "detail": "what",
        "hint": "how",
        "details": {"n": [1]},
        "retryable": True,
    }
    error = error_of_problem(told)
    assert isinstance(error, KIND_OF[code] if error.code == code else StorageError)
    if error.code == code:
        assert error.to_dict() == {
            "code": str(code), "message": "what", "hint": "how", "details": {"n": [1]}, "retryable": True
        }  # fmt: skip


@pytest.mark.parametrize("status", [401, 403, 407])
async def test_who_is_not_let_in_is_told(status: int) -> None:
    ws = client(lambda _: httpx.Response(status))
    with refused(ErrorCode.PERMISSION_DENIED, PermissionDeniedError) as caught:
        await ws.open()
    assert TOKEN not in json.dumps([repr(ws), repr(caught.value), str(caught.value)])


@pytest.mark.parametrize(
    "base_url",
    [
        "files.test", "ftp://files.test", "https://", "https://user:secret@files.test", "https://files.test?x=1", "https://files.test#x",
        "https://files.test/../x", "https://files.test:99999", "https://files.test/\n", "https://f\u00efles.test", 7,
    ],
)  # fmt: skip
def test_an_address_that_could_lead_elsewhere_is_refused(base_url: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        HttpWorkspace(base_url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"token": ""}, {"token": "two words"}, {"token": "line\nbreak"}, {"token": "\u00fc"}, {"id": ""}, {"namespace": " "},
        {"namespace": 7},
        {"timeout_ms": 0}, {"max_attempts": None}, {"max_attempts": True},
    ],
)  # fmt: skip
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        HttpWorkspace("https://files.test", **options)


async def test_paths_never_reach_the_path_of_the_address() -> None:
    seen: list[httpx.URL] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.url)
        return httpx.Response(200, text="null", headers=JSON)

    ws = client(answer)
    odd = "/workspace/a b&c=d?e#f+g%41/\u00e9\U0001f600"
    await ws.stat(odd, namespace="n&x=1 %2F\u00e9")
    assert seen[0].path == "/base/v1/stat"
    assert dict(seen[0].params) == {"path": odd, "namespace": "n&x=1 %2F\u00e9"}


async def test_no_call_raises_what_is_not_ours() -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        raise httpx.RemoteProtocolError("garbage")

    for call in CALLS.values():
        ws = client(answer)
        if call is CALLS["watch"]:
            continue
        with pytest.raises(WorkspaceError):
            await call(ws)


async def test_bytes_that_do_not_match_their_hash_are_refused() -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=b"other bytes", headers={"x-workspace-sha256": "0" * 64})

    ws = client(answer)
    with refused(ErrorCode.RECORD_CORRUPT):
        await ws.read_bytes(A)
    received = b""
    with refused(ErrorCode.RECORD_CORRUPT):
        async for chunk in ws.stream(A):
            received += chunk
    assert received == b"other bytes"


async def test_a_page_that_leads_nowhere_is_refused() -> None:
    ws = client(lambda _: httpx.Response(200, json={"entries": [], "cursor": "again"}))
    with refused(ErrorCode.RECORD_CORRUPT):
        await ws.list()


async def test_an_event_stream_of_garbage_is_refused() -> None:
    head = b'id: c\nevent: ready\ndata: {"cursor": "c"}\n\n'
    for rest in (
        b"event: change\ndata: {}\n\n",
        b"event: change\ndata: [\n\n",
        b'event: gap\ndata: {"code": "INVALID_PATH", "message": "m"}\n\n',
        b"event: error\ndata: {}\n\n",
    ):
        headers = {"content-type": "text/event-stream"}

        def answer(_: httpx.Request, body: bytes = head + rest) -> httpx.Response:
            return httpx.Response(200, content=body, headers=headers)  # noqa: B023 - the same for all

        ws = client(answer)
        async with ws.watch() as handle:
            with refused(ErrorCode.RECORD_CORRUPT):
                await anext(handle)
        await ws.aclose()


@pytest.mark.parametrize(
    "call",
    [
        lambda ws: ws.grep("\ud800"),
        lambda ws: ws.artifacts(kind="\ud800"),
    ],
)
async def test_a_lone_surrogate_is_a_typed_error(call: Callable[[HttpWorkspace], Any]) -> None:
    with pytest.raises(InvalidInputError):
        await call(HttpWorkspace("http://127.0.0.1:9", max_attempts=1))
