"""Print what telemetry costs an operation: ``python tests/unit/telemetry/measure_cost.py``."""

from __future__ import annotations

import time
from collections.abc import Callable

from crux_workspace.telemetry import OperationRecorder, Telemetry, active_provenance, path_hash

ROUNDS = 100_000


def measure(label: str, call: Callable[[], object], rounds: int = ROUNDS) -> None:
    """Print the best of five runs, in ns a call."""
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter_ns()
        for _ in range(rounds):
            call()
        best = min(best, (time.perf_counter_ns() - began) / rounds)
    print(f"{label:52} {best:9.0f} ns")


def operation(recorder: OperationRecorder) -> Callable[[], object]:
    """The runner's path of one write."""

    def run() -> None:
        if recorder.listening:
            span = recorder.start("write")
            recorder.version_marker(None, 1, "write")
            span.finish(kind="file", size=10)

    return run


def main() -> None:
    """Measure silence first, before anything imports OpenTelemetry."""
    measure("empty call", lambda: None)
    recorder = OperationRecorder(Telemetry(), "w")
    measure("nobody listens, API not imported", operation(recorder))
    measure("active_provenance, API not imported", active_provenance)
    from opentelemetry import metrics, trace

    measure("nobody listens, API imported", operation(recorder))
    measure("active_provenance, API imported, no span", active_provenance)
    off = Telemetry(trace.NoOpTracerProvider(), metrics.NoOpMeterProvider())
    measure("no-op providers given", operation(OperationRecorder(off, "w")))
    measure("path_hash", lambda: path_hash("/workspace/notes.md", b"k" * 32))
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider

    tracers = TracerProvider(shutdown_on_exit=False)
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    spans = Telemetry(tracers, metrics.NoOpMeterProvider())
    measure("SDK spans, operation and marker", operation(OperationRecorder(spans, "w")), 5_000)
    only_metrics = Telemetry(trace.NoOpTracerProvider(), meters)
    measure("SDK metrics", operation(OperationRecorder(only_metrics, "w")), 5_000)


if __name__ == "__main__":
    main()
