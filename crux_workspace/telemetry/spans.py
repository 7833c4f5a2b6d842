"""The span of one operation: current while it runs, ended once, whatever happens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from crux_workspace.errors import ErrorCode, WorkspaceError
from crux_workspace.telemetry.attributes import Attributes, outcome_attributes
from crux_workspace.telemetry.guard import note_failure
from crux_workspace.telemetry.metrics import CONFLICT_CODES, WorkspaceMetrics
from crux_workspace.telemetry.path_hash import PathHash
from crux_workspace.telemetry.provenance import CALLER, api_modules, calling_span

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

__all__ = ["OPERATION_SPAN", "SILENT", "OperationSpan"]

OPERATION_SPAN = "workspace.operation"


class OperationSpan:
    """One running operation, as the runner holds it.

    The first of `finish`, `fail`, `cancel` and `abort` ends it; further calls do nothing. They are called in the task that started
    the operation. None of them ever raises.
    """

    __slots__ = ("_began", "_caller", "_is_open", "_metrics", "_operation", "_span", "_token")

    def __init__(self, operation: str, metrics: WorkspaceMetrics) -> None:
        self._operation = operation
        self._metrics = metrics
        self._span: Span | None = None
        self._token: Any = None
        self._caller: Any = None
        self._is_open = True
        self._began = time.perf_counter()

    @property
    def span(self) -> Span | None:
        """The span itself, None when nobody listens to spans."""
        return self._span

    @property
    def is_open(self) -> bool:
        """Whether the operation has not ended."""
        return self._is_open

    def enter(
        self,
        tracer: Tracer,
        begins: Attributes,
        *,
        current: bool,
        within: OperationSpan | None = None,
    ) -> None:
        """Start the span.

        Args:
            tracer: Makes it.
            begins: Its first attributes.
            current: Make it the parent of what this task starts from now on.
            within: The operation that it is a part of: its parent, unless the caller has begun a span of its own meanwhile.
        """
        try:
            context, trace = api_modules()
            around = context.get_current()
            self._caller = calling_span(around)
            parent = around
            if within is not None and within._span is not None and within._caller is self._caller:
                parent = trace.set_span_in_context(within._span, around)
            self._span = tracer.start_span(
                OPERATION_SPAN,
                context=parent,
                attributes=begins,
                record_exception=False,
                set_status_on_exception=False,
            )
            if current:
                self._token = context.attach(self._inside(around))
        except Exception as error:
            note_failure("span start", error)

    def _inside(self, around: Context) -> Context:
        context, trace = api_modules()
        assert self._span is not None
        inside = context.set_value(CALLER, (self._span, self._caller), around)
        made: Context = trace.set_span_in_context(self._span, inside)
        return made

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make a span that was not made current the parent of what this task starts inside; never raises by itself."""
        token: Any = None
        if self._span is not None:
            try:
                context = api_modules()[0]
                token = context.attach(self._inside(context.get_current()))
            except Exception as error:
                note_failure("span context", error)
        try:
            yield
        finally:
            _detach(token)

    def finish(
        self,
        *,
        kind: str | None = None,
        size: int | None = None,
        status: str = "ok",
        path_hash: PathHash | None = None,
        is_transfer: bool = True,
    ) -> None:
        """End the operation as done.

        Args:
            kind: What the result is, e.g. ``file`` or ``text``.
            size: Bytes of the content concerned.
            status: ``ok`` unless said otherwise.
            path_hash: Hash of the path concerned.
            is_transfer: Whether `size` bytes were read or written, and so count in ``crux.workspace.bytes``.
        """
        if not self._is_open:
            return
        if is_transfer:
            self._metrics.add_bytes(self._operation, size)
        outcome = outcome_attributes(status, path_hash=path_hash, kind=kind, size=size)
        self._end(outcome, status, None)

    def fail(self, error_code: str, *, path_hash: PathHash | None = None) -> None:
        """End the operation as failed; only the code is told, nothing of the error's text."""
        if not self._is_open:
            return
        if error_code in CONFLICT_CODES:
            self._metrics.add_conflict(self._operation)
        outcome = outcome_attributes("error", path_hash=path_hash, error_code=error_code)
        self._end(outcome, "error", error_code)

    def cancel(self, *, path_hash: PathHash | None = None) -> None:
        """End the operation as cancelled: neither done nor an error."""
        if self._is_open:
            self._end(outcome_attributes("cancelled", path_hash=path_hash), "cancelled", None)

    def abort(self, error: BaseException, *, path_hash: PathHash | None = None) -> None:
        """End the operation by what it raised: `fail` with the error's code, or `cancel` for what is no `Exception`."""
        if isinstance(error, WorkspaceError):
            self.fail(error.code, path_hash=path_hash)
        elif isinstance(error, Exception):
            self.fail(ErrorCode.INTERNAL, path_hash=path_hash)
        else:
            self.cancel(path_hash=path_hash)

    def _end(self, outcome: Attributes, status: str, error_code: str | None) -> None:
        self._is_open = False
        duration_ms = (time.perf_counter() - self._began) * 1000
        try:
            self._metrics.record_duration(self._operation, duration_ms, status, error_code)
        finally:
            _detach(self._token)
            if self._span is not None:
                _close(self._span, outcome, is_error=status == "error")


def _detach(token: Any) -> None:  # noqa: ANN401 - OpenTelemetry's
    if token is None:
        return
    try:
        api_modules()[0].detach(token)
    except Exception as error:
        note_failure("span context", error)


def _close(span: Span, outcome: Attributes, *, is_error: bool) -> None:
    try:
        if span.is_recording():
            span.set_attributes(outcome)
            if is_error:
                from opentelemetry.trace import StatusCode

                span.set_status(StatusCode.ERROR)
    except Exception as error:
        note_failure("span attributes", error)
    try:
        span.end()
    except Exception as error:
        note_failure("span end", error)


class _SilentSpan(OperationSpan):
    """The operation that nobody listens to; one object serves all."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("", WorkspaceMetrics())
        self._is_open = False


SILENT: OperationSpan = _SilentSpan()
