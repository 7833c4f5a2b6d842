"""Spans, markers and metrics as a collector gets them: by the real SDK, in batches, over OTLP and HTTP."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from crux_workspace import Workspace, open_workspace, open_workspace_sync
from crux_workspace.errors import ConflictError, PathNotFoundError
from crux_workspace.telemetry import path_hash
from tests.observability.conftest import KEY

if TYPE_CHECKING:
    from tests.observability.conftest import Exporting

PATH = "/workspace/secret plans/a.md"
HASH = path_hash(PATH, KEY)
NAMESPACE = "customer:secret"
CONTENT = "the secret content"


def attributes(thing: Any) -> dict[str, Any]:
    """Return the attributes of a span or a data point."""
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value")) for each in thing.attributes
    }


def named(spans: list[Any], operation: str, name: str = "workspace.operation") -> list[Any]:
    return [
        span
        for span in spans
        if span.name == name and attributes(span)["crux.workspace.operation"] == operation
    ]


async def opened(exporting: Exporting) -> Workspace:
    return await open_workspace("memory://", id="shop", namespace=NAMESPACE, telemetry=exporting.telemetry)  # fmt: skip


async def test_an_operation_arrives_joined_to_the_callers_trace(exporting: Exporting) -> None:
    ws = await opened(exporting)
    carrier = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    remote = TraceContextTextMapPropagator().extract(carrier)
    tracer = exporting.tracers.get_tracer("the program")
    with tracer.start_as_current_span("request", context=remote) as request:
        file = await ws.write(PATH, CONTENT)
    await ws.aclose()
    receiver = exporting.flush()
    (write,) = named(receiver.ours, "write")
    (marker,) = named(receiver.ours, "write", "workspace.version")
    assert write.trace_id.hex() == marker.trace_id.hex() == "0af7651916cd43dd8448eb211c80319c"
    assert write.parent_span_id == request.get_span_context().span_id.to_bytes(8, "big")
    assert marker.parent_span_id == write.span_id
    assert attributes(write) == {
        "crux.workspace.operation": "write",
        "crux.workspace.id": "shop",
        "crux.workspace.path_hash": HASH,
        "crux.workspace.result_kind": "file",
        "crux.workspace.size": len(CONTENT),
        "crux.workspace.status": "ok",
    }
    assert attributes(marker) == {
        "crux.workspace.version": file.version,
        "crux.workspace.operation": "write",
        "crux.workspace.path_hash": HASH,
    }
    assert 0 < write.start_time_unix_nano <= marker.start_time_unix_nano
    assert marker.end_time_unix_nano <= write.end_time_unix_nano


async def test_a_failure_arrives_as_a_code_without_a_text(exporting: Exporting) -> None:
    ws = await opened(exporting)
    with pytest.raises(PathNotFoundError):
        await ws.read(PATH)
    await ws.aclose()
    (read,) = named(exporting.flush().ours, "read")
    assert read.status.code == 2
    assert read.status.message == ""
    assert not read.events
    assert attributes(read)["crux.workspace.error_code"] == "FILE_NOT_FOUND"
    assert attributes(read)["crux.workspace.status"] == "error"


async def test_nothing_private_is_in_the_bytes_on_the_wire(exporting: Exporting) -> None:
    ws = await opened(exporting)
    await ws.write(PATH, CONTENT, metadata={"secret": "secret"}, kind="report")
    async with ws.transaction() as tx:
        await tx.edit(PATH, "secret", "very secret")
    await ws.finalize(PATH)
    await ws.for_namespace("secret too").list("/workspace/secret*")
    async for _ in ws.stream(PATH):
        pass
    with pytest.raises(ConflictError):
        await ws.write(PATH, CONTENT, if_version=99)
    await ws.aclose()
    receiver = exporting.flush()
    assert len(receiver.ours) > 8
    assert receiver.metrics
    for body in receiver.raw:
        assert b"secret" not in body
        assert b".md" not in body


async def test_concurrent_tasks_each_have_their_own_parent(exporting: Exporting) -> None:
    ws = await opened(exporting)
    tracer = exporting.tracers.get_tracer("the program")
    parents: dict[str, bytes] = {}

    async def request(number: int) -> None:
        with tracer.start_as_current_span(f"request {number}") as span:
            path = f"/workspace/{number}.md"
            parents[path_hash(path, KEY)] = span.get_span_context().span_id.to_bytes(8, "big")
            await asyncio.sleep(0)
            await ws.write(path, "x")
            await ws.edit(path, "x", "y")

    await asyncio.gather(*(request(number) for number in range(20)))
    await ws.aclose()
    ours = exporting.flush().ours
    by_id = {span.span_id: span for span in ours}
    operations = [*named(ours, "write"), *named(ours, "edit")]
    assert len(operations) == 40
    for span in operations:
        assert span.parent_span_id == parents[attributes(span)["crux.workspace.path_hash"]]
    markers = [span for span in ours if span.name == "workspace.version"]
    assert len(markers) == 40
    for marker in markers:
        parent = attributes(by_id[marker.parent_span_id])
        for name in ("crux.workspace.path_hash", "crux.workspace.operation"):
            assert parent[name] == attributes(marker)[name]


async def test_threads_that_use_the_blocking_form_each_have_their_own_parent(
    exporting: Exporting,
) -> None:
    ws = await opened(exporting)
    sync = ws.as_sync()
    tracer = exporting.tracers.get_tracer("the program")
    together = threading.Barrier(4)

    def request(number: int) -> tuple[str, bytes]:
        path = f"/workspace/{number}.md"
        with tracer.start_as_current_span("request") as span:
            together.wait(10)
            sync.write(path, "x")
            assert list(sync.stream(path)) == [b"x"]
            with sync.transaction() as tx:
                tx.write(path, "y")
        return path_hash(path, KEY), span.get_span_context().span_id.to_bytes(8, "big")

    with ThreadPoolExecutor(4) as pool:
        loop = asyncio.get_running_loop()
        calls = [loop.run_in_executor(pool, request, number) for number in range(4)]
        parents = dict(await asyncio.gather(*calls))
    await ws.aclose()
    ours = exporting.flush().ours
    for operation in ("write", "stream"):
        spans = [s for s in named(ours, operation) if s.parent_span_id in parents.values()]
        found = {attributes(s)["crux.workspace.path_hash"]: s.parent_span_id for s in spans}
        assert found == parents
    transactions = named(ours, "transaction")
    assert sorted(s.parent_span_id for s in transactions) == sorted(parents.values())


def test_a_program_without_a_loop_is_joined_too(exporting: Exporting) -> None:
    tracer = exporting.tracers.get_tracer("the program")
    with open_workspace_sync("memory://", id="shop", telemetry=exporting.telemetry) as ws:
        with tracer.start_as_current_span("request") as span:
            ws.write(PATH, CONTENT)
        ws.write(PATH, CONTENT)
    first, second = named(exporting.flush().ours, "write")
    assert first.parent_span_id == span.get_span_context().span_id.to_bytes(8, "big")
    assert second.parent_span_id == b""
    assert trace.get_current_span() is trace.INVALID_SPAN


async def test_a_transaction_marks_what_it_committed_and_nothing_it_dropped(
    exporting: Exporting,
) -> None:
    ws = await opened(exporting)
    async with ws.transaction() as tx:
        await tx.write(PATH, "one")
        await tx.write(PATH, "two")
        await tx.write("/workspace/b.md", "x")
    with pytest.raises(RuntimeError):
        async with ws.transaction() as tx:
            await tx.write("/workspace/dropped.md", "x")
            raise RuntimeError(CONTENT)
    await ws.aclose()
    ours = exporting.flush().ours
    markers = [span for span in ours if span.name == "workspace.version"]
    found = {(attributes(m)["crux.workspace.path_hash"], attributes(m)["crux.workspace.version"]) for m in markers}  # fmt: skip
    assert found == {(HASH, 1), (path_hash("/workspace/b.md", KEY), 1)}
    done = {attributes(span)["crux.workspace.status"] for span in named(ours, "transaction")}
    assert "ok" in done


async def test_metrics_arrive_with_names_units_labels_and_useful_buckets(
    exporting: Exporting,
) -> None:
    ws = await opened(exporting)
    async with ws.watch() as events:
        await ws.write(PATH, CONTENT)
        await anext(events)
    with pytest.raises(ConflictError):
        await ws.write(PATH, CONTENT, if_version=99)
    await ws.aclose()
    metrics = exporting.flush().metrics
    assert {name: metric.unit for name, metric in metrics.items()} == {
        "crux.workspace.operation.duration": "ms",
        "crux.workspace.conflicts": "{conflict}",
        "crux.workspace.bytes": "By",
        "crux.workspace.watch.lag": "ms",
    }
    duration = metrics["crux.workspace.operation.duration"].histogram.data_points
    labels = [attributes(point) for point in duration]
    assert {"crux.workspace.operation": "write", "crux.workspace.status": "ok"} in labels
    assert {
        "crux.workspace.operation": "write",
        "crux.workspace.status": "error",
        "crux.workspace.error_code": "VERSION_CONFLICT",
    } in labels
    assert min(duration[0].explicit_bounds) < 1
    assert max(duration[0].explicit_bounds) >= 10_000
    (lag,) = metrics["crux.workspace.watch.lag"].histogram.data_points
    assert lag.count == 1
    (moved,) = metrics["crux.workspace.bytes"].sum.data_points
    assert (moved.as_int, attributes(moved)) == (len(CONTENT), {"crux.workspace.operation": "write"})  # fmt: skip
    (conflicts,) = metrics["crux.workspace.conflicts"].sum.data_points
    assert conflicts.as_int == 1


@pytest.mark.filterwarnings("ignore")
async def test_a_collector_that_is_gone_disturbs_nobody(exporting: Exporting) -> None:
    ws = await opened(exporting)
    exporting.receiver.url = "gone"
    await ws.write(PATH, CONTENT)
    exporting.tracers.shutdown()
    exporting.meters.shutdown()
    assert (await ws.append(PATH, "!")).version == 2
    assert await ws.read_text(PATH) == f"{CONTENT}!"
    await ws.aclose()


async def test_a_transaction_is_one_span_with_its_calls_inside(exporting: Exporting) -> None:
    ws = await opened(exporting)
    tracer = exporting.tracers.get_tracer("the program")

    async def sell(tx: Any) -> None:
        await tx.append(PATH, "y")
        if not interfered:
            interfered.append(True)
            await ws.append(PATH, "somebody else")

    interfered: list[bool] = []
    with tracer.start_as_current_span("request") as request:
        async with ws.transaction() as tx:
            await tx.write(PATH, "x")
            with tracer.start_as_current_span("step") as step:
                await tx.write("/workspace/b.md", "x")
        await ws.transaction(sell, max_attempts=5)
    await ws.aclose()
    receiver = exporting.flush()
    first, second = named(receiver.ours, "transaction")
    outer = request.get_span_context().span_id.to_bytes(8, "big")
    assert first.parent_span_id == second.parent_span_id == outer
    one, other = named(receiver.ours, "write")
    assert one.parent_span_id == first.span_id
    assert other.parent_span_id == step.get_span_context().span_id.to_bytes(8, "big")
    appends = named(receiver.ours, "append")
    assert [span.parent_span_id for span in appends].count(second.span_id) == 2
    markers = [span for span in receiver.ours if span.name == "workspace.version"]
    assert {m.parent_span_id for m in markers} >= {first.span_id, second.span_id}
    assert attributes(second) == {
        "crux.workspace.operation": "transaction",
        "crux.workspace.id": "shop",
        "crux.workspace.status": "ok",
    }


@pytest.mark.parametrize(
    ("error", "status"), [(RuntimeError("x"), "cancelled"), (PathNotFoundError("x"), "error")]
)
async def test_a_transaction_that_is_given_up_says_so(
    exporting: Exporting, error: Exception, status: str
) -> None:
    ws = await opened(exporting)

    async def give_up(tx: Any) -> None:
        raise error

    with pytest.raises(type(error)):
        await ws.transaction(give_up)
    with pytest.raises(type(error)):
        async with ws.transaction():
            raise error
    await ws.aclose()
    spans = named(exporting.flush().ours, "transaction")
    assert [attributes(span)["crux.workspace.status"] for span in spans] == [status, status]
