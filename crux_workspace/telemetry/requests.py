"""Requests of an HTTP service: a server span in the caller's trace, their duration, and how many are open."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crux_workspace.telemetry.guard import note_failure
from crux_workspace.telemetry.listening import MeterSource, TracerSource

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram, Meter, MeterProvider
    from opentelemetry.trace import Span, Tracer, TracerProvider

__all__ = ["RequestRecorder", "RequestSpan"]

REQUEST_BOUNDS_S = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30),
)
"""Buckets of the request duration."""


class _Instruments:
    __slots__ = ("active", "duration", "refused")

    def __init__(self, meter: Meter) -> None:
        from opentelemetry.metrics import Observation

        self.active = 0
        self.duration: Histogram = meter.create_histogram(
            "http.server.request.duration",
            "s",
            "How long a request took",
            explicit_bucket_boundaries_advisory=REQUEST_BOUNDS_S,
        )
        meter.create_observable_up_down_counter(
            "http.server.active_requests",
            [lambda _: [Observation(self.active)]],
            "{request}",
            "Requests and event streams that are open",
        )
        self.refused: Counter = meter.create_counter(
            "crux.workspace.http.refused", "{request}", "Requests refused by a limit of the service"
        )


class RequestSpan:
    """One request while it is served; none of its methods ever raises."""

    __slots__ = ("_began", "_instruments", "_method", "_span", "_token")

    def __init__(self, method: str, instruments: _Instruments | None) -> None:
        self._method = method
        self._instruments = instruments
        self._span: Span | None = None
        self._token: Any = None
        self._began = time.perf_counter()
        if instruments is not None:
            instruments.active += 1

    def enter(self, tracer: Tracer, headers: Mapping[str, str]) -> None:
        """Start the span, as a child of the one that the caller's ``traceparent`` names."""
        from opentelemetry import context, trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        around = TraceContextTextMapPropagator().extract(headers)
        self._span = tracer.start_span(
            self._method, context=around, kind=trace.SpanKind.SERVER, record_exception=False
        )
        self._token = context.attach(trace.set_span_in_context(self._span, around))

    def end(self, route: str, status: int, *, refused: bool = False) -> None:
        """End it; `route` is an address of the table of routes, never what the client sent."""
        split: dict[str, str | int] = {
            "http.request.method": self._method,
            "http.route": route,
            "http.response.status_code": status,
        }
        try:
            if self._instruments is not None:
                self._instruments.active -= 1
                self._instruments.duration.record(time.perf_counter() - self._began, split)
                if refused:
                    self._instruments.refused.add(1, {"http.response.status_code": status})
            if self._span is not None:
                from opentelemetry import context

                context.detach(self._token)
                self._span.update_name(f"{self._method} {route}")
                self._span.set_attributes(split)
                self._span.end()
        except Exception as error:
            note_failure("request end", error)


class RequestRecorder:
    """Records the requests of one service; nothing is done while nobody listens."""

    __slots__ = ("_instruments", "_meters", "_tracers")

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self._tracers = TracerSource(tracer_provider)
        self._meters = MeterSource(meter_provider)
        self._instruments: _Instruments | None = None

    def start(self, method: str, headers: Mapping[str, str]) -> RequestSpan | None:
        """Start a request in this task, None while nobody listens; never raises."""
        tracer = self._tracers.find()
        if self._instruments is None and (meter := self._meters.find()) is not None:
            try:
                self._instruments = _Instruments(meter)
            except Exception as error:
                note_failure("request instruments", error)
        if tracer is None and self._instruments is None:
            return None
        span = RequestSpan(method, self._instruments)
        if tracer is not None:
            try:
                span.enter(tracer, headers)
            except Exception as error:
                note_failure("request span", error)
        return span
