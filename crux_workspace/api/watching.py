"""The methods that follow a namespace's log as it grows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from crux_workspace.api.runner import Runner
from crux_workspace.events.cursors import parse_event_cursor, partition_mark
from crux_workspace.events.forward import find_end
from crux_workspace.events.hub import hub_of
from crux_workspace.events.matching import WatchedPath
from crux_workspace.events.opening import NamespaceSource
from crux_workspace.events.watching import WatchHandle, WatchRequest
from crux_workspace.model.events import OnError, WatchStart, check_watch
from crux_workspace.model.paths import PathLike, normalise_directory_hint
from crux_workspace.operations.space import Space

__all__ = ["WatchMethods"]


class WatchMethods:
    """Watching, and the place to watch from."""

    _runner: Runner

    def watch(
        self,
        path: PathLike | None = None,
        *,
        recursive: bool | None = None,
        cursor: str | None = None,
        start: WatchStart = "tail",
        poll_interval_ms: int = 250,
        limit: int = 100,
        on_error: OnError | None = None,
        namespace: str | None = None,
    ) -> WatchHandle:
        """Follow the changes of a namespace: each event once, in the order of the commits, without a gap.

        Without a cursor it delivers everything that is committed after this call in this process, and after `WatchHandle.ready`
        elsewhere. With a cursor it goes on right behind it, also inside one commit's events, whichever process wrote them. Commits of
        this process are delivered at once, those of others within the poll interval. A slow consumer costs no memory: what it has not
        asked for stays in the store.

        A failing store is asked again, after a delay that doubles up to 5 s. Events that are lost (the cursor is older than the
        retained log, or the log was replaced) are told by a `WatchGapError`, to `on_error` or raised once by the loop; then delivery
        goes on at the oldest event that is left.

        Args:
            path: What to watch; None is the whole tree. A path matches exactly, one that ends in ``/`` the files right in that directory
                and no file of its name. A rename matches by either end; one whose paths were erased by a purge since shows as
                `PURGED_PATH`, and only where the whole tree is watched.
            recursive: Everything below the path matches too; by default only for the whole tree. False with the root stands for the
                files right below it.
            cursor: Go on from here: an event's `cursor`, `WatchHandle.cursor`, `CommitEntry.cursor` or `cursor()`.
            start: Without a cursor begin at the log's end (``tail``) or at the oldest commit that is left (``oldest``).
            poll_interval_ms: How often the store is asked for commits of other processes. One question serves all watches of a
                runtime on one store, as often as the most impatient one wants.
            limit: Most commits read from the store at once, at most 1,000.
            on_error: Called with a `WatchError` for each failure; sync or async.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The watch: enter it with ``async with`` and iterate over it, or give it callbacks. Closing the workspace ends it.

        Raises:
            RuntimeRequiredError: Neither the workspace nor the process has a runtime (``RUNTIME_REQUIRED``).
            InvalidInputError: A malformed cursor (``INVALID_CURSOR``; one of another namespace fails in `WatchHandle.ready` or the
                first step) or a bad option (``INVALID_ARGUMENT``).
            AccessDeniedError: The path is outside all mounts, where nothing is ever told (``OUTSIDE_MOUNTS``).

        Cost:
            pages; 1 read for the commits since the last one, 1 store call a poll, whatever the number of watches

        Example:
            >>> handle = ws.watch("/workspace", recursive=True)
            >>> await ws.write("/workspace/a.md", "hello")
            >>> (await anext(handle)).path
            '/workspace/a.md'
            >>> await handle.stop()
        """
        core = self._runner.core
        core.enter()
        check_watch(
            recursive=recursive,
            start=start,
            on_error=on_error,
            poll_interval_ms=poll_interval_ms,
            limit=limit,
        )
        where, directory = ("/", True) if path is None else normalise_directory_hint(path)
        core.router.browsable(where)
        deep = where == "/" if recursive is None else recursive
        place = None if cursor is None else parse_event_cursor(cursor)
        runtime = core.watch_runtime()
        runtime.check()

        def measure(at: int) -> None:
            core.recorder.metrics.record_watch_lag(core.clock() - at)

        async def opened(work: Callable[[], Awaitable[None]]) -> None:
            await self._runner.observe("watch", path, work)

        handle = WatchHandle(
            WatchRequest(
                workspace_id=core.workspace_id,
                namespace=NamespaceSource(self._watched_namespace(namespace)),
                hub=hub_of(core.records),
                runtime=runtime,
                watched=WatchedPath(where, deep, directory, core.router.shows),
                cursor=place,
                start=start,
                interval_ms=poll_interval_ms,
                limit=limit,
                on_error=on_error,
                opened=opened,
                measure=measure,
            )
        )
        core.watches.add(handle)
        return handle

    async def _watched_namespace(self, namespace: str | None) -> str:
        core = self._runner.core
        named = core.namespace_of(self._runner.bound, namespace)
        resolved = named if isinstance(named, str) else await named
        core.space(resolved, None)
        return resolved

    async def cursor(self, *, namespace: str | None = None) -> str:
        """Return the log's end: take it, read the state, then watch from it, and no change is missed.

        Args:
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The cursor after the last commit; for a namespace that does not exist yet, before its first one.

        Raises:
            StorageError: The store failed (``STORE_UNAVAILABLE``).

        Cost:
            2 reads

        Example:
            >>> place = await ws.cursor()
            >>> handle = ws.watch(cursor=place); await handle.stop()
        """

        async def call(space: Space) -> str:
            ports = space.ports
            return (await find_end(ports.reader, partition_mark(ports.partition))).encode()

        return await self._runner.run("cursor", None, namespace, call)
