"""Two processes that serve one database work together: events, keys, and who holds a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from crux_workspace.errors import ConflictError
from crux_workspace.http import HttpWorkspace
from tests.server.test_events import following, nth
from tests.support.services import service_process

A, B = "/workspace/a.md", "/workspace/b.md"


@pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres])],
)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that two processes can serve."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'work.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
async def both(store: str) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """A client of each of two processes."""
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(2):
            served = await stack.enter_async_context(service_process(store, "--write"))
            client = httpx.AsyncClient(base_url=served.url, timeout=30)
            clients.append(await stack.enter_async_context(client))
        yield clients[0], clients[1]


@pytest.mark.timeout(120)
async def test_two_processes_serve_one_database(
    both: tuple[httpx.AsyncClient, httpx.AsyncClient],
) -> None:
    first, second = both
    # What one commits, subscribers of the other hear, and a cursor of one is good at the other.
    async with following(second, poll_interval_ms=20) as events:
        _, cursor, _ = await nth(events, "ready")
        made = await first.post("/v1/write", json={"path": A, "content": "one"})
        _, _, event = await nth(events, "change")
        assert (event["path"], event["version"], made.status_code) == (A, 1, 200)
    async with following(first, {"last-event-id": str(cursor)}) as events:
        assert (await nth(events, "change"))[2]["path"] == A

    # A key that was used at one is known at the other.
    body, key = {"path": A, "text": "two"}, {"idempotency-key": "k"}
    answers = [await each.post("/v1/append", json=body, headers=key) for each in both]
    assert answers[0].json() == answers[1].json()
    answers = [
        await each.post(
            "/v1/transaction",
            json={"operations": [{"verb": "append", "path": B, "text": "b"}]},
            headers={"idempotency-key": "t"},
        )
        for each in both
    ]
    assert [answer.json()["replayed"] for answer in answers] == [False, True]
    assert (await second.get("/v1/file", params={"path": A})).text == "onetwo"
    assert (await first.get("/v1/file", params={"path": B})).text == "b"

    # Versions of one are preconditions of the other.
    tag = (await first.get("/v1/file", params={"path": A})).headers["etag"]
    changes = [
        await each.put("/v1/file", params={"path": A}, content=b"x", headers={"if-match": tag})
        for each in both
    ]
    assert [change.status_code for change in changes] == [200, 412]

    # A transaction that is held open belongs to the process that began it.
    begun = await first.post("/v1/transaction/begin", json={})
    inside = {"workspace-transaction": begun.json()["transaction"]}
    for path, given in (("write", {"path": B, "content": "x"}), ("transaction/commit", {})):
        answer = await second.post(f"/v1/{path}", json=given, headers=inside)
        assert (answer.status_code, answer.json()["code"]) == (409, "TRANSACTION_CLOSED"), path
        assert answer.json()["hint"]
    change = await first.post("/v1/write", json={"path": B, "content": "x"}, headers=inside)
    ended = await first.post("/v1/transaction/commit", json={}, headers=inside)
    assert [change.status_code, ended.status_code] == [200, 200]
    assert (await second.get("/v1/file", params={"path": B})).text == "x"


async def test_a_client_whose_requests_are_spread_is_told_so(
    both: tuple[httpx.AsyncClient, httpx.AsyncClient],
) -> None:
    """As behind a balancer that does not keep the requests of one client together."""
    turn = 0

    async def spread(request: httpx.Request) -> None:
        nonlocal turn
        turn += 1
        request.url = request.url.copy_with(port=both[turn % 2].base_url.port)

    hooks = {"request": [spread]}
    async with (
        httpx.AsyncClient(event_hooks=hooks) as client,
        HttpWorkspace(str(both[0].base_url), client=client) as ws,
    ):
        await ws.write(A, "one")
        assert await ws.read_text(A) == "one"
        with pytest.raises(ConflictError) as refused:
            async with ws.transaction() as tx:
                await tx.write(A, "two")
        assert refused.value.code == "TRANSACTION_CONFLICT"
        assert await ws.read_text(A) == "one"
        await asyncio.gather(*(ws.append(B, "x") for _ in range(6)))
        assert await ws.read_text(B) == "xxxxxx"
