"""A long scenario is watched by an exporter and a log handler: nothing private is in what they get."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from crux_workspace import Limits, Telemetry, Workspace, workspace
from crux_workspace.errors import WorkspaceError
from crux_workspace.storage import Storage
from crux_workspace.storage import storage as bundle
from crux_workspace.testing import FaultyAssetStore, FaultyRecordStore
from storage_adapters import open_storage

PRIVATE = "hush"
OTHER = "rival"


class Watcher:
    """An exporter of spans and metrics, and every log line of every library."""

    def __init__(self) -> None:
        self.spans = InMemorySpanExporter()
        self.metrics = InMemoryMetricReader()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        meters = MeterProvider(metric_readers=[self.metrics])
        self.telemetry = Telemetry(tracer_provider=tracers, meter_provider=meters)
        self.lines: list[str] = []
        self.driver: list[str] = []

    def told(self) -> list[str]:
        """Return everything that was told to somebody."""
        exported = [span.to_json() for span in self.spans.get_finished_spans()]
        data = self.metrics.get_metrics_data()
        return [*exported, "" if data is None else data.to_json(), *self.lines]


class _Lines(logging.Handler):
    def __init__(self, watcher: Watcher) -> None:
        super().__init__(logging.DEBUG)
        self.watcher = watcher

    def emit(self, record: logging.LogRecord) -> None:
        lines = self.watcher.driver if _is_a_drivers(record) else self.watcher.lines
        lines.append(f"{record.name}: {record.getMessage()} {record.args} {record.exc_text}")
        if record.exc_info:
            lines.append("".join(traceback.format_exception(*record.exc_info)))


def _is_a_drivers(record: logging.LogRecord) -> bool:
    """Tell what a driver says for its own developers: names of objects are in it, so docs/deploy-s3.md warns of it."""
    package = record.name.partition(".")[0]
    told_by_s3 = record.levelno == logging.DEBUG and package in ("boto3", "botocore", "urllib3")
    return told_by_s3 or package == "aiosqlite"


@pytest.fixture
def watcher() -> Iterator[Watcher]:
    """Listens to everything at the lowest level."""
    watching = Watcher()
    handler, root = _Lines(watching), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield watching
    root.setLevel(level)
    root.removeHandler(handler)


def made(watcher: Watcher, stored: Storage, word: str, **options: Any) -> Workspace:
    return workspace(
        id="w", namespace=f"{word}-space", storage=stored, telemetry=watcher.telemetry, **options
    )


async def scenario(ws: Workspace, word: str) -> list[BaseException]:
    """Call every verb, in good ways and in bad ones; returns the errors."""
    a, b = f"/workspace/{word}/a.md", f"/outputs/{word}.bin"
    text = f"{word} content\n" * 3
    calls: list[Callable[[], Any]] = [
        lambda: ws.write(a, text, metadata={word: word}, idempotency_key=f"{word}-key"),
        lambda: ws.write(a, text, metadata={word: word}, idempotency_key=f"{word}-key"),
        lambda: ws.write(a, word, idempotency_key=f"{word}-key"),
        lambda: ws.write(b, word.encode(), kind=f"{word}-kind", status="final"),
        lambda: ws.write(f"/workspace/{word}/big", text * 5_000),
        lambda: ws.edit(a, f"{word} content", "x", occurrence=1),
        lambda: ws.edit(a, f"{word} nowhere", "x"),
        lambda: ws.edit(b, word, "x"),
        lambda: ws.append(a, word),
        lambda: ws.append(f"/workspace/{word}/big", word),
        lambda: ws.update(a, lambda value: value + word),
        lambda: ws.set(a, metadata={word: 2}),
        lambda: ws.set(b, status="draft"),
        lambda: ws.write(a, object()),  # type: ignore[arg-type]
        lambda: ws.write(f"/nowhere/{word}", word),
        lambda: ws.write(f"/workspace/{word}\x00", word),
        lambda: ws.write(f"{a}/below", word),
        lambda: ws.write(a, word, if_version=99),
        lambda: ws.read(a),
        lambda: ws.read_text(f"/workspace/{word}/none"),
        lambda: ws.read_text(a, version=77),
        lambda: ws.read_bytes(b),
        lambda: ws.read_json(a),
        lambda: ws.read_many([a, b]),
        lambda: _all(ws.stream(b)),
        lambda: _all(ws.walk("/")),
        lambda: ws.list(f"/workspace/{word}"),
        lambda: ws.list(f"/workspace/**/{word}*", cursor=word),
        lambda: ws.grep(word),
        lambda: ws.grep(f"({word}", regex=True),
        lambda: ws.history(a),
        lambda: ws.diff(a),
        lambda: ws.undo(a),
        lambda: ws.redo(a),
        lambda: ws.finalize(a, kind=word),
        lambda: ws.withdraw(a),
        lambda: ws.artifacts(kind=word),
        lambda: ws.resolve(f"memory://{word}"),
        lambda: _resolve_all(ws),
        lambda: ws.copy(a, f"/outputs/{word}.md"),
        lambda: ws.copy(a, f"/outputs/{word}.md", to_namespace=f"{word}-more"),
        lambda: ws.rename(a, f"/outputs/{word}.md"),
        lambda: ws.rename(f"/workspace/{word}", f"/outputs/{word}"),
        lambda: ws.delete(b),
        lambda: ws.log(path=f"/outputs/{word}"),
        lambda: ws.undo_commit(f"1-{word}"),
        lambda: ws.at(1).read_text(a),
        lambda: ws.at(10**9).read_text(a),
        lambda: ws.delete(f"/outputs/{word}", recursive=True, purge=True),
        lambda: ws.gc(dry_run=False),
        ws.usage,
        lambda: ws.namespaces(word),
        lambda: ws.drop_namespace(f"{word}-more"),
    ]
    errors: list[BaseException] = []
    for call in calls:
        try:
            await call()
        except WorkspaceError as error:
            errors.append(error)
    return errors


async def _all(items: AsyncIterator[Any]) -> None:
    async for _ in items:
        pass


async def _resolve_all(ws: Workspace) -> None:
    for artifact in await ws.artifacts():
        await ws.resolve(artifact.uri)


def nothing_of(word: str, told: list[str]) -> None:
    found = [line[:300] for line in told if word in line.lower()]
    assert not found, found[:3]


async def test_spans_metrics_and_logs_hold_nothing_private(
    storage: Storage, watcher: Watcher
) -> None:
    errors = await scenario(made(watcher, storage, PRIVATE), PRIVATE)
    assert len(errors) > 10
    told = watcher.told()
    assert sum("workspace.operation" in line for line in told) > 50
    assert any("workspace.version" in line for line in told)
    nothing_of(PRIVATE, told)


async def test_the_drivers_logs_hold_nothing_private(tmp_path: Path, watcher: Watcher) -> None:
    async with open_storage(f"sqlite:///{tmp_path}/w.db?durability=normal") as opened:
        await scenario(made(watcher, opened, PRIVATE), PRIVATE)
    nothing_of(PRIVATE, watcher.driver)


async def test_a_failing_store_makes_nobody_talk(storage: Storage, watcher: Watcher) -> None:
    broken = bundle(
        records=FaultyRecordStore(storage.records, fail_on_call=40, and_later=True, when="after"),
        assets=FaultyAssetStore(storage.assets, fail_on_call=3, error=OSError(f"/{PRIVATE}")),  # type: ignore[arg-type]
    )
    errors = await scenario(made(watcher, broken, PRIVATE), PRIVATE)
    assert len(errors) > 20
    nothing_of(PRIVATE, watcher.told())


async def test_a_call_that_fails_in_foreign_code_makes_nobody_talk(
    storage: Storage, watcher: Watcher
) -> None:
    ws = made(watcher, storage, PRIVATE)
    path = f"/workspace/{PRIVATE}"
    await ws.write(path, PRIVATE)

    def broken(value: str) -> str:
        raise ValueError(value)

    with pytest.raises(ValueError, match=PRIVATE):
        await ws.update(path, broken)
    task = asyncio.ensure_future(ws.write(path, b"x" * 1_000_000))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await ws.aclose()
    nothing_of(PRIVATE, watcher.told())


async def test_one_tenants_errors_tell_nothing_of_another(
    storage: Storage, watcher: Watcher
) -> None:
    tight = Limits(max_files=2, max_file_bytes=200_000)
    mine = made(watcher, storage, PRIVATE, limits=tight)
    theirs = made(watcher, storage, OTHER, limits=tight)
    many = [scenario(ws, word) for ws, word in ((mine, PRIVATE), (theirs, OTHER))]
    errors, their_errors = await asyncio.gather(*many)
    assert errors
    for error, foreign in [*((e, OTHER) for e in errors), *((e, PRIVATE) for e in their_errors)]:
        chain = "".join(traceback.format_exception(error))
        assert isinstance(error, WorkspaceError)
        assert foreign not in f"{error!r} {error.to_dict()}"
        assert f"{foreign} content" not in chain
