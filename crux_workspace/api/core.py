"""What all views of one workspace share: stores, mounts, settings, and whether it is still usable."""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

from crux_workspace.api import runtimes
from crux_workspace.engine.expiry import sweep_due
from crux_workspace.engine.inflight import InFlight
from crux_workspace.engine.ports import AppendedVersion, EnginePorts
from crux_workspace.errors import InvalidInputError, RuntimeRequiredError
from crux_workspace.events.runtime import LocalRuntime
from crux_workspace.events.upkeep import UpkeepJob
from crux_workspace.events.watching import WatchHandle
from crux_workspace.model.clocks import Clock, IdSource
from crux_workspace.model.labels import check_label
from crux_workspace.model.paths import check_namespace
from crux_workspace.model.settings import (
    ContentOptions,
    Limits,
    NamespaceRequest,
    NamespaceSetting,
    Retention,
    ToolOptions,
    Versioning,
)
from crux_workspace.model.usability import Usable
from crux_workspace.mounts.routing import Router
from crux_workspace.operations.housekeeping import gc
from crux_workspace.operations.space import Space
from crux_workspace.storage.assets import AssetStore
from crux_workspace.storage.layout import partition_name
from crux_workspace.storage.records import RecordStore
from crux_workspace.telemetry import OperationRecorder, active_provenance

__all__ = ["WorkspaceCore", "active_run"]


async def _resolved(namespace: Awaitable[str]) -> str:
    return check_namespace(await namespace)


def active_run() -> tuple[str, str] | None:
    """Return (run id, span id) of the active span; a run id that could not be stored counts as none."""
    found = active_provenance()
    try:
        return None if found is None else (check_label("run_id", found[0]), found[1])
    except InvalidInputError:
        return None


def _provenance() -> dict[str, Any] | None:
    found = active_run()
    if found is None:
        return None
    run_id, span_id = found
    return {"run_id": run_id, "span_id": span_id, "sources": []}


@dataclass(eq=False, slots=True, weakref_slot=True, kw_only=True)
class WorkspaceCore(Usable):
    """The shared part; `Workspace` objects are views of it."""

    workspace_id: str
    namespace: NamespaceSetting
    records: RecordStore
    assets: AssetStore | None
    router: Router
    content: ContentOptions
    limits: Limits
    retention: Retention
    versioning: Versioning
    tools: ToolOptions
    recorder: OperationRecorder
    clock: Clock
    ids: IdSource
    close_storage: Callable[[], Awaitable[None]] | None = None
    """Given by who opened the storage together with the workspace."""
    runtime: LocalRuntime | None = None
    """What works in the background; None takes what was configured for the process."""
    owns_runtime: bool = False
    in_flight: InFlight = field(default_factory=InFlight)
    watches: WeakSet[WatchHandle] = field(default_factory=WeakSet)
    _spaces: dict[tuple[str, str | None], Space] = field(default_factory=dict)
    _kept: set[str] = field(default_factory=set)
    _keeper: LocalRuntime | None = None
    _is_over: bool = False

    def _named(self) -> str:
        return f"The workspace {self.workspace_id!r}"

    def namespace_of(
        self, bound: str | None, given: str | None, request: NamespaceRequest | None = None
    ) -> str | Awaitable[str]:
        """Resolve which namespace a call works on; to be awaited where the application tells it."""
        if bound is not None:
            if given is not None:
                raise InvalidInputError(
                    "This view is bound to a namespace; use the workspace itself to name another.",
                    details={"option": "namespace"},
                )
            return bound
        if given is not None:
            return check_namespace(given)
        setting = self.namespace
        if setting is None:
            raise InvalidInputError(
                "No namespace: the workspace was made without one.",
                details={"option": "namespace"},
                hint="Pass namespace=, or use for_namespace(...).",
            )
        if isinstance(setting, str):
            return setting
        found = setting(NamespaceRequest(None, None) if request is None else request)
        return _resolved(found) if inspect.isawaitable(found) else check_namespace(found)

    def space(self, namespace: str, actor: str | None) -> Space:
        """Bind the engine to one namespace; no I/O. From now on the runtime, if there is one, keeps it up."""
        runtime = self.runtime or runtimes.configured
        if runtime is not None and (self._keeper is not runtime or namespace not in self._kept):
            self._keep(runtime, namespace)
        return self._bound(namespace, actor)

    def _bound(self, namespace: str, actor: str | None) -> Space:
        cached = self._spaces.get((namespace, actor))
        if cached is not None:
            return cached
        ports = EnginePorts(
            records=self.records,
            assets=self.assets,
            workspace_id=self.workspace_id,
            namespace=namespace,
            partition=partition_name(self.workspace_id, namespace),
            limits=self.limits,
            retention=self.retention,
            versioning=self.versioning,
            content=self.content,
            clock=self.clock,
            ids=self.ids,
            actor=actor,
            provenance=_provenance,
            observers=(self._mark_versions,),
        )
        space = Space(ports, self.router, self.in_flight)
        if len(self._spaces) >= _MAX_SPACES:
            self._spaces.clear()
        self._spaces[namespace, actor] = space
        return space

    def _keep(self, runtime: LocalRuntime, namespace: str) -> None:
        if self._keeper is not runtime or len(self._kept) >= _MAX_SPACES:
            self._kept.clear()
        self._keeper = runtime
        self._kept.add(namespace)
        space = self._bound(namespace, None)

        async def sweep() -> None:
            await sweep_due(space.ports, self.in_flight)

        async def collect() -> None:
            await gc(space, dry_run=False)

        runtime.keep(space.ports.partition, space.ports.hub, UpkeepJob(self, sweep, collect))

    def watch_runtime(self) -> LocalRuntime:
        """Return the runtime that drives watches.

        Raises:
            RuntimeRequiredError: There is none (``RUNTIME_REQUIRED``).
        """
        runtime = self.runtime or runtimes.configured
        if runtime is None:
            raise RuntimeRequiredError(
                "workspace.watch() needs a runtime (RUNTIME_REQUIRED), and none was given to the workspace or the process.",
                hint="Call configure(runtime=local_runtime()) once, or pass runtime= to workspace(...).",
            )
        return runtime

    def _mark_versions(self, versions: list[AppendedVersion]) -> Awaitable[None] | None:
        recorder = self.recorder
        if not recorder.listening:
            return None
        for at, version in enumerate(versions):
            hashed = recorder.known_hash(version.path)
            if hashed is None:
                return self._marked(versions[at:])
            recorder.version_marker(hashed, version.version, version.operation)
        return None

    async def _marked(self, versions: list[AppendedVersion]) -> None:
        for version in versions:
            hashed = await self.recorder.hash_path(version.path)
            self.recorder.version_marker(hashed, version.version, version.operation)

    async def aclose(self) -> None:
        """End watches, wait for commits in flight, then close what was opened with the workspace; idempotent."""
        if self._is_over or self.process != os.getpid():
            return
        self.closed = True
        for watch in list(self.watches):
            await watch.stop()
        if self._keeper is not None:
            await self._keeper.release(self)
        if self.owns_runtime and self.runtime is not None:
            await self.runtime.aclose()
        await self.in_flight.wait()
        if self.close_storage is not None:
            await self.close_storage()
        self._is_over = True  # a call that was cancelled on the way is taken up by the next one


_MAX_SPACES = 1024
