"""What the service tells about itself."""

from __future__ import annotations

import re

import httpx
import pytest

from crux_workspace import Telemetry, Workspace, open_workspace
from crux_workspace.errors import StorageError
from crux_workspace.telemetry.prometheus import prometheus_metrics
from tests.support.services import serving


async def test_metrics_are_scraped_and_name_nothing() -> None:
    provider, text = prometheus_metrics()
    telemetry = Telemetry(meter_provider=provider)
    async with (
        open_workspace("memory://", telemetry=telemetry) as ws,
        serving(ws, write=True, telemetry=telemetry, metrics=text) as url,
        httpx.AsyncClient(base_url=url) as http,
    ):
        body = {"path": "/workspace/zzsecret.md", "content": "x" * 100}
        await http.post("/v1/write", json=body, params={"namespace": "zzsecret"})
        await http.post(
            "/v1/write", json=body | {"if_version": 7}, params={"namespace": "zzsecret"}
        )
        await http.patch("/v1/zzsecret")
        told = await http.get("/metrics")
    assert told.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "zzsecret" not in told.text.lower()
    assert re.search(
        r'crux_workspace_operation_duration_milliseconds_count\{[^}]*operation="write"', told.text
    )
    assert re.search(
        r'http_server_request_duration_seconds_count\{[^}]*http_route="/v1/write"[^}]*\} 1',
        told.text,
    )
    assert re.search(r"crux_workspace_conflicts_total\{[^}]*\} 1", told.text)
    assert (
        'http_request_method="_OTHER",http_response_status_code="404",http_route="other"'
        in told.text
    )
    assert re.search(r"http_server_active_requests(\{\})? 1", told.text)


async def test_without_metrics_there_is_no_such_address(http: httpx.AsyncClient) -> None:
    assert (await http.get("/metrics")).status_code == 404


async def test_ready_means_that_the_store_answers(
    http: httpx.AsyncClient, ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await http.get("/readyz")).text == "ready\n"

    async def away(*_: object, **__: object) -> None:
        raise StorageError("postgresql://user:password@db is away")

    monkeypatch.setattr(Workspace, "namespaces", away)
    answer = await http.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "STORE_UNAVAILABLE")
    assert "password" not in answer.text
    assert (await http.get("/healthz")).text == "ok\n"
