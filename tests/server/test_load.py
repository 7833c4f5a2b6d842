"""Two hundred connections of mixed work: nobody is refused, nothing fails, and what was written is there."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter

import httpx
import pytest

from crux_workspace import open_workspace
from tests.support.services import Connection, service_process

SECONDS = float(os.environ.get("CRUX_LOAD_SECONDS") or (30 if os.environ.get("CI") else 3))
"""How long it goes on: 30 in CI."""
CONNECTIONS = 200
FILES = 50
Answer = Awaitable[tuple[int, bytes]]


class Client:
    """One connection with its own files; appends are counted."""

    def __init__(self, connection: Connection, number: int) -> None:
        self.ask = connection.ask
        self.number = number
        self.appended = 0
        self.random = random.Random(number)
        self.work: list[tuple[int, str, Callable[[], Answer]]] = [
            (50, "GET /v1/file", lambda: self.ask("GET", "/v1/file", path=self.path())),
            (10, "GET /v1/content", lambda: self.ask("GET", "/v1/content", path=self.path())),
            (8, "GET /v1/list", lambda: self.ask("GET", "/v1/list", path="/workspace")),
            (2, "GET /v1/grep", lambda: self.ask("GET", "/v1/grep", query="file 7")),
            (
                3,
                "GET /v1/history",
                lambda: self.ask("GET", "/v1/history", path=self.path(), limit=5),
            ),
            (12, "POST /v1/write", self.write),
            (8, "POST /v1/append", self.append),
            (4, "PUT /v1/file", self.put),
            (3, "POST /v1/transaction", self.transaction),
        ]

    def path(self) -> str:
        return f"/workspace/{self.random.randrange(FILES)}.md"

    def write(self) -> Answer:
        return self.ask("POST", "/v1/write", body={"path": self.path(), "content": "x" * 1_024})

    def append(self) -> Answer:
        self.appended += 1
        body = {"path": f"/outputs/{self.number}.log", "text": f"{self.appended}\n"}
        return self.ask("POST", "/v1/append", body=body)

    def put(self) -> Answer:
        return self.ask("PUT", "/v1/file", path=f"/outputs/{self.number}.bin", raw=b"\x00" * 20_000)

    def transaction(self) -> Answer:
        operations = [
            {"verb": "write", "path": f"/outputs/{self.number}.{part}", "content": part}
            for part in ("a", "b")
        ]
        return self.ask("POST", "/v1/transaction", body={"operations": operations})


@pytest.mark.slow
@pytest.mark.timeout(60 + 2 * SECONDS)
async def test_two_hundred_connections_of_mixed_work(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'work.db'}?durability=normal"
    async with open_workspace(store) as ws:
        for number in range(FILES):
            await ws.write(f"/workspace/{number}.md", f"file {number}\n" + "x" * 1_000)
    took: dict[str, list[float]] = defaultdict(list)
    statuses: Counter[int] = Counter()
    events = 0

    async def follow(http: httpx.AsyncClient) -> None:
        nonlocal events
        async with http.stream("GET", "/v1/events") as stream:
            async for line in stream.aiter_lines():
                events += line == "event: change"

    async with service_process(store, "--write") as service:

        async def work(number: int) -> Client:
            async with Connection(service.url) as connection:
                client = Client(connection, number)
                weights = [weight for weight, _, _ in client.work]
                until = perf_counter() + SECONDS
                while perf_counter() < until:
                    [(_, name, ask)] = client.random.choices(client.work, weights)
                    began = perf_counter()
                    status, body = await ask()
                    took[name].append(perf_counter() - began)
                    statuses[status] += 1
                    assert status in (200, 201), body
                return client

        async with httpx.AsyncClient(base_url=service.url, timeout=60) as listener:
            following = [asyncio.ensure_future(follow(listener)) for _ in range(3)]
            clients = await asyncio.gather(*(work(number) for number in range(CONNECTIONS)))
            for each in following:
                each.cancel()
            await asyncio.gather(*following, return_exceptions=True)
        assert await service.stop() == 0
    total = sum(statuses.values())
    print(
        f"\n{CONNECTIONS} connections, {SECONDS:g} s: {total / SECONDS:,.0f} requests a second, {events} events"
    )
    for name, values in sorted(took.items()):
        values.sort()
        marks = [values[int(len(values) * share)] * 1_000 for share in (0.5, 0.95, 0.99)]
        shown = "  ".join(f"{mark:8.1f}" for mark in marks)
        print(f"{name:22} {len(values):7}  p50/p95/p99 ms: {shown}")
    assert set(statuses) <= {200, 201}
    assert events > 0
    async with open_workspace(store) as ws:
        for client in clients:
            if client.appended:
                text = await ws.read_text(f"/outputs/{client.number}.log")
                assert text.split() == [str(n) for n in range(1, client.appended + 1)]
