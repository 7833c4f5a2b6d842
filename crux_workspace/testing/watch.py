"""`WatchContract`: what watching has to do on a given storage.

Certify a store by subclassing it with a `storage` fixture::

    class TestWatchingMyStore(WatchContract):
        @pytest_asyncio.fixture
        async def storage(self):
            async with MyStore.connect(URL) as records:
                yield storage(records=records)

        @pytest_asyncio.fixture
        async def elsewhere(self):              # optional: another way to the same data, as another process has it
            async with MyStore.connect(URL) as records:
                yield storage(records=records)
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from crux_workspace import local_runtime, workspace
from crux_workspace.errors import ErrorCode, WatchGapError

if TYPE_CHECKING:
    from crux_workspace import WatchHandle, Workspace, WorkspaceChangeEvent
    from crux_workspace.storage import Storage

__all__ = ["WatchContract"]

A = "/workspace/a.md"
WITHIN_S = 20.0
POLL_MS = 20


async def _take(handle: WatchHandle, count: int) -> list[WorkspaceChangeEvent]:
    async with asyncio.timeout(WITHIN_S):
        return [await anext(handle) for _ in range(count)]


@pytest.mark.asyncio
class WatchContract:
    """Checks of watching; subclass it and give a `storage` fixture."""

    @pytest.fixture
    def storage(self) -> Storage:
        """Return the storage to certify."""
        message = "override the `storage` fixture with a Storage to certify"
        raise NotImplementedError(message)

    @pytest.fixture
    def elsewhere(self, storage: Storage) -> Storage:
        """Return another way to the same data."""
        return storage

    @pytest_asyncio.fixture
    async def make(self) -> AsyncIterator[Callable[[Storage], Workspace]]:
        """Make workspaces over a storage; they are closed at the end."""
        made: list[Workspace] = []
        fresh = f"contract-{secrets.token_hex(6)}"
        async with local_runtime() as runtime:

            def build(storage: Storage, **options: Any) -> Workspace:  # noqa: ANN401 - of workspace()
                chosen = {"id": fresh, "namespace": "n:1", "storage": storage, **options}
                made.append(workspace(**chosen, runtime=runtime))
                return made[-1]

            yield build
            for one in made:
                await one.aclose()

    @pytest.fixture
    def ws(self, make: Callable[[Storage], Workspace], storage: Storage) -> Workspace:
        """Return the workspace that is watched."""
        return make(storage)

    @pytest.fixture
    def other(self, make: Callable[[Storage], Workspace], elsewhere: Storage) -> Workspace:
        """Return a workspace that somebody else writes with."""
        return make(elsewhere)

    async def test_each_commit_of_others_arrives_once_and_in_order(
        self, ws: Workspace, other: Workspace
    ) -> None:
        """Judge: each commit of others arrives once and in order."""
        async with ws.watch(recursive=True, poll_interval_ms=POLL_MS) as feed:
            await feed.ready()
            for number in range(20):
                await (ws if number % 3 else other).append(A, f"{number}\n")
            events = await _take(feed, 20)
        assert [event.sequence for event in events] == list(range(1, 21))
        assert [event.version for event in events] == list(range(1, 21))

    async def test_commits_at_once_arrive_in_the_order_of_the_log(
        self, ws: Workspace, other: Workspace
    ) -> None:
        """Judge: commits at once arrive in the order of the log."""
        async with ws.watch(recursive=True, poll_interval_ms=POLL_MS) as feed:
            await feed.ready()
            await asyncio.gather(
                *((ws, other)[n % 2].write(f"/workspace/{n}", "x") for n in range(10))
            )
            events = await _take(feed, 10)
        log = [(one.sequence, one.changes[0].path) for one in reversed(await ws.log())]
        assert [(event.sequence, event.path) for event in events] == log

    async def test_a_transaction_arrives_whole_and_by_path(
        self, ws: Workspace, other: Workspace
    ) -> None:
        """Judge: a transaction arrives whole and by path."""
        async with ws.watch(recursive=True, poll_interval_ms=POLL_MS) as feed:
            await feed.ready()
            async with other.transaction() as tx:
                await tx.write("/workspace/b", "x")
                await tx.write(A, "x")
            await other.rename(A, "/workspace/c")
            events = await _take(feed, 3)
        assert [(event.sequence, event.path) for event in events] == [
            (1, A),
            (1, "/workspace/b"),
            (2, "/workspace/c"),
        ]
        assert (events[2].type, events[2].from_path) == ("rename", A)

    async def test_a_watch_goes_on_behind_its_cursor(self, ws: Workspace, other: Workspace) -> None:
        """Judge: a watch goes on behind its cursor."""
        for number in range(6):
            await ws.write(A, str(number))
        async with ws.watch(start="oldest", poll_interval_ms=POLL_MS) as feed:
            first = await _take(feed, 2)
        await other.write(A, "6")
        async with other.watch(cursor=first[-1].cursor, poll_interval_ms=POLL_MS) as feed:
            rest = await _take(feed, 5)
        assert [event.sequence for event in rest] == [3, 4, 5, 6, 7]

    async def test_only_what_is_asked_for_arrives(self, ws: Workspace, other: Workspace) -> None:
        """Judge: only what is asked for arrives."""
        async with ws.watch("/workspace/in", recursive=True, poll_interval_ms=POLL_MS) as feed:
            await feed.ready()
            await other.write("/workspace/out", "x")
            await other.write("/workspace/in/1", "x")
            await other.write("/workspace/in/1", "x", namespace="n:2")
            await other.write("/workspace/in/2", "x")
            events = await _take(feed, 2)
        assert [event.path for event in events] == ["/workspace/in/1", "/workspace/in/2"]
        assert {event.namespace for event in events} == {"n:1"}

    async def test_a_namespace_that_begins_anew_is_a_gap(
        self, ws: Workspace, other: Workspace
    ) -> None:
        """Judge: a namespace that begins anew is a gap."""
        for number in range(3):
            await ws.write(A, str(number))
        async with ws.watch(start="oldest", poll_interval_ms=POLL_MS) as feed:
            last = (await _take(feed, 3))[-1]
        await other.drop_namespace("n:1")
        for number in range(5):
            await other.write(A, str(number))
        async with ws.watch(cursor=last.cursor, poll_interval_ms=POLL_MS) as feed:
            with pytest.raises(WatchGapError) as gap:
                await _take(feed, 1)
            assert gap.value.code == ErrorCode.WATCH_GAP
            assert [event.sequence for event in await _take(feed, 5)] == [1, 2, 3, 4, 5]
