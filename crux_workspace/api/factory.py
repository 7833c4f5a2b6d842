"""The composition root: the only place where real parts are chosen and put together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from crux_workspace.api.core import WorkspaceCore
from crux_workspace.api.facade import Workspace
from crux_workspace.errors import InvalidInputError
from crux_workspace.events.runtime import LocalRuntime
from crux_workspace.model.clocks import Clock, IdSource, random_id, wall_clock_ms
from crux_workspace.model.paths import check_namespace, check_workspace_id
from crux_workspace.model.settings import (
    ContentOptions,
    Limits,
    Mount,
    NamespaceSetting,
    Retention,
    ToolOptions,
    Versioning,
)
from crux_workspace.mounts.routing import DEFAULT_MOUNTS, Router
from crux_workspace.storage.assets import AssetStore
from crux_workspace.storage.bundle import Storage, memory_storage
from crux_workspace.storage.records import RecordStore
from crux_workspace.telemetry import OperationRecorder, Telemetry

if TYPE_CHECKING:
    from crux_workspace.api.sync_facade import SyncWorkspace

__all__ = ["WorkspaceOpening", "open_workspace", "open_workspace_sync", "workspace"]


def workspace(
    *,
    id: str,
    namespace: NamespaceSetting = None,
    storage: Storage | None = None,
    records: RecordStore | None = None,
    assets: AssetStore | None = None,
    mounts: Iterable[Mount] = DEFAULT_MOUNTS,
    content: ContentOptions | None = None,
    limits: Limits | None = None,
    retention: Retention | None = None,
    versioning: Versioning | None = None,
    tools: ToolOptions | None = None,
    runtime: LocalRuntime | None = None,
    telemetry: Telemetry | None = None,
    clock: Clock = wall_clock_ms,
    ids: IdSource = random_id,
) -> Workspace:
    """Make a workspace over stores that are open already; no I/O, nothing global.

    The workspace closes none of them: share one storage among any number of workspaces.

    Args:
        id: Name of the workspace, part of every partition; at most 512 bytes.
        namespace: The namespace of calls that name none, or a callable that tells it; None refuses such calls.
        storage: Both stores as a bundle.
        records: The record store, instead of `storage`; in memory if neither is given.
        assets: The asset store; None leaves binary and oversized content refused.
        mounts: Parts of the tree and what may be done there.
        content: What stays inline.
        limits: Ceilings.
        retention: How long things stay.
        versioning: How much history each file keeps.
        tools: Which tools it makes for models.
        runtime: Drives watches and upkeep; None takes the one given to `configure`, if any.
        telemetry: Providers and the key of the path hashes.
        clock: Returns ms since the epoch.
        ids: Returns 32 fresh hex digits.

    Returns:
        The workspace.

    Raises:
        InvalidInputError: A bad id, namespace, mount or option (``INVALID_ARGUMENT``).

    Cost:
        none

    Example:
        >>> research = workspace(id="research", namespace="thread:1")
    """
    for name, value, needed in (
        ("storage", storage, "records"),
        ("records", records, "commit_planned"),
        ("assets", assets, "put"),
    ):
        if value is not None and not hasattr(value, needed):
            raise InvalidInputError(
                f"{name} has no {needed!r}: {type(value).__name__} is not what belongs there.",
                details={"option": name},
            )
    if storage is not None and (records is not None or assets is not None):
        raise InvalidInputError("Give storage, or records and assets, not both.")
    if storage is None:
        storage = memory_storage() if records is None else Storage(records, assets)
    return _assemble(
        id,
        namespace,
        storage.records,
        storage.assets if assets is None else assets,
        close_storage=None,
        mounts=mounts,
        content=content,
        limits=limits,
        retention=retention,
        versioning=versioning,
        tools=tools,
        runtime=runtime,
        telemetry=telemetry,
        clock=clock,
        ids=ids,
    )


def _assemble(
    id: str,
    namespace: NamespaceSetting,
    records: RecordStore,
    assets: AssetStore | None,
    *,
    close_storage: Callable[[], Awaitable[None]] | None,
    owns_runtime: bool = False,
    mounts: Iterable[Mount] = DEFAULT_MOUNTS,
    content: ContentOptions | None = None,
    limits: Limits | None = None,
    retention: Retention | None = None,
    versioning: Versioning | None = None,
    tools: ToolOptions | None = None,
    runtime: LocalRuntime | None = None,
    telemetry: Telemetry | None = None,
    clock: Clock = wall_clock_ms,
    ids: IdSource = random_id,
) -> Workspace:
    check_workspace_id(id)
    for name, value, kind in (
        ("content", content, ContentOptions),
        ("limits", limits, Limits),
        ("retention", retention, Retention),
        ("versioning", versioning, Versioning),
        ("tools", tools, ToolOptions),
        ("telemetry", telemetry, Telemetry),
    ):
        if value is not None and not isinstance(value, kind):
            raise InvalidInputError(
                f"{name} must be {kind.__name__}(...) or None.", details={"option": name}
            )
    if runtime is not None and not isinstance(runtime, LocalRuntime):
        raise InvalidInputError("runtime must be a runtime or None.", details={"option": "runtime"})
    if isinstance(namespace, str):
        check_namespace(namespace)
    elif namespace is not None and not callable(namespace):
        raise InvalidInputError("namespace must be a string, a callable or None.")

    async def load_key() -> bytes:
        from crux_workspace.telemetry.key import deployment_key

        return await deployment_key(records, clock, ids)

    core = WorkspaceCore(
        workspace_id=id,
        namespace=namespace,
        records=records,
        assets=assets,
        router=Router(mounts),
        content=content or ContentOptions(),
        limits=limits or Limits(),
        retention=retention or Retention(),
        versioning=versioning or Versioning(),
        tools=tools or ToolOptions(),
        recorder=OperationRecorder(telemetry or Telemetry(), id, load_key=load_key),
        clock=clock,
        ids=ids,
        close_storage=close_storage,
        runtime=runtime,
        owns_runtime=owns_runtime,
    )
    return Workspace(core)


class WorkspaceOpening:
    """What `open_workspace` returns: await it, or enter it with ``async with``."""

    def __init__(
        self,
        url: str,
        assets: str | None,
        id: str,
        namespace: NamespaceSetting,
        options: dict[str, Any],
        create: bool,
    ) -> None:
        self._url = url
        self._assets = assets
        self._id = id
        self._namespace = namespace
        self._options = options
        self._create = create
        self._opened: Workspace | None = None

    def __repr__(self) -> str:
        return f"WorkspaceOpening(id={self._id!r})"

    async def _open(self) -> Workspace:
        from storage_adapters import open_storage

        # Bad options must be refused before anything is created.
        workspace(id=self._id, namespace=self._namespace, **self._options)
        storage = await open_storage(self._url, self._assets, create=self._create)
        options = dict(self._options)
        owns_runtime = options.get("runtime") is None
        if owns_runtime:
            options["runtime"] = LocalRuntime()
        opened = _assemble(
            self._id,
            self._namespace,
            storage.records,
            storage.assets,
            close_storage=storage.aclose,
            owns_runtime=owns_runtime,
            **options,
        )
        opened._core.loop = asyncio.get_running_loop()
        return opened

    def __await__(self) -> Generator[Any, None, Workspace]:
        return self._open().__await__()

    async def __aenter__(self) -> Workspace:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._opened is not None:
            await self._opened.aclose()


def open_workspace(
    url: str,
    assets: str | None = None,
    *,
    id: str = "default",
    namespace: NamespaceSetting = "default",
    create: bool = True,
    **options: Any,  # noqa: ANN401 - options of workspace()
) -> WorkspaceOpening:
    """Open a workspace and its storage by URL; await it, or enter it with ``async with``.

    An embedded SQLite file and its schema are created or upgraded. It has a runtime of its own unless given one, so `watch` works at
    once. Closing the workspace closes the storage and that runtime.

    Args:
        url: ``memory://``, ``sqlite:///relative.db``, ``sqlite:////absolute.db`` (``?durability=full|normal``, default full).
        assets: ``file:///folder`` or ``memory://``; None keeps them beside the records.
        id: Name of the workspace.
        namespace: As in `workspace`.
        create: False refuses to create a database that is not there.
        **options: Further options of `workspace`.

    Returns:
        What opens the workspace.

    Raises:
        InvalidInputError: A bad URL or option (``INVALID_ARGUMENT``).
        StorageError: The storage cannot be opened (``STORE_UNAVAILABLE``).
        StateError: It was written by a newer version (``SCHEMA_OUT_OF_DATE``).

    Cost:
        none until it is awaited or entered

    Example:
        >>> async with open_workspace("memory://") as opened:
        ...     await opened.write("/workspace/a.md", "hello")
    """
    return WorkspaceOpening(url, assets, id, namespace, options, create)


def open_workspace_sync(
    url: str,
    assets: str | None = None,
    *,
    id: str = "default",
    namespace: NamespaceSetting = "default",
    create: bool = True,
    **options: Any,  # noqa: ANN401 - options of workspace()
) -> SyncWorkspace:
    """Open a workspace for blocking code; it owns a background event loop and is a context manager.

    Args:
        url: As in `open_workspace`.
        assets: As in `open_workspace`.
        id: Name of the workspace.
        namespace: As in `workspace`.
        create: False refuses to create a database that is not there.
        **options: Further options of `workspace`.

    Returns:
        The open workspace.

    Raises:
        InvalidInputError: A bad URL or option (``INVALID_ARGUMENT``).
        StorageError: The storage cannot be opened (``STORE_UNAVAILABLE``).

    Cost:
        one thread

    Example:
        >>> with open_workspace_sync("memory://") as sws:
        ...     sws.write("/workspace/a.md", "hello").version
        1
    """
    opening = open_workspace(url, assets, id=id, namespace=namespace, create=create, **options)
    from crux_workspace.api.sync_facade import LoopThread, SyncWorkspace

    thread = LoopThread()

    async def opened() -> Workspace:
        return await opening

    try:
        inner = asyncio.run_coroutine_threadsafe(opened(), thread.loop).result()
    except BaseException:
        thread.close()
        raise
    return SyncWorkspace(inner, thread.loop, owned=thread)
