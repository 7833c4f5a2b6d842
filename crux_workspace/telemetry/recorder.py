"""`OperationRecorder`: what a workspace tells those who listen."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from types import ModuleType

from crux_workspace.telemetry.attributes import Attributes, start_attributes, version_attributes
from crux_workspace.telemetry.guard import note_failure
from crux_workspace.telemetry.listening import MEASURES, TRACES, TracerSource
from crux_workspace.telemetry.metrics import WorkspaceMetrics
from crux_workspace.telemetry.path_hash import PathHash
from crux_workspace.telemetry.path_hasher import PathHasher
from crux_workspace.telemetry.provenance import api_modules
from crux_workspace.telemetry.settings import Telemetry
from crux_workspace.telemetry.spans import SILENT, OperationSpan

__all__ = ["VERSION_SPAN", "OperationRecorder"]

VERSION_SPAN = "workspace.version"


class OperationRecorder:
    """Records the operations of one workspace.

    The runner asks `listening` first: while nobody listens nothing is allocated, no key is loaded and no path hashed. A provider
    that is set later is noticed by the next operation.
    """

    __slots__ = ("_given", "_hasher", "_quiet", "_started", "_tracers", "_workspace_id", "metrics")

    def __init__(
        self,
        telemetry: Telemetry,
        workspace_id: str,
        *,
        load_key: Callable[[], Awaitable[bytes]] | None = None,
    ) -> None:
        """Create the recorder; no I/O.

        Args:
            telemetry: The workspace's settings.
            workspace_id: Id of the workspace, shown as ``crux.workspace.id``.
            load_key: Loads the key of the path hashes, used when the settings have none; without both there are no hashes.
        """
        self._workspace_id = workspace_id
        self._started: dict[str, Attributes] = {}
        self._quiet: tuple[tuple[ModuleType, str], tuple[ModuleType, str]] | None = None
        self._given = telemetry.tracer_provider is not None or telemetry.meter_provider is not None
        self._tracers = TracerSource(telemetry.tracer_provider)
        self._hasher = PathHasher(telemetry.path_hash_key, load_key)
        self.metrics = WorkspaceMetrics(telemetry.meter_provider)

    @property
    def listening(self) -> bool:
        """Whether somebody listens to spans or metrics now."""
        quiet = self._quiet
        # A glance at both variables instead of two questions: this is asked twice a write.
        if quiet is not None:
            (traces, tracer), (measures, meter) = quiet
            if getattr(traces, tracer, self) is None and getattr(measures, meter, self) is None:
                return False
            self._quiet = None
        elif not (self._given or TRACES in sys.modules or MEASURES in sys.modules):
            return False  # nobody can: OpenTelemetry is not even imported
        if self._tracers.find() is not None or self.metrics.listening:
            return True
        homes = self._tracers.silent_home, self.metrics.source.silent_home
        if homes[0] is not None and homes[1] is not None:
            self._quiet = homes[0], homes[1]
        return False

    def start(
        self, operation: str, *, current: bool = True, within: OperationSpan | None = None
    ) -> OperationSpan:
        """Start an operation; never raises.

        Args:
            operation: The verb's span name from the verb table.
            current: Make the span the parent of what the task starts until the end. Pass False from an async generator: what it
                attaches would leak to its consumer between two items.
            within: The operation that it is a part of.
        """
        tracer = self._tracers.find()
        if tracer is None and not self.metrics.listening:
            return SILENT
        operation_span = OperationSpan(operation, self.metrics)
        if tracer is not None:
            begins = self._begins(operation)
            operation_span.enter(tracer, begins, current=current, within=within)
        return operation_span

    def _begins(self, operation: str) -> Attributes:
        """Return what an operation of this workspace starts with, made once for each verb."""
        if type(operation) is not str:
            return start_attributes(operation, self._workspace_id)
        found = self._started.get(operation)
        if found is None:
            found = self._started[operation] = start_attributes(operation, self._workspace_id)
        return found

    def known_hash(self, path: object) -> PathHash | None:
        """Return the keyed hash of a path in use at once; None where `hash_path` has to be asked, or nobody listens to spans."""
        return None if self._tracers.find() is None else self._hasher.known(path)

    async def hash_path(self, path: str) -> PathHash | None:
        """Return the keyed hash of a normalised path; None when nobody listens to spans or the key cannot be had."""
        return None if self._tracers.find() is None else await self._hasher.hash(path)

    async def label(self, path: str) -> PathHash | None:
        """Return the keyed hash of a normalised path, whoever listens; None when the key cannot be had."""
        return await self._hasher.hash(path)

    def version_marker(
        self,
        path_hash: PathHash | None,
        version: int,
        operation: str,
        *,
        within: OperationSpan | None = None,
    ) -> None:
        """Mark one recorded version: a span that starts and ends at once.

        Args:
            path_hash: Hash of the file's path, None when there is none.
            version: The version's number.
            operation: The operation that recorded it.
            within: The operation that is its parent; by default the current span.
        """
        tracer = self._tracers.find()
        if tracer is None:
            return
        try:
            context = None
            if within is not None and within.span is not None:
                context = api_modules()[1].set_span_in_context(within.span)
            attributes = version_attributes(path_hash, version, operation)
            tracer.start_span(VERSION_SPAN, context=context, attributes=attributes).end()
        except Exception as error:
            note_failure("version marker", error)
