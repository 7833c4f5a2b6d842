"""Spans, metrics and the keyed path hash; the only room that knows OpenTelemetry.

OpenTelemetry is imported only when a provider was given or when somebody else has imported it already: while nobody listens, an
operation pays for one look and nothing more. Whatever listens can never break an operation, and never sees a raw path, a namespace,
content or the text of an exception.

The room must not know verbs, trees or stores; only `crux_workspace.telemetry.key`, imported by its full name, speaks to a record
store.
"""

from __future__ import annotations

from crux_workspace.telemetry.metrics import WorkspaceMetrics
from crux_workspace.telemetry.path_hash import PathHash, path_hash
from crux_workspace.telemetry.provenance import active_provenance, trace_headers
from crux_workspace.telemetry.recorder import OperationRecorder
from crux_workspace.telemetry.settings import Telemetry
from crux_workspace.telemetry.spans import OperationSpan

__all__ = [
    "OperationRecorder",
    "OperationSpan",
    "PathHash",
    "Telemetry",
    "WorkspaceMetrics",
    "active_provenance",
    "path_hash",
    "trace_headers",
]
