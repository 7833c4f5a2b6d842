"""Two files change places between any two reads of a request: what is judged, what headers tell of, and what is sent are of one file."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from crux_workspace import Mount, Workspace, WorkspaceFile, workspace
from crux_workspace.storage.memory import MemoryAssetStore, MemoryRecordStore
from tests.support.services import serving, token_of
from tests.support.slow_stores import Gaps, TurningRecordStore, turn

HIDDEN = "zzhidden"
AT, AWAY, BETWEEN = "/outputs/a.md", f"/{HIDDEN}/a.md", "/workspace/between.md"
MOUNTS = [Mount("/workspace"), Mount("/outputs"), Mount(f"/{HIDDEN}")]
SECRETS = {"whole": "a-secret-for-the-whole", "part": "a-secret-for-a-part"}


@dataclass
class Exchanging:
    """A served workspace, and two files in it that change places at a moment of one's choice."""

    ws: Workspace
    """Another way to its store, without gaps."""
    store: TurningRecordStore
    clients: dict[str, httpx.AsyncClient]

    async def exchange(self) -> None:
        """Let the files change places."""
        async with self.ws.transaction() as tx:
            await tx.rename(AT, BETWEEN)
            await tx.rename(AWAY, AT)
            await tx.rename(BETWEEN, AWAY)

    async def renew(self, contents: dict[str, list[Any]]) -> dict[str, WorkspaceFile]:
        """Make files anew, with these versions each; returns their first ones."""
        made = {}
        for path, versions in contents.items():
            if await self.ws.exists(path):
                await self.ws.delete(path, purge=True)
            made[path] = await self.ws.write(path, versions[0], status="final")
            for content in versions[1:]:
                await self.ws.write(path, content)
        return made

    async def in_each_gap(
        self, who: str, method: str, route: str, **request: Any
    ) -> AsyncIterator[Callable[[], Awaitable[httpx.Response]]]:
        """Give ways to send a request, during which the files are exchanged in its first gap, its second, and so on to its last."""
        for number in itertools.count(1):
            gaps = Gaps(number, self.exchange)

            async def send(gaps: Gaps = gaps) -> httpx.Response:
                self.store.gap = gaps
                try:
                    return await self.clients[who].request(method, f"/v1/{route}", **request)
                finally:
                    self.store.gap = turn

            yield send
            if gaps.count < number:
                return


@pytest.fixture
async def exchanging() -> AsyncIterator[Exchanging]:
    inner, assets = MemoryRecordStore(), MemoryAssetStore()
    store = TurningRecordStore(inner)
    options: dict[str, Any] = {
        "id": "w",
        "namespace": "n",
        "assets": assets,
        "mounts": MOUNTS,
    }
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(workspace(records=store, **options))
        ws = await stack.enter_async_context(workspace(records=inner, **options))
        tokens = [
            token_of(SECRETS["whole"], name="whole", access="readwrite"),
            token_of(SECRETS["part"], name="part", access="readwrite", mounts=["/outputs"]),
        ]
        url = await stack.enter_async_context(serving(served, tokens=tokens))
        clients = {
            name: await stack.enter_async_context(
                httpx.AsyncClient(base_url=url, headers={"authorization": f"Bearer {secret}"})
            )
            for name, secret in SECRETS.items()
        }
        yield Exchanging(ws, store, clients)


@pytest.mark.parametrize(
    ("method", "route", "request_of"),
    [
        ("GET", "content", {"params": {"version": "1"}}),
        ("GET", "file", {"params": {"version": "1"}}),
        ("GET", "file", {"params": {"version": "1", "form": "text"}}),
        ("GET", "diff", {"params": {"from_version": "1", "to_version": "2"}}),
        ("GET", "artifacts", {}),
        ("POST", "finalize", {"json": {"version": 1}}),
        ("POST", "undo", {"json": {"to_version": 1}}),
        ("POST", "undo", {"json": {}}),
    ],
)
@pytest.mark.parametrize("exchanged_before", [False, True])
async def test_a_version_is_judged_by_the_very_file_that_is_read(
    exchanging: Exchanging,
    method: str,
    route: str,
    request_of: dict[str, Any],
    exchanged_before: bool,
) -> None:
    for part in request_of.values():
        part["path"] = AT
    statuses = set()
    async for send in exchanging.in_each_gap("part", method, route, **request_of):
        await exchanging.renew({AT: ["one", "two"], AWAY: [f"{HIDDEN} one", "two"]})
        if exchanged_before:
            await exchanging.exchange()
        answer = await send()
        assert HIDDEN not in answer.text, answer.text
        statuses.add(answer.status_code)
    assert 200 in statuses


@pytest.mark.parametrize("size", [1_000, 400_000])
async def test_the_bytes_are_those_that_the_headers_tell_of(
    exchanging: Exchanging, size: int
) -> None:
    contents = {AT: [b"a" * size], AWAY: [b"b" * size]}
    made = await exchanging.renew(contents)
    files = {f'"{made[path].id}.1"': data for path, [data] in contents.items()}
    for who, more in itertools.product(SECRETS, ({}, {"version": "1"})):
        seen = set()
        params = {"path": AT, **more}
        async for send in exchanging.in_each_gap(who, "GET", "file", params=params):
            answer = await send()
            if answer.status_code == 200:
                assert answer.content == files[answer.headers["etag"]]
            else:  # a part of the tree names no version of what came from outside
                assert (who, answer.status_code) == ("part", 404)
            seen.add(answer.headers.get("etag"))
        assert len(seen) == 2
