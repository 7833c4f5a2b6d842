"""What telemetry adds to a write, in CPU time of the whole process, exporting thread included; run: python -m benchmarks.telemetry.

Slices of writes with and without a listener alternate in one process, on the memory store, where a write is cheapest and telemetry the
largest part of it. The floor is what the SDK itself takes for the same two spans and two measurements when they are made between writes;
that of the second row is what it takes for the two spans alone, which no code of ours can save. Each slice pays for the export of its own
spans, and none may be dropped. The last row compares a workspace that nobody listens to with one whose calls know nothing of telemetry.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from opentelemetry.context import Context
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import NoOpTracerProvider, set_span_in_context

from benchmarks.floor import BODY
from crux_workspace import Telemetry, Workspace, workspace
from crux_workspace.api.core import WorkspaceCore
from crux_workspace.api.runner import Runner
from crux_workspace.operations.space import Space
from crux_workspace.telemetry.attributes import Attributes

__all__ = ["measure_telemetry"]

_KEY = b"k" * 32
_HASH = "hash:" + "0" * 32
_WRITES = 600
"""Of a slice with a listener: 1,200 spans, so that the processor's thread wakes twice before the rest is flushed."""
_SPANS_OF_A_WRITE = 2
_QUEUE = 1 << 16
"""More than a slice makes, however late the processor's thread comes to its turn."""
_T = TypeVar("_T")


class _Counting(SpanExporter):
    """Drops what it is given, and knows how much that was."""

    def __init__(self) -> None:
        self.spans = 0

    def export(self, spans: Sequence[object]) -> SpanExportResult:
        self.spans += len(spans)
        return SpanExportResult.SUCCESS


class _Untold(Runner):
    """Runs a call as `Runner` does, in a library without telemetry: nobody is looked for."""

    __slots__ = ()

    async def run(
        self,
        verb: str,
        path: object,
        namespace: str | None,
        call: Callable[[Space], Awaitable[_T]],
    ) -> _T:
        space = self._space(namespace)
        return await call(space if isinstance(space, Space) else await space)

    def _bound(self, namespace: str) -> Space:
        return self.core.space(namespace, self.actor)


class _Unmarked(WorkspaceCore):
    """What views share, in a library without telemetry: a version that was recorded is told to nobody."""

    __slots__ = ()

    def _mark_versions(self, versions: object) -> None:
        del versions


def _untold() -> Workspace:
    made = workspace(id="w", namespace="n")
    made._core.__class__ = _Unmarked
    made._runner = _Untold(made._core, None, None)
    return made


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


async def _cpu(ws: Workspace, beside: Callable[[], None] | None = None, writes: int = _WRITES) -> float:  # fmt: skip
    began = time.process_time()
    await _write(ws, beside, writes)
    return (time.process_time() - began) / writes * 1e6


async def _write(ws: Workspace, beside: Callable[[], None] | None, writes: int) -> None:
    for number in range(writes):
        await ws.write(f"/workspace/hot/f{number % 50}.md", BODY)
        if beside is not None:
            beside()


async def _exported(
    tracers: TracerProvider,
    exporter: _Counting,
    ws: Workspace,
    beside: Callable[[], None] | None = None,
) -> float:
    """Return the CPU time of a write and of exporting its spans.

    Raises:
        RuntimeError: A span was dropped: a write would seem cheaper than it is.
    """
    before = exporter.spans
    began = time.process_time()
    await _write(ws, beside, _WRITES)
    tracers.force_flush()
    took = time.process_time() - began
    made = exporter.spans - before
    if made != _SPANS_OF_A_WRITE * _WRITES:
        raise RuntimeError(f"{made} spans were exported of {_SPANS_OF_A_WRITE * _WRITES}.")
    return took / _WRITES * 1e6


async def _unheard(pairs: int) -> dict[str, object]:
    """Compare writes that nobody listens to with those of a library without telemetry."""
    silent, untold = workspace(id="w", namespace="n"), _untold()
    sides = [partial(_cpu, untold, writes=200), partial(_cpu, silent, writes=200)]
    for side in sides:
        await side()
    found: list[tuple[float, float]] = []
    gc.collect()
    gc.disable()
    try:
        for number in range(pairs * 40):
            order = sides if number % 2 else sides[::-1]
            figures = [await side() for side in order]
            without, ours = figures if number % 2 else figures[::-1]
            found.append((without, ours))
    finally:
        gc.enable()
    ratios = [ours / without for without, ours in found]
    return {
        "row": "telemetry: a write, nobody there / without telemetry's code",
        "at_most": 1.01,
        "base_us": statistics.median(without for without, _ in found),
        "ours_us": statistics.median(ours for _, ours in found),
        "ratio": statistics.median(ratios),
        "low": statistics.quantiles(ratios, n=4)[0],
        "high": statistics.quantiles(ratios, n=4)[2],
    }


async def measure_telemetry(pairs: int) -> list[dict[str, object]]:
    """Measure the rows."""
    tracers = TracerProvider(shutdown_on_exit=False)
    exporter = _Counting()
    tracers.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=_QUEUE))
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    nobody = Telemetry(NoOpTracerProvider(), NoOpMeterProvider())
    off = workspace(id="w", namespace="n", telemetry=nobody)
    on = workspace(id="w", namespace="n", telemetry=Telemetry(tracers, meters, _KEY))
    bare, spans = _bare(tracers, _measuring(meters)), _bare(tracers)
    sides: list[Callable[[], Awaitable[float]]] = [
        lambda: _cpu(off),
        lambda: _exported(tracers, exporter, off, bare),
        lambda: _exported(tracers, exporter, on),
        lambda: _exported(tracers, exporter, off, spans),
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
        await _unheard(pairs),
    ]


def main() -> None:
    """Measure and print."""
    from benchmarks.__main__ import show

    show(asyncio.run(measure_telemetry(15)))


if __name__ == "__main__":
    main()
