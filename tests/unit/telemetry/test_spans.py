from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from crux_workspace.errors import ConflictError, ErrorCode, PathNotFoundError
from crux_workspace.telemetry import OperationRecorder, path_hash

if TYPE_CHECKING:
    from tests.unit.telemetry.conftest import Listener

PATH = "/workspace/secret-plan.md"
HASH = path_hash(PATH, b"k" * 32)
TEXT = "the secret text"


def test_a_finished_operation_has_exactly_these_attributes(
    recorder: OperationRecorder, listener: Listener
) -> None:
    assert recorder.listening
    span = recorder.start("write")
    span.finish(kind="file", size=12, path_hash=HASH)
    (done,) = listener.spans
    assert done.name == "workspace.operation"
    assert dict(done.attributes or {}) == {
        "crux.workspace.operation": "write",
        "crux.workspace.id": "research",
        "crux.workspace.path_hash": HASH,
        "crux.workspace.result_kind": "file",
        "crux.workspace.size": 12,
        "crux.workspace.status": "ok",
    }
    assert done.status.status_code is StatusCode.UNSET
    assert done.instrumentation_scope is not None
    assert done.instrumentation_scope.name == "crux_workspace"


def test_what_is_not_known_is_left_out(recorder: OperationRecorder, listener: Listener) -> None:
    recorder.start("list").finish()
    assert dict(listener.spans[0].attributes or {}) == {
        "crux.workspace.operation": "list",
        "crux.workspace.id": "research",
        "crux.workspace.status": "ok",
    }


def test_a_failed_operation_tells_its_code_and_nothing_of_the_error(
    recorder: OperationRecorder, listener: Listener
) -> None:
    recorder.start("read").fail("FILE_NOT_FOUND", path_hash=HASH)
    (done,) = listener.spans
    assert dict(done.attributes or {}) == {
        "crux.workspace.operation": "read",
        "crux.workspace.id": "research",
        "crux.workspace.path_hash": HASH,
        "crux.workspace.status": "error",
        "crux.workspace.error_code": "FILE_NOT_FOUND",
    }
    assert done.status.status_code is StatusCode.ERROR
    assert done.status.description is None
    assert done.events == ()


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (PathNotFoundError(f"no {PATH}"), "error", "FILE_NOT_FOUND"),
        (ConflictError(f"changed {PATH}"), "error", "VERSION_CONFLICT"),
        (ValueError(f"{PATH} {TEXT}"), "error", "INTERNAL"),
        (asyncio.CancelledError(TEXT), "cancelled", None),
        (KeyboardInterrupt(), "cancelled", None),
    ],
)
def test_abort_goes_by_what_was_raised(
    recorder: OperationRecorder,
    listener: Listener,
    error: BaseException,
    status: str,
    code: str | None,
) -> None:
    recorder.start("edit").abort(error, path_hash=HASH)
    (done,) = listener.spans
    attributes = done.attributes or {}
    assert attributes["crux.workspace.status"] == status
    assert attributes.get("crux.workspace.error_code") == code
    assert attributes["crux.workspace.path_hash"] == HASH
    assert (done.status.status_code is StatusCode.ERROR) == (code is not None)
    assert "secret" not in done.to_json()


def test_nested_spans_are_children_and_the_context_is_left_as_it_was(
    recorder: OperationRecorder, listener: Listener
) -> None:
    before = trace.get_current_span()
    outer = recorder.start("transaction")
    inner = recorder.start("write")
    with listener.tracer_provider.get_tracer("driver").start_as_current_span("query"):
        pass
    inner.finish()
    outer.finish()
    assert trace.get_current_span() is before
    query, write, transaction = listener.spans
    assert query.parent is not None
    assert query.parent == write.context
    assert write.parent == transaction.context
    assert transaction.parent is None


async def test_cancellation_ends_the_span_and_leaves_the_context(
    recorder: OperationRecorder, listener: Listener
) -> None:
    left: list[bool] = []

    async def operation() -> None:
        before = trace.get_current_span()
        span = recorder.start("write")
        try:
            await asyncio.sleep(60)
        except BaseException as error:
            span.abort(error)
            left.append(trace.get_current_span() is before)
            raise

    task = asyncio.create_task(operation())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left == [True]
    (done,) = listener.spans
    assert (done.attributes or {})["crux.workspace.status"] == "cancelled"
    assert done.status.status_code is StatusCode.UNSET


async def test_concurrent_operations_do_not_become_each_others_parents(
    recorder: OperationRecorder, listener: Listener
) -> None:
    async def operation(name: str) -> None:
        span = recorder.start(name)
        await asyncio.sleep(0)
        recorder.version_marker(HASH, 1, name)
        await asyncio.sleep(0)
        span.finish()

    await asyncio.gather(*(operation(f"op{n}") for n in range(5)))
    spans = {span.context.span_id: span for span in listener.spans if span.context is not None}
    markers = [span for span in spans.values() if span.name == "workspace.version"]
    assert len(markers) == 5
    for marker in markers:
        assert marker.parent is not None
        parent = spans[marker.parent.span_id]
        assert parent.parent is None
        key = "crux.workspace.operation"
        assert (parent.attributes or {})[key] == (marker.attributes or {})[key]


def test_a_version_marker_has_exactly_these_attributes(
    recorder: OperationRecorder, listener: Listener
) -> None:
    span = recorder.start("write")
    recorder.version_marker(HASH, 7, "write")
    span.finish()
    marker, operation = listener.spans
    assert marker.name == "workspace.version"
    assert dict(marker.attributes or {}) == {
        "crux.workspace.version": 7,
        "crux.workspace.operation": "write",
        "crux.workspace.path_hash": HASH,
    }
    assert marker.parent == operation.context
    assert marker.end_time is not None


def test_an_operation_that_is_not_current_can_be_named_as_parent(
    recorder: OperationRecorder, listener: Listener
) -> None:
    before = trace.get_current_span()
    span = recorder.start("stream", current=False)
    assert trace.get_current_span() is before
    recorder.version_marker(None, 2, "stream", within=span)
    span.finish()
    marker, operation = listener.spans
    assert marker.parent == operation.context


def test_an_operation_ends_once(recorder: OperationRecorder, listener: Listener) -> None:
    span = recorder.start("write")
    span.finish(size=3)
    span.finish(size=4)
    span.fail("INTERNAL")
    span.cancel()
    (done,) = listener.spans
    assert (done.attributes or {})["crux.workspace.size"] == 3
    (point,) = listener.points("crux.workspace.operation.duration")
    assert point.count == 1


class Kind(StrEnum):
    TEXT = "text"


class Odd:
    def __str__(self) -> str:
        raise AssertionError(PATH)

    __repr__ = __str__


@pytest.mark.parametrize(
    "odd", [None, Odd(), [PATH], {"path": PATH}, b"bytes", 1.5, True, -1, 1 << 63]
)
def test_odd_values_never_raise_and_are_left_out(
    recorder: OperationRecorder, listener: Listener, odd: Any
) -> None:
    span = recorder.start(odd)
    span.finish(kind=odd, size=odd, status=odd, path_hash=odd)
    recorder.start("read").fail(odd, path_hash=odd)
    recorder.version_marker(odd, odd, odd)
    finished, failed, marker = listener.spans
    assert dict(finished.attributes or {}) == {"crux.workspace.id": "research"}
    assert dict(failed.attributes or {}) == {
        "crux.workspace.operation": "read",
        "crux.workspace.id": "research",
        "crux.workspace.status": "error",
    }
    assert failed.status.status_code is StatusCode.ERROR
    assert dict(marker.attributes or {}) == {}


def test_text_becomes_plain_and_encodable(recorder: OperationRecorder, listener: Listener) -> None:
    recorder.start("lösche\ud800").finish(kind=Kind.TEXT)
    attributes = listener.spans[0].attributes or {}
    assert attributes["crux.workspace.operation"] == "lösche?"
    assert type(attributes["crux.workspace.result_kind"]) is str
    assert attributes["crux.workspace.result_kind"] == "text"


def test_a_raw_path_never_becomes_an_attribute(
    recorder: OperationRecorder, listener: Listener
) -> None:
    recorder.start("read").finish(path_hash=PATH)  # type: ignore[arg-type]
    recorder.version_marker(PATH, 1, "write")  # type: ignore[arg-type]
    recorder.start("read").fail(ErrorCode.FILE_NOT_FOUND, path_hash=PATH)  # type: ignore[arg-type]
    assert len(listener.spans) == 3
    assert not any("secret" in span.to_json() for span in listener.spans)


async def test_hash_path_uses_the_settings_key(recorder: OperationRecorder) -> None:
    assert await recorder.hash_path(PATH) == HASH
