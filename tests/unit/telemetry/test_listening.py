from __future__ import annotations

import importlib
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from opentelemetry import metrics, trace

from crux_workspace.telemetry import OperationRecorder, Telemetry
from crux_workspace.telemetry.listening import MeterSource, TracerSource
from crux_workspace.telemetry.spans import SILENT

if TYPE_CHECKING:
    from tests.unit.telemetry.conftest import Listener


SDK = """
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
tracers = TracerProvider()
tracers.add_span_processor(SimpleSpanProcessor(exporter))
"""


@pytest.fixture
def no_global_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever other tests of this process have set is out of sight."""
    for source in (TracerSource, MeterSource):
        monkeypatch.setattr(importlib.import_module(source._home), source._variable, None)


def test_nobody_listens_and_nothing_is_imported(run_python: Callable[..., str]) -> None:
    program = """
import sys
from crux_workspace.telemetry import OperationRecorder, Telemetry
recorder = OperationRecorder(Telemetry(), "w")
span = recorder.start("write"); span.finish(size=1); recorder.version_marker(None, 1, "write")
print(recorder.listening, any("opentelemetry" in name for name in sys.modules))
"""
    assert run_python(program) == "False False"


@pytest.mark.parametrize("imported_before", [True, False])
def test_global_providers_set_late_are_noticed(
    run_python: Callable[..., str], imported_before: bool
) -> None:
    program = f"""
from crux_workspace.telemetry import OperationRecorder, Telemetry
recorder = OperationRecorder(Telemetry(), "w")
if {imported_before}:
    from opentelemetry import metrics, trace
seen = [recorder.listening, recorder.listening]
recorder.start("lost").finish()
{SDK}
seen.append(recorder.listening)
trace.set_tracer_provider(tracers)
seen.append(recorder.listening)
recorder.start("write").finish(size=3)
before = recorder.metrics.listening
metrics.set_meter_provider(MeterProvider([reader]))
recorder.start("read").finish(size=3)
names = [metric.name for resource in reader.get_metrics_data().resource_metrics
         for scope in resource.scope_metrics for metric in scope.metrics]
operations = [span.attributes["crux.workspace.operation"] for span in exporter.get_finished_spans()]
print(seen, before, operations, sorted(names))
"""
    assert run_python(program) == (
        "[False, False, False, True] False ['write', 'read'] "
        "['crux.workspace.bytes', 'crux.workspace.operation.duration']"
    )


def test_a_given_proxy_stands_for_the_global_provider(run_python: Callable[..., str]) -> None:
    program = f"""
{SDK}
from crux_workspace.telemetry import OperationRecorder, Telemetry
telemetry = Telemetry(trace.get_tracer_provider(), metrics.get_meter_provider())
recorder = OperationRecorder(telemetry, "w")
seen = [recorder.listening]
trace.set_tracer_provider(tracers)
print(seen + [recorder.listening])
"""
    assert run_python(program) == "[False, True]"


def test_a_provider_named_by_the_environment_is_found(run_python: Callable[..., str]) -> None:
    program = """
import opentelemetry.trace
from crux_workspace.telemetry import OperationRecorder, Telemetry
print(OperationRecorder(Telemetry(), "w").listening)
"""
    named = run_python(program, OTEL_PYTHON_TRACER_PROVIDER="sdk_tracer_provider")
    assert named == "True"


def test_a_disabled_sdk_listens_to_nothing(run_python: Callable[..., str]) -> None:
    program = f"""
{SDK}
from crux_workspace.telemetry import OperationRecorder, Telemetry
recorder = OperationRecorder(Telemetry(tracers, MeterProvider([reader])), "w")
print(recorder.listening, recorder.listening)
"""
    assert run_python(program, OTEL_SDK_DISABLED="true") == "False False"


def test_the_no_op_providers_turn_everything_off() -> None:
    telemetry = Telemetry(trace.NoOpTracerProvider(), metrics.NoOpMeterProvider())
    recorder = OperationRecorder(telemetry, "w")
    assert not recorder.listening
    assert recorder.start("write") is SILENT


@pytest.mark.usefixtures("no_global_providers")
def test_a_half_imported_api_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    source = TracerSource(None)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "opentelemetry.trace", type(sys)("opentelemetry.trace"))
        assert source.find() is None
    assert source.find() is None


@pytest.mark.parametrize(("source", "getter"), [(TracerSource, trace), (MeterSource, metrics)])
def test_the_glance_behind_the_getter_fits_the_installed_release(
    source: type[TracerSource], getter: object
) -> None:
    # Should this fail: nothing breaks, but each look costs 0.6 us more while nobody listens.
    assert hasattr(importlib.import_module(source._home), source._variable)
    assert hasattr(getter, source._getter)


@pytest.mark.usefixtures("no_global_providers")
def test_without_the_glance_the_getter_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TracerSource, "_variable", "_MOVED")
    asked: list[None] = []
    honest = trace.get_tracer_provider

    def asking() -> trace.TracerProvider:
        asked.append(None)
        return honest()

    monkeypatch.setattr(trace, "get_tracer_provider", asking)
    source = TracerSource(None)
    assert source.find() is None
    assert source.find() is None
    assert len(asked) == 2


async def test_no_key_is_loaded_while_nobody_listens_to_spans(listener: Listener) -> None:
    async def load() -> bytes:
        raise AssertionError("loaded")

    telemetry = Telemetry(meter_provider=listener.meter_provider)
    recorder = OperationRecorder(telemetry, "w", load_key=load)
    assert await recorder.hash_path("/a") is None


@pytest.mark.usefixtures("no_global_providers")
def test_silence_allocates_nothing() -> None:
    recorder = OperationRecorder(Telemetry(), "w")

    def operations() -> None:
        for _ in range(1000):
            if recorder.listening:
                raise AssertionError("somebody listens")
            recorder.start("write").finish(kind="file", size=1)
            recorder.version_marker(None, 1, "write")

    operations()
    tracemalloc.start()
    try:
        before = tracemalloc.take_snapshot()
        operations()
        after = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    ours = tracemalloc.Filter(True, "*/crux_workspace/telemetry/*")
    grown = after.filter_traces([ours]).compare_to(before.filter_traces([ours]), "lineno")
    assert sum(line.count_diff for line in grown) <= 2
    assert recorder.start("write") is SILENT


@pytest.mark.usefixtures("no_global_providers")
def test_silence_is_cheap() -> None:
    recorder = OperationRecorder(Telemetry(), "w")
    assert not recorder.listening

    def asked() -> float:
        began = time.process_time()
        for _ in range(10_000):
            if recorder.listening:
                raise AssertionError("somebody listens")
        return time.process_time() - began

    def called() -> float:
        began = time.process_time()
        for _ in range(10_000):
            if _nothing():
                raise AssertionError("nothing is something")
        return time.process_time() - began

    rounds = [(asked(), called()) for _ in range(7)]
    ours, plain = (min(column) for column in zip(*rounds, strict=True))
    assert ours < 25 * plain  # measure_cost.py says what it really is


def _nothing() -> bool:
    return False
