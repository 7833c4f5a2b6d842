from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from crux_workspace.telemetry import OperationRecorder, active_provenance

if TYPE_CHECKING:
    from tests.unit.telemetry.conftest import Listener


def ids_of(span: trace.Span) -> tuple[str, str]:
    stamp = span.get_span_context()
    return trace.format_trace_id(stamp.trace_id), trace.format_span_id(stamp.span_id)


def test_without_a_span_there_is_none() -> None:
    assert active_provenance() is None


def test_the_run_id_is_the_spans_attribute(listener: Listener) -> None:
    tracer = listener.tracer_provider.get_tracer("agent")
    with tracer.start_as_current_span("step", attributes={"crux.run_id": "run-7"}) as span:
        assert active_provenance() == ("run-7", ids_of(span)[1])


@pytest.mark.parametrize("attributes", [None, {"crux.run_id": " "}, {"crux.run_id": True}])
def test_else_the_trace_id(listener: Listener, attributes: Any) -> None:
    tracer = listener.tracer_provider.get_tracer("agent")
    with tracer.start_as_current_span("step", attributes=attributes) as span:
        found = active_provenance()
        assert found == ids_of(span)
        assert re.fullmatch(r"[0-9a-f]{32}", found[0])
        assert re.fullmatch(r"[0-9a-f]{16}", found[1])


def test_a_number_is_a_run_id_too(listener: Listener) -> None:
    tracer = listener.tracer_provider.get_tracer("agent")
    with tracer.start_as_current_span("step", attributes={"crux.run_id": 42}):
        assert (active_provenance() or ("", ""))[0] == "42"


def test_our_own_operations_are_looked_through(
    recorder: OperationRecorder, listener: Listener
) -> None:
    outer = recorder.start("transaction")
    assert active_provenance() is None
    outer.finish()
    tracer = listener.tracer_provider.get_tracer("agent")
    with tracer.start_as_current_span("step") as step:
        outer = recorder.start("transaction")
        inner = recorder.start("write")
        assert active_provenance() == ids_of(step)
        inner.finish()
        with tracer.start_as_current_span("callback") as callback:
            assert active_provenance() == ids_of(callback)
            inner = recorder.start("write")
            assert active_provenance() == ids_of(callback)
            inner.finish()
        outer.finish()
        assert active_provenance() == ids_of(step)


def test_a_span_that_does_not_record_is_none() -> None:
    remote = SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    with trace.use_span(NonRecordingSpan(remote)):
        assert active_provenance() is None


class OpaqueSpan(NonRecordingSpan):
    def is_recording(self) -> bool:
        return True


class BrokenSpan(NonRecordingSpan):
    def get_span_context(self) -> SpanContext:
        raise RuntimeError("/workspace/secret.md")


def test_a_span_without_readable_attributes_gives_its_trace_id() -> None:
    with trace.use_span(OpaqueSpan(SpanContext(10, 11, is_remote=False))):
        assert active_provenance() == (f"{10:032x}", f"{11:016x}")


def test_a_broken_span_is_none() -> None:
    with trace.use_span(BrokenSpan(SpanContext(10, 11, is_remote=False))):
        assert active_provenance() is None


def test_nothing_is_imported_for_the_question(run_python: Callable[..., str]) -> None:
    program = (
        "import sys; from crux_workspace.telemetry import active_provenance; "
        "print(active_provenance(), any('opentelemetry' in name for name in sys.modules))"
    )
    assert run_python(program) == "None False"
