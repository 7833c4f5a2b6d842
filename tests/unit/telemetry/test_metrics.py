from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.metrics import NoOpMeterProvider

from crux_workspace.telemetry import OperationRecorder, Telemetry, WorkspaceMetrics

if TYPE_CHECKING:
    from tests.unit.telemetry.conftest import Listener


def test_duration_is_split_by_operation_status_and_code(
    recorder: OperationRecorder, listener: Listener
) -> None:
    recorder.start("write").finish(size=5)
    recorder.start("write").finish(size=7)
    recorder.start("write").fail("VERSION_CONFLICT")
    recorder.start("read").cancel()
    points = listener.points("crux.workspace.operation.duration")
    assert {tuple(sorted(point.attributes.items())): point.count for point in points} == {
        (("crux.workspace.operation", "write"), ("crux.workspace.status", "ok")): 2,
        (
            ("crux.workspace.error_code", "VERSION_CONFLICT"),
            ("crux.workspace.operation", "write"),
            ("crux.workspace.status", "error"),
        ): 1,
        (("crux.workspace.operation", "read"), ("crux.workspace.status", "cancelled")): 1,
    }
    assert all(0 <= point.sum < 1000 for point in points)


def test_conflicts_count_conflicts_only(recorder: OperationRecorder, listener: Listener) -> None:
    for code in ("VERSION_CONFLICT", "TRANSACTION_CONFLICT", "MERGE_CONFLICT"):
        recorder.start("write").fail(code)
    for code in ("PATH_TYPE_CONFLICT", "FILE_NOT_FOUND"):
        recorder.start("write").fail(code)
    (point,) = listener.points("crux.workspace.conflicts")
    assert point.value == 3
    assert dict(point.attributes) == {"crux.workspace.operation": "write"}


def test_bytes_count_what_was_read_or_written(
    recorder: OperationRecorder, listener: Listener
) -> None:
    recorder.start("write").finish(size=5)
    recorder.start("write").finish(size=7)
    recorder.start("read").finish(size=100)
    recorder.start("stat").finish(size=100, is_transfer=False)
    recorder.start("list").finish()
    points = listener.points("crux.workspace.bytes")
    assert {point.attributes["crux.workspace.operation"]: point.value for point in points} == {
        "write": 12,
        "read": 100,
    }


def test_watch_lag_is_a_histogram(recorder: OperationRecorder, listener: Listener) -> None:
    recorder.metrics.record_watch_lag(12)
    recorder.metrics.record_watch_lag(-3)
    (point,) = listener.points("crux.workspace.watch.lag")
    assert (point.count, point.sum, point.min) == (2, 12, 0)


def test_instruments_have_their_units(recorder: OperationRecorder, listener: Listener) -> None:
    recorder.start("write").finish(size=1)
    data = listener.reader.get_metrics_data()
    assert data is not None
    units = {
        metric.name: metric.unit
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert units == {"crux.workspace.operation.duration": "ms", "crux.workspace.bytes": "By"}


def test_metrics_alone_need_no_spans(listener: Listener) -> None:
    recorder = OperationRecorder(Telemetry(meter_provider=listener.meter_provider), "research")
    assert recorder.listening
    span = recorder.start("write")
    assert span.span is None
    span.finish()
    assert listener.points("crux.workspace.operation.duration")[0].count == 1


def test_the_no_op_provider_turns_metrics_off() -> None:
    metrics = WorkspaceMetrics(NoOpMeterProvider())
    assert not metrics.listening
    metrics.record_duration("write", 1.0, "ok")
    metrics.add_conflict("write")
    metrics.add_bytes("write", 1)
    metrics.record_watch_lag(1)
