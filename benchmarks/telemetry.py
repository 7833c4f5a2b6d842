"""What telemetry adds to a write, in CPU time of the whole process, exporting thread included; run: python -m benchmarks.telemetry.

Slices of writes with and without a listener alternate in one process, on the memory store, where a write is cheapest and telemetry the
largest part of it. The floor is what the SDK itself takes for the same two spans and two measurements when they are made between writes;
that of the second row is what it takes for the two spans alone, which no code of ours can save.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any
from unittest import mock

from opentelemetry.context import Context
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import NoOpTracerProvider, set_span_in_context

from benchmarks.floor import BODY
from crux_workspace import Telemetry, Workspace, workspace
from crux_workspace.telemetry import OperationRecorder, provenance
from crux_workspace.telemetry.attributes import Attributes

__all__ = ["measure_telemetry"]

_KEY = b"k" * 32
_HASH = "hash:" + "0" * 32
_WRITES = 200


class _Drop(SpanExporter):
    def export(self, spans: object) -> SpanExportResult:
        del spans
        return SpanExportResult.SUCCESS


def _measuring(meters: MeterProvider) -> Callable[[Context], None]:
    """Return what makes the two measurements of one write by the SDK alone."""
    meter = meters.get_meter("bare")
    duration = meter.create_histogram("d", "ms", explicit_bucket_boundaries_advisory=[0.1, 1, 10])
    moved = meter.create_counter("b", "By")
    split = {"crux.workspace.operation": "write", "crux.workspace.status": "ok"}
    verb = {"crux.workspace.operation": "write"}

    def measure(inside: Context) -> None:
        moved.add(len(BODY), verb, inside)
        duration.record(0.1, split, inside)

    return measure


def _bare(
    tracers: TracerProvider, measure: Callable[[Context], None] | None = None
) -> Callable[[], None]:
    """Return what makes the spans of one write by the SDK alone, and measures inside them."""
    tracer = tracers.get_tracer("bare")
    begins = {"crux.workspace.operation": "write", "crux.workspace.id": "w"}
    ends: Attributes = {
        "crux.workspace.path_hash": _HASH,
        "crux.workspace.result_kind": "file",
        "crux.workspace.size": len(BODY),
        "crux.workspace.status": "ok",
    }
    mark: Attributes = {
        "crux.workspace.version": 1,
        "crux.workspace.operation": "write",
        "crux.workspace.path_hash": _HASH,
    }

    def make() -> None:
        span = tracer.start_span("workspace.operation", attributes=begins)
        inside = set_span_in_context(span)
        tracer.start_span("workspace.version", context=inside, attributes=mark).end()
        if measure is not None:
            measure(inside)
        span.set_attributes(ends)
        span.end()

    return make


async def _cpu(ws: Workspace, beside: Callable[[], None] | None = None) -> float:
    began = time.process_time()
    for number in range(_WRITES):
        await ws.write(f"/workspace/hot/f{number % 50}.md", BODY)
        if beside is not None:
            beside()
    return (time.process_time() - began) / _WRITES * 1e6


async def _looks(ws: Workspace) -> dict[str, float]:
    """Count how often one write looks for a listener, by what it asks."""
    asked = {"listening": 0, "provenance": 0}
    listening: Any = OperationRecorder.listening
    found = provenance.active_provenance

    def look(this: OperationRecorder) -> bool:
        asked["listening"] += 1
        return bool(listening.fget(this))

    def who() -> tuple[str, str] | None:
        asked["provenance"] += 1
        return found()

    with (
        mock.patch.object(OperationRecorder, "listening", property(look)),
        mock.patch("crux_workspace.api.core.active_provenance", who),
    ):
        for number in range(50):
            await ws.write(f"/workspace/hot/f{number}.md", BODY)
    return {name: amount / 50 for name, amount in asked.items()}


def _price(call: Callable[[], object], rounds: int = 20_000) -> float:
    """Return what a call takes in µs, an empty one taken off."""

    def timed(each: Callable[[], object]) -> float:
        began = time.process_time()
        for _ in range(rounds):
            each()
        return (time.process_time() - began) / rounds * 1e6

    return max(0.0, min(timed(call) - timed(lambda: None) for _ in range(5)))


async def measure_telemetry(pairs: int) -> list[dict[str, object]]:
    """Measure the rows."""
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(_Drop()))
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    nobody = Telemetry(NoOpTracerProvider(), NoOpMeterProvider())
    off = workspace(id="w", namespace="n", telemetry=nobody)
    on = workspace(id="w", namespace="n", telemetry=Telemetry(tracers, meters, _KEY))
    silent = workspace(id="w", namespace="n")
    bare, spans = _bare(tracers, _measuring(meters)), _bare(tracers)
    sides: list[Callable[[], Awaitable[float]]] = [
        lambda: _cpu(off),
        lambda: _cpu(off, bare),
        lambda: _cpu(on),
        lambda: _cpu(off, spans),
    ]
    for side in sides:
        await side()
    found: list[list[float]] = []
    for number in range(pairs):
        order = sides if number % 2 else sides[::-1]
        figures = [await side() for side in order]
        found.append(figures if number % 2 else figures[::-1])
    floors = [with_bare - without for without, with_bare, _, _ in found]
    ours = [listened - without for without, _, listened, _ in found]
    alone = [with_spans - without for without, _, _, with_spans in found]
    ratios = sorted(o / f for o, f in zip(ours, floors, strict=True) if f > 0)
    looks = await _looks(silent)
    spent = looks["listening"] * _price(lambda: silent._core.recorder.listening)
    spent += looks["provenance"] * _price(provenance.active_provenance)
    write = statistics.median(each[0] for each in found)
    tracers.shutdown()
    meters.shutdown()
    return [
        {
            "row": "telemetry: CPU added to a write, batched / the SDK's own calls",
            "at_most": 1.1,
            "base_us": statistics.median(floors),
            "ours_us": statistics.median(ours),
            "ratio": statistics.median(ratios),
            "low": ratios[len(ratios) // 4],
            "high": ratios[-1 - len(ratios) // 4],
        },
        {
            "row": "telemetry: CPU added to a write, batched",
            "at_most_ms": 0.040,
            "base_us": statistics.median(alone),
            "ms": statistics.median(ours) / 1000,
        },
        {
            "row": "telemetry: looking for a listener, nobody there / a write",
            "at_most": 0.01,
            "share": spent / write,
        },
    ]


def main() -> None:
    """Measure and print."""
    from benchmarks.__main__ import show

    show(asyncio.run(measure_telemetry(15)))


if __name__ == "__main__":
    main()
