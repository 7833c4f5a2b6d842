"""Changes as server-sent events: none missed, none twice, whatever happens to the connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx

from crux_workspace import Retention, Workspace, open_workspace
from crux_workspace.server import ServiceLimits
from tests.server.conftest import SECRET
from tests.support.services import serving, token_of

Event = tuple[str, str | None, dict[str, Any]]


async def events_of(stream: httpx.Response) -> AsyncIterator[Event]:
    name, cursor = "", None
    async for line in stream.aiter_lines():
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("id: "):
            cursor = line[4:]
        elif line.startswith("data: "):
            yield name, cursor, json.loads(line[6:])
        elif line.startswith(":"):
            yield "comment", None, {}
        elif not line:
            name, cursor = "", None


@asynccontextmanager
async def following(
    http: httpx.AsyncClient, headers: dict[str, str] | None = None, **params: Any
) -> AsyncIterator[AsyncIterator[Event]]:
    async with http.stream("GET", "/v1/events", params=params, headers=headers or {}) as stream:
        assert stream.status_code == 200, await stream.aread()
        assert stream.headers["content-type"].startswith("text/event-stream")
        yield events_of(stream)


async def nth(events: AsyncIterator[Event], wanted: str) -> Event:
    async with asyncio.timeout(10):
        async for event in events:
            if event[0] == wanted:
                return event
    raise AssertionError(f"no {wanted}")


async def test_it_is_ready_first_and_then_tells_every_change(
    http: httpx.AsyncClient, ws: Workspace
) -> None:
    async with following(http) as events:
        _, cursor, data = await nth(events, "ready")
        assert data == {"cursor": cursor}
        await ws.write("/workspace/a.md", "one")
        await ws.rename("/workspace/a.md", "/outputs/a.md")
        await ws.delete("/outputs/a.md")
        seen = [await nth(events, "change") for _ in range(3)]
    assert [event[2]["type"] for event in seen] == ["create", "rename", "delete"]
    assert [event[1] for event in seen] == [event[2]["cursor"] for event in seen]
    assert [entry.cursor for entry in await ws.log()] == [event[1] for event in reversed(seen)]


async def test_paths_choose(http: httpx.AsyncClient, ws: Workspace) -> None:
    async with (
        following(http, path="/workspace/a.md") as one,
        following(http, path="/outputs", recursive="true") as below,
    ):
        await nth(one, "ready")
        await nth(below, "ready")
        for path in ("/workspace/b.md", "/outputs/x/y.md", "/workspace/a.md"):
            await ws.write(path, "x")
        assert (await nth(one, "change"))[2]["path"] == "/workspace/a.md"
        assert (await nth(below, "change"))[2]["path"] == "/outputs/x/y.md"


async def test_whoever_comes_again_with_its_last_id_misses_nothing(
    http: httpx.AsyncClient, ws: Workspace
) -> None:
    """The connection is cut at every place; writers go on all the time."""
    written = 60

    async def write() -> None:
        for number in range(0, written, 3):
            async with ws.transaction() as tx:
                for each in range(number, number + 3):
                    await tx.write(f"/workspace/{each:03}.md", str(each))
            await asyncio.sleep(0.002)

    start = (await http.get("/v1/cursor")).json()["cursor"]
    writing = asyncio.ensure_future(write())
    seen: list[str] = []
    last = start
    cuts = 0
    while len(seen) < written:
        take = cuts % 7 + 1
        async with following(http, headers={"last-event-id": last}) as events:
            with suppress(TimeoutError):
                async with asyncio.timeout(5):
                    async for name, cursor, data in events:
                        if cursor is not None:
                            last = cursor
                        if name == "change":
                            seen.append(data["path"])
                            take -= 1
                        if take == 0 or len(seen) == written:
                            break
        cuts += 1
    await writing
    assert seen == [f"/workspace/{number:03}.md" for number in range(written)]
    assert cuts > 10


async def test_silence_is_filled(ws: Workspace) -> None:
    async with (
        serving(ws, write=True, limits=ServiceLimits(heartbeat_seconds=0.1)) as url,
        httpx.AsyncClient(base_url=url) as client,
        following(client) as events,
    ):
        await nth(events, "ready")
        for _ in range(3):
            await nth(events, "comment")
        await ws.write("/workspace/a.md", "x")
        assert (await nth(events, "change"))[2]["path"] == "/workspace/a.md"


async def test_lost_events_are_told_as_a_gap() -> None:
    async with (
        open_workspace("memory://", retention=Retention(log_ms=1)) as ws,
        serving(ws, write=True) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        await ws.write("/workspace/a.md", "x")
        cursor = await ws.cursor()
        for number in range(20):
            await ws.write("/workspace/a.md", str(number))
        await asyncio.sleep(0.01)
        await ws.gc(dry_run=False)
        async with following(client, cursor=cursor) as events:
            _, place, data = await nth(events, "gap")
            assert data["code"] == "WATCH_GAP"
            assert place is not None
            assert [event async for event in events] == []
        async with following(client, cursor=place) as events:
            await nth(events, "ready")
            await ws.write("/workspace/a.md", "after the gap")
            assert (await nth(events, "change"))[2]["path"] == "/workspace/a.md"
        async with following(client, start="oldest") as events:
            await nth(events, "ready")


async def test_a_stream_ends_with_the_service(ws: Workspace) -> None:
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {SECRET}"}) as client:
        async with serving(ws, tokens=[token_of(SECRET)]) as url:
            client.base_url = httpx.URL(url)
            stream = await client.send(client.build_request("GET", "/v1/events"), stream=True)
            events = events_of(stream)
            await nth(events, "ready")
        assert [event async for event in events] == []
    assert not ws._core.watches or all(watch.stopped for watch in ws._core.watches)


async def test_a_client_that_left_leaves_no_watch(http: httpx.AsyncClient, ws: Workspace) -> None:
    async with following(http) as events:
        await nth(events, "ready")
        assert len([watch for watch in ws._core.watches if not watch.stopped]) == 1
    for _ in range(100):
        if not [watch for watch in ws._core.watches if not watch.stopped]:
            break
        await asyncio.sleep(0.02)
    assert [watch for watch in ws._core.watches if not watch.stopped] == []
