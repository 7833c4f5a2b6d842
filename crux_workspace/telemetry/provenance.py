"""Who is at work: the run and span in which the caller writes."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from crux_workspace.telemetry.guard import note_failure

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

__all__ = ["active_provenance", "api_modules", "calling_span", "trace_headers"]

RUN_ID = "crux.run_id"

CALLER = "crux_workspace.caller"
"""Context entry (span of our operation, span around it): our own spans are not what produced a file."""


@cache
def api_modules() -> tuple[Any, Any]:
    """Return the API's `context` and `trace`; looked up once, an import statement takes a microsecond each time."""
    from opentelemetry import context, trace

    return context, trace


def calling_span(context: Context | None = None) -> Span:
    """Return the active span, looking through the workspace's own operations."""
    contexts, trace = api_modules()
    around = contexts.get_current() if context is None else context
    span: Span = trace.get_current_span(around)
    caller: Any = around.get(CALLER)
    if caller is not None and caller[0] is span:
        outer: Span = caller[1]
        return outer
    return span


def active_provenance() -> tuple[str, str] | None:
    """Return (run id, span id) of the span the caller is in, None when there is none that records.

    The run id is the span's attribute ``crux.run_id`` where the span lets its attributes be read, else its trace id (32 hex
    digits); the span id has 16. The answer is the same before and during an operation, whether or not that operation has a span.
    Never raises.
    """
    contexts = sys.modules.get("opentelemetry.context")
    if contexts is None:
        return None
    try:
        if not contexts.get_current():  # nothing is active, so no span is either
            return None
        span = calling_span()
        stamp = span.get_span_context()
        if not stamp.is_valid or not span.is_recording():
            return None
        return _run_id(span) or f"{stamp.trace_id:032x}", f"{stamp.span_id:016x}"
    except Exception as error:
        note_failure("provenance", error)
        return None


def trace_headers() -> dict[str, str]:
    """Return the headers that join a request to the caller's trace; none where it is in no span. Never raises."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None or trace.get_current_span() is trace.INVALID_SPAN:
        return {}
    headers: dict[str, str] = {}
    try:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        TraceContextTextMapPropagator().inject(headers)
    except Exception as error:
        note_failure("trace headers", error)
    return headers


def _run_id(span: Span) -> str | None:
    attributes = getattr(span, "attributes", None)
    if not attributes:
        return None
    value = attributes.get(RUN_ID)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return str.__str__(value) if isinstance(value, str) and value.strip() else None
