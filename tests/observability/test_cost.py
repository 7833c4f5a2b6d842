"""What telemetry does for one call, counted; how long it takes is for `benchmarks.telemetry`."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from opentelemetry.metrics import Histogram, NoOpCounter, NoOpHistogram, NoOpMeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracerProvider

from benchmarks.telemetry import _looks, measure_telemetry
from crux_workspace import Telemetry, workspace
from crux_workspace.telemetry import path_hash, path_hasher


async def test_a_write_that_nobody_listens_to_looks_for_a_listener_three_times_at_most() -> None:
    looks = await _looks(workspace(id="w", namespace="n"))
    assert sum(looks.values()) <= 3


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


async def test_a_listened_write_is_two_measurements() -> None:
    told: list[str] = []

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

    class _Meters:
        def get_meter(self, name: str) -> Any:
            return _Meter()

    telemetry = Telemetry(NoOpTracerProvider(), _Meters(), b"k")  # type: ignore[arg-type]
    ws = workspace(id="w", namespace="n", telemetry=telemetry)
    await ws.write("/workspace/a", "x")
    assert sorted(told) == ["counter", "histogram"]


async def test_the_benchmark_gives_its_figures() -> None:
    rows = await measure_telemetry(2)
    assert [set(row) & {"ratio", "ms", "share"} for row in rows] == [{"ratio"}, {"ms"}, {"share"}]
