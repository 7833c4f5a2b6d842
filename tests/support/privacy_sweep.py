"""A pytest plugin (``-p tests.support.privacy_sweep``): every test runs under an exporter, and fails when something private is exported.

What is private is learnt at the doors: paths, namespaces, contents and everything else that a workspace is given or gives back. What
is exported is held against it: names, attributes, events and status of spans, labels of metrics, records of our loggers with their
tracebacks. A value may also only be of the kinds that the documentation names.
"""

from __future__ import annotations

import functools
import inspect
import logging
import re
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import PurePath
from typing import Any
from unittest import mock

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from crux_workspace import SyncWorkspace, Transaction, Workspace, WorkspaceView
from crux_workspace.api.core import WorkspaceCore
from crux_workspace.errors import ErrorCode
from crux_workspace.model.verbs import VERBS
from crux_workspace.telemetry import OperationRecorder, Telemetry, attributes
from crux_workspace.telemetry.recorder import VERSION_SPAN
from crux_workspace.telemetry.spans import OPERATION_SPAN

__all__ = ["Leak", "Sweep"]

KEY = b"a key that the sweep gives to whoever has none"
SCOPE = "crux_workspace"
LOGGERS = ("crux_workspace", "storage_adapters")
_LEAST = 4
"""Shorter texts are in everything; they are caught by what a value may be."""
_VERSION_OPERATIONS = {
    *("write", "edit", "append", "copy", "undo", "redo", "restore", "merge", "delete", "expire"),
    *("finalize", "update"),
}
_PRIVATE_FIELDS = {
    *("path", "content", "text", "preview", "metadata", "uri", "namespace", "find", "replace"),
    *("entries", "matches", "before", "after", "unified"),
}
"""Of what a workspace is given or gives back."""
_STATUSES = {"ok", "error", "cancelled"}
_HASH = re.compile(r"hash:[0-9a-f]{32}")
_KIND = re.compile(r"[A-Za-z_]{1,40}")
_SPANS = {OPERATION_SPAN, VERSION_SPAN}


@dataclass(frozen=True)
class Leak:
    """Something private, or something that nobody has named, in what was exported."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass
class Sweep:
    """Everything that was exported, and everything that must not be."""

    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)
    secrets: dict[str, str] = field(default_factory=dict)
    """Private texts, with where they came from."""
    ids: set[str] = field(default_factory=set)
    """Ids of workspaces, which are exported on purpose."""
    records: list[logging.LogRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)

    # -- what is private

    def learn(self, value: object, origin: str, depth: int = 0) -> None:
        """Remember every text in a value as private."""
        if isinstance(value, str | PurePath):
            self._text(str(value), origin)
        elif isinstance(value, bytes | bytearray | memoryview):
            self._text(bytes(value[:10_000]).decode("utf-8", "replace"), origin)
        elif depth < 6:
            for each in _parts(value):
                self.learn(each, origin, depth + 1)

    def _text(self, text: str, origin: str) -> None:
        lines = text.splitlines()[:50] if len(text) > 200 else [text]
        for part in {*lines, *(p for line in lines for p in line.split("/") if "/" in line)}:
            whole = part.strip()[:200]
            if len(whole) >= _LEAST and whole not in _VOCABULARY:
                self.secrets.setdefault(whole, origin)

    # -- what was exported

    def leaks(self) -> list[Leak]:
        """Return what must not have been exported, and forget everything."""
        told = [*self._spans(), *self._metrics(), *self._logs()]
        known = [leak for leak in told if leak.what]
        self.exporter.clear()
        self.records.clear()
        self.secrets.clear()
        return known

    def _spans(self) -> Iterator[Leak]:
        for span in self.exporter.get_finished_spans():
            if span.instrumentation_scope is None or span.instrumentation_scope.name != SCOPE:
                continue
            where = f"span {span.name}"
            if span.name not in _SPANS:
                yield Leak(where, "has a name that is not documented")
            for name, value in (span.attributes or {}).items():
                yield from self._attribute(f"{where}, {name}", name, value)
            yield from self._told_by(span, where)

    def _told_by(self, span: ReadableSpan, where: str) -> Iterator[Leak]:
        if span.status.description:
            yield Leak(f"{where}, status", f"has the text {span.status.description!r}")
        for event in span.events:
            yield Leak(f"{where}, event", f"{event.name} {dict(event.attributes or {})!r}")
        for link in span.links:
            yield Leak(f"{where}, link", f"{dict(link.attributes or {})!r}")

    def _metrics(self) -> Iterator[Leak]:
        data = self.reader.get_metrics_data()
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics if scope.scope.name == SCOPE else ():
                    for point in metric.data.data_points:
                        for name, value in (point.attributes or {}).items():
                            where = f"metric {metric.name}, {name}"
                            yield from self._attribute(where, name, value)

    def _attribute(self, where: str, name: str, value: object) -> Iterator[Leak]:
        allowed = _ALLOWED.get(name)
        if allowed is None:
            yield Leak(where, f"is not documented; it is {value!r}")
        elif not allowed(self, value):
            yield Leak(where, f"may not be {value!r}")
        exempt = name == attributes.PATH_HASH or value in self.ids or value in _VOCABULARY
        if isinstance(value, str) and not exempt:
            yield from self._secret(where, value)

    def _logs(self) -> Iterator[Leak]:
        for record in self.records:
            where = f"log {record.name} {record.levelname} ({record.filename}:{record.lineno})"
            if record.exc_info and record.exc_info[1] is not None:
                text = "".join(traceback.format_exception(*record.exc_info))
                yield Leak(where, f"has the text of an exception: {text[-200:]!r}")
            yield from self._secret(where, record.getMessage())

    def _secret(self, where: str, text: str) -> Iterator[Leak]:
        for secret, origin in self.secrets.items():
            if secret in text:
                yield Leak(where, f"has {secret!r}, which is {origin}")
                return

    # -- how it listens

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Listen to every workspace that is made or used inside."""
        with ExitStack() as stack:
            stack.enter_context(self._recorders())
            stack.enter_context(self._cores())
            stack.enter_context(self._handlers())
            for kind in (Workspace, WorkspaceView, Transaction, SyncWorkspace):
                for name in (*VERBS, "at", "for_namespace", "acting_as"):
                    method = inspect.getattr_static(kind, name, None)
                    if inspect.isfunction(method):
                        wrapped = self._door(method)
                        stack.enter_context(mock.patch.object(kind, name, wrapped))
            yield

    def _door(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method that learns what goes in, and what comes out as far as it is awaited."""
        name = method.__name__

        def entered(*given: Any) -> None:
            for value in given:
                self.learn(value, f"an argument of {name}")

        async def awaited(this: object, *args: Any, **options: Any) -> Any:
            entered(*args, *options.values())
            result = await method(this, *args, **options)
            self.learn(result, f"a result of {name}")
            return result

        async def iterated(this: object, *args: Any, **options: Any) -> AsyncIterator[Any]:
            entered(*args, *options.values())
            async with aclosing(method(this, *args, **options)) as items:
                async for item in items:
                    self.learn(item, f"a result of {name}")
                    yield item

        def called(this: object, *args: Any, **options: Any) -> Any:
            entered(*args, *options.values())
            result = method(this, *args, **options)
            self.learn(result, f"a result of {name}")
            return result

        door: Callable[..., Any] = called
        if inspect.iscoroutinefunction(method):
            door = awaited
        elif inspect.isasyncgenfunction(method):
            door = iterated
        return functools.wraps(method)(door)

    @contextmanager
    def _recorders(self) -> Iterator[None]:
        made = OperationRecorder.__init__
        sweep = self

        def make(this: OperationRecorder, telemetry: Telemetry, workspace_id: str, **options: Any) -> None:  # fmt: skip
            sweep.ids.add(workspace_id)
            chosen = replace(
                telemetry,
                tracer_provider=telemetry.tracer_provider or sweep.tracers,
                meter_provider=telemetry.meter_provider or sweep.meters,
                path_hash_key=telemetry.path_hash_key or KEY,
            )
            made(this, chosen, workspace_id, **options)

        with mock.patch.object(OperationRecorder, "__init__", make):
            yield

    @contextmanager
    def _cores(self) -> Iterator[None]:
        space = WorkspaceCore.space
        sweep = self

        def learning(this: WorkspaceCore, namespace: str, actor: str | None) -> Any:
            sweep.learn(namespace, "the namespace")
            sweep.learn(actor, "the actor")
            return space(this, namespace, actor)

        with mock.patch.object(WorkspaceCore, "space", learning):
            yield

    @contextmanager
    def _handlers(self) -> Iterator[None]:
        handler = _Handler(self.records)
        loggers = [logging.getLogger(name) for name in LOGGERS]
        levels = [logger.level for logger in loggers]
        for logger in loggers:
            logger.addHandler(handler)
            logger.setLevel(logging.DEBUG)
        yield
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)


def _parts(value: object) -> list[object]:
    if isinstance(value, Mapping):
        return [each for pair in list(value.items())[:200] for each in pair]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)[:200]
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, f.name) for f in fields(value) if f.name in _PRIVATE_FIELDS]
    return []


class _Handler(logging.Handler):
    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__(logging.DEBUG)
        self._records = records

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record)


def _whole(_: Sweep, value: object) -> bool:
    return isinstance(value, int) and value >= 0


_ALLOWED: dict[str, Callable[[Sweep, object], bool]] = {
    attributes.OPERATION: lambda _, value: value in VERBS or value in _VERSION_OPERATIONS,
    attributes.WORKSPACE_ID: lambda sweep, value: value in sweep.ids,
    attributes.PATH_HASH: lambda _, value: bool(_HASH.fullmatch(str(value))),
    attributes.RESULT_KIND: lambda _, value: bool(_KIND.fullmatch(str(value))),
    attributes.SIZE: _whole,
    attributes.VERSION: _whole,
    attributes.STATUS: lambda _, value: value in _STATUSES,
    attributes.ERROR_CODE: lambda _, value: value in ErrorCode.__members__,
}
"""What may stand in each attribute; no other has a name."""
_VOCABULARY = {
    *VERBS,
    *_VERSION_OPERATIONS,
    *_STATUSES,
    *ErrorCode.__members__,
    *("file", "directory", "text", "json", "binary", "artifact", "workspace", "draft", "final"),
    *("true", "false", "null", "None", "True", "False"),
}
"""Words that say nothing of whoever uses them."""


_SWEEP = pytest.StashKey[Sweep]()
LEFT_OUT = {
    "tests/server/test_traces.py::test_an_sdk_is_pointed_at_it": "two processes share the deployment's key, which the sweep replaces",
}
"""Tests that the sweep cannot play, and why."""


def pytest_configure(config: pytest.Config) -> None:
    """Listen for as long as the run lasts."""
    sweep = config.stash[_SWEEP] = Sweep()
    stack = ExitStack()
    stack.enter_context(sweep.installed())
    config.add_cleanup(stack.close)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what cannot be played."""
    left_out = [item for item in items if item.nodeid in LEFT_OUT]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(autouse=True)
def privacy_sweep(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that exported something private."""
    sweep = request.config.stash[_SWEEP]
    sweep.leaks()
    yield
    _counted["spans"] += len(sweep.exporter.get_finished_spans())
    _counted["records"] += len(sweep.records)
    _counted["secrets"] += len(sweep.secrets)
    leaks = sweep.leaks()
    if leaks:
        told = "\n".join(sorted({str(leak) for leak in leaks})[:10])
        pytest.fail(f"exported what is private:\n{told}", pytrace=False)


_counted = {"spans": 0, "records": 0, "secrets": 0}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much was looked at."""
    told = ", ".join(f"{amount} {name}" for name, amount in _counted.items())
    terminalreporter.write_line(f"privacy sweep: {told}")
