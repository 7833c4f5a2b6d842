from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.metrics import Meter, MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from crux_workspace.telemetry import OperationRecorder, Telemetry, path_hash

HIDDEN = "/workspace/secret.md"
HASH = path_hash(HIDDEN, b"key")


class BrokenProcessor(SpanProcessor):
    def __init__(self, when: str) -> None:
        self.when = when

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        if self.when == "start":
            raise RuntimeError(HIDDEN)

    def on_end(self, span: ReadableSpan) -> None:
        if self.when == "end":
            raise RuntimeError(HIDDEN)


class BrokenExporter(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        raise RuntimeError("exporter")


class BrokenTracerProvider(trace.TracerProvider):
    def get_tracer(self, *_: Any, **__: Any) -> trace.Tracer:
        raise RuntimeError(HIDDEN)


class BrokenMeterProvider(MeterProvider):
    def get_meter(self, *_: Any, **__: Any) -> Meter:
        raise RuntimeError(HIDDEN)


class BrokenInstrument:
    def add(self, *_: Any, **__: Any) -> None:
        raise RuntimeError(HIDDEN)

    record = add


class BrokenMeter:
    def __init__(self, *, creates: bool) -> None:
        self.creates = creates

    def get_meter(self, *_: Any, **__: Any) -> Any:
        return self

    def create_counter(self, *_: Any, **__: Any) -> Any:
        if self.creates:
            return BrokenInstrument()
        raise RuntimeError(HIDDEN)

    create_histogram = create_counter


class BrokenSpan(trace.NonRecordingSpan):
    def is_recording(self) -> bool:
        return True

    def set_attributes(self, attributes: Any) -> None:
        raise RuntimeError(HIDDEN)

    def end(self, end_time: int | None = None) -> None:
        raise RuntimeError(HIDDEN)


class BrokenSpanProvider(trace.TracerProvider, trace.Tracer):
    def get_tracer(self, *_: Any, **__: Any) -> trace.Tracer:
        return self

    def start_span(self, *_: Any, **__: Any) -> trace.Span:
        return BrokenSpan(trace.INVALID_SPAN_CONTEXT)

    def start_as_current_span(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("unused")


def use(recorder: OperationRecorder) -> None:
    """Run every call; the context must be what it was."""
    before = context.get_current()
    span = recorder.start("write")
    recorder.version_marker(HASH, 1, "write")
    span.finish(kind="file", size=1, path_hash=HASH)
    recorder.start("write").fail("VERSION_CONFLICT")
    recorder.start("write").abort(ValueError(HIDDEN))
    recorder.metrics.record_watch_lag(1)
    assert context.get_current() == before


def provider_with(processor: SpanProcessor) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return provider


@pytest.mark.parametrize(
    "telemetry",
    [
        Telemetry(provider_with(BrokenProcessor("start"))),
        Telemetry(provider_with(BrokenProcessor("end"))),
        Telemetry(BrokenSpanProvider()),
        Telemetry(BrokenTracerProvider(), BrokenMeterProvider()),
        Telemetry(meter_provider=BrokenMeter(creates=True)),  # type: ignore[arg-type]
        Telemetry(meter_provider=BrokenMeter(creates=False)),  # type: ignore[arg-type]
    ],
    ids=["on_start", "on_end", "span", "providers", "instruments", "meter"],
)
def test_a_broken_listener_never_breaks_an_operation(
    telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    use(OperationRecorder(telemetry, "research"))
    ours = [entry for entry in caplog.records if entry.name == "crux_workspace"]
    assert ours
    assert all(entry.levelno == logging.DEBUG for entry in ours)
    assert not any("secret" in entry.getMessage() or entry.exc_info for entry in ours)


def test_a_broken_exporter_never_breaks_an_operation() -> None:
    use(OperationRecorder(Telemetry(provider_with(SimpleSpanProcessor(BrokenExporter()))), "w"))


def test_a_broken_context_never_breaks_an_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> None:
        raise RuntimeError(HIDDEN)

    recorder = OperationRecorder(Telemetry(TracerProvider(shutdown_on_exit=False)), "research")
    before = context.get_current()
    token = context.attach(before)
    span = recorder.start("write")
    with monkeypatch.context() as patched:
        patched.setattr(context, "detach", broken)
        span.finish()
    context.detach(token)
