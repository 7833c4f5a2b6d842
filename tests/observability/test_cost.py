"""What telemetry does for one call, counted; how long it takes is for `benchmarks.telemetry`."""

from __future__ import annotations

import gc
import time
from typing import Any
from unittest import mock

import pytest
from opentelemetry.metrics import Histogram, NoOpCounter, NoOpHistogram, NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider, ObservableCounter
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracerProvider

from benchmarks import telemetry
from benchmarks.telemetry import measure_telemetry
from crux_workspace import Telemetry, workspace
from crux_workspace.telemetry import OperationRecorder, path_hash, path_hasher, provenance


async def test_a_write_that_nobody_listens_to_looks_for_a_listener_three_times_at_most() -> None:
    listening: Any = OperationRecorder.listening
    found = provenance.active_provenance
    looks: list[str] = []

    def look(this: OperationRecorder) -> bool:
        looks.append("who listens")
        return bool(listening.fget(this))

    def who() -> tuple[str, str] | None:
        looks.append("who calls")
        return found()

    ws = workspace(id="w", namespace="n")
    with (
        mock.patch.object(OperationRecorder, "listening", property(look)),
        mock.patch("crux_workspace.api.core.active_provenance", who),
    ):
        await ws.write("/workspace/a", "x")
    assert sorted(looks) in (["who calls", "who listens"], ["who calls"] + 2 * ["who listens"])


async def test_a_listener_that_comes_later_is_noticed_after_many_silent_calls() -> None:
    ws = workspace(id="w", namespace="n")
    for _ in range(3):
        await ws.write("/workspace/a", "x")
    exporter = InMemorySpanExporter()
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    with mock.patch("opentelemetry.trace._TRACER_PROVIDER", tracers):
        await ws.write("/workspace/a", "x")
    assert len(exporter.get_finished_spans()) == 2


async def test_a_listened_write_is_two_spans_and_hashes_its_path_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exporter = InMemorySpanExporter()
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    hashed: list[str] = []

    def counting(path: str, key: bytes | str) -> Any:
        hashed.append(path)
        return path_hash(path, key)

    monkeypatch.setattr(path_hasher, "path_hash", counting)
    ws = workspace(id="w", namespace="n", telemetry=Telemetry(tracers, NoOpMeterProvider(), b"k"))
    for _ in range(5):
        await ws.write("/workspace/a", "x")
    assert len(exporter.get_finished_spans()) == 10
    assert hashed == ["/workspace/a"]


async def test_a_listened_write_is_one_measurement_and_its_bytes_are_added_up() -> None:
    told: list[str] = []
    callbacks_of: dict[str, Any] = {}

    class _Histogram(NoOpHistogram):
        def record(self, *given: Any, **options: Any) -> None:
            told.append("histogram")

    class _Counter(NoOpCounter):
        def add(self, *given: Any, **options: Any) -> None:
            told.append("counter")

    class _Meter:
        def create_histogram(self, name: str, *given: Any, **options: Any) -> Histogram:
            return _Histogram(name)

        def create_counter(self, name: str, *given: Any, **options: Any) -> Any:
            return _Counter(name)

        def create_observable_counter(self, name: str, callbacks: Any, *_: Any) -> None:
            callbacks_of[name] = callbacks

    class _Meters:
        def get_meter(self, name: str) -> Any:
            return _Meter()

    telemetry = Telemetry(NoOpTracerProvider(), _Meters(), b"k")  # type: ignore[arg-type]
    ws = workspace(id="w", namespace="n", telemetry=telemetry)
    for _ in range(2):
        await ws.write("/workspace/a", "four")
    assert told == ["histogram", "histogram"]
    (observe,) = callbacks_of["crux.workspace.bytes"]
    assert [(found.value, found.attributes) for found in observe(None)] == [
        (8, {"crux.workspace.operation": "write"})
    ]


@pytest.mark.parametrize(
    ("temporality", "second"),
    [(AggregationTemporality.CUMULATIVE, 6), (AggregationTemporality.DELTA, 4)],
)
async def test_workspaces_that_share_a_provider_are_added_up_and_stay_so(
    temporality: AggregationTemporality, second: int
) -> None:
    reader = InMemoryMetricReader(preferred_temporality={ObservableCounter: temporality})
    telemetry = Telemetry(
        NoOpTracerProvider(), MeterProvider([reader], shutdown_on_exit=False), b"k"
    )

    def told() -> list[Any]:
        data = reader.get_metrics_data()
        assert data is not None
        (scope,) = data.resource_metrics[0].scope_metrics
        (moved,) = [metric for metric in scope.metrics if metric.name == "crux.workspace.bytes"]
        return [point.value for point in moved.data.data_points]  # type: ignore[union-attr]

    for name in ("one", "two"):
        await workspace(id=name, namespace="n", telemetry=telemetry).write("/workspace/a", "x")
    gc.collect()
    assert told() == [2]
    await workspace(id="three", namespace="n", telemetry=telemetry).write("/workspace/a", "four")
    assert told() == [second]


async def test_the_benchmark_gives_its_figures() -> None:
    rows = await measure_telemetry(2)
    assert [set(row) & {"ratio", "ms"} for row in rows] == [{"ratio"}, {"ms"}, {"ratio"}]


async def test_the_benchmark_gives_no_figure_when_a_span_was_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(telemetry, "_QUEUE", 512)

    class _Slow(telemetry._Counting):
        def export(self, spans: Any) -> Any:
            time.sleep(0.3)
            return super().export(spans)

    monkeypatch.setattr(telemetry, "_Counting", _Slow)
    with pytest.raises(RuntimeError, match=r"\d+ spans were exported of 1200"):
        await measure_telemetry(2)


async def test_the_workspace_without_telemetry_tells_nobody_and_writes_the_same() -> None:
    exporter = InMemorySpanExporter()
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    with mock.patch("opentelemetry.trace._TRACER_PROVIDER", tracers):
        file = await telemetry._untold().write("/workspace/a", "x")
    assert (file.path, file.version) == ("/workspace/a", 1)
    assert exporter.get_finished_spans() == ()
