"""What is told on the side: the caller's trace goes with each request, and no log says what is in a workspace."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from crux_workspace import Telemetry, open_workspace
from tests.support.http_workspaces import Switchboard, switchboard
from tests.support.services import serving, token_of

SECRET = "a-secret-for-everything"  # noqa: S105 - of the tests
A = "/workspace/a-private-name.md"


@pytest.fixture
async def board() -> AsyncIterator[Switchboard]:
    async with switchboard() as opened:
        yield opened


async def test_a_request_is_part_of_the_callers_trace(board: Switchboard) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    telemetry = Telemetry(tracer_provider=provider)
    async with open_workspace("memory://", telemetry=telemetry) as ws:
        over = board.client(ws, served={"telemetry": telemetry})
        with tracer.start_as_current_span(
            "run", attributes={"crux.run_id": "run 7/\u00e4"}
        ) as span:
            await over.write(A, "one")
        with tracer.start_as_current_span("other") as other:
            await over.acting_as("agent:writer").write(A, "two")
        await over.write(A, "outside of both")
        log = await ws.log()
    assert [entry.actor for entry in log[1:]] == ["agent:writer", "run 7/\u00e4"]
    traces = {
        found.context.trace_id
        for found in exporter.get_finished_spans()
        if found.name == "workspace.operation" and found.context is not None
    }
    assert {span.get_span_context().trace_id, other.get_span_context().trace_id} < traces


async def test_no_log_line_says_what_is_in_a_workspace(caplog: pytest.LogCaptureFixture) -> None:
    from crux_workspace.http import HttpWorkspace

    caplog.set_level(logging.DEBUG)
    token = token_of(SECRET, access="readwrite", all_namespaces=True)
    async with (
        open_workspace("memory://") as ws,
        serving(ws, tokens=[token]) as url,
        HttpWorkspace(url, token=SECRET) as over,
    ):
        await over.write(A, "private content", namespace="private:1")
        await over.write(
            A, b"private bytes" * 50_000, namespace="private:1", metadata={"m": "private"}
        )
        await over.stat(A, namespace="private:1")
        await over.grep("private", namespace="private:1")
    assert "/v1/stat" in caplog.text
    assert "private" not in caplog.text
    assert SECRET not in caplog.text
    elsewhere = logging.getLogger("httpx")
    elsewhere.info("HTTP Request: %s %s", "GET", "https://elsewhere.test/v1/stat?path=shown")
    assert "path=shown" in caplog.text
