"""Spans that come in by OTLP, and files' versions told from their markers alone."""

from __future__ import annotations

import gzip
import json
from typing import Any

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from crux_workspace import Telemetry, Workspace, open_workspace
from crux_workspace.server import ServiceLimits
from crux_workspace.server.labels import Labels
from crux_workspace.server.principals import Principals
from crux_workspace.server.traces import TraceBook
from crux_workspace.telemetry.otlp import Marker
from tests.server.conftest import SECRET
from tests.support.services import service_process, serving, token_of

OTLP_JSON = {"content-type": "application/json"}


def export(*markers: tuple[str, Any, str], name: str = "workspace.version") -> dict[str, Any]:
    """An export in JSON; a marker is (path hash, version, span id)."""
    spans = [
        {
            "name": name,
            "traceId": "0af7651916cd43dd8448eb211c80319c",
            "spanId": span_id,
            "startTimeUnixNano": "1700000000123456789",
            "attributes": [
                {"key": "crux.workspace.path_hash", "value": {"stringValue": path_hash}},
                {"key": "crux.workspace.version", "value": {"intValue": version}},
                {"key": "crux.workspace.operation", "value": {"stringValue": "write"}},
            ],
        }
        for path_hash, version, span_id in markers
    ]
    return {"resourceSpans": [{"resource": {"more": 1}, "scopeSpans": [{"spans": spans}]}]}


async def versions(http: httpx.AsyncClient, **params: str) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = (await http.get("/v1/traces/versions", params=params)).json()[
        "files"
    ]
    return files


async def test_markers_become_versions(http: httpx.AsyncClient) -> None:
    body = export(("hash:aa", "1", "1" * 16), ("hash:aa", 2, "2" * 16), ("hash:bb", 1, "3" * 16))
    answer = await http.post("/v1/traces", json=body)
    assert (answer.status_code, answer.json()) == (200, {})
    await http.post("/v1/traces", json=body)  # an exporter that repeats itself
    assert [
        (f["label"], f["path"], [v["version"] for v in f["versions"]]) for f in await versions(http)
    ] == [
        ("hash:aa", None, [2, 1]),
        ("hash:bb", None, [1]),
    ]
    assert (await versions(http))[0]["versions"][0] == {
        "path_hash": "hash:aa",
        "version": 2,
        "operation": "write",
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "span_id": "2222222222222222",
        "at": 1_700_000_000_123,
    }


async def test_other_and_malformed_spans_are_passed_over(http: httpx.AsyncClient) -> None:
    bodies: tuple[dict[str, Any], ...] = (
        export(("hash:aa", 1, "1" * 16), name="workspace.operation"),
        export(("/workspace/a.md", 1, "1" * 16)),
        export(("hash:aa", "x", "1" * 16)),
        export(("hash:aa", 0, "1" * 16)),
        export(("hash:aa", None, "1" * 16)),
        export(("hash:" + "a" * 200, 1, "1" * 16)),
        {},
        {"resourceSpans": []},
        {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "workspace.version"}]}]}]},
    )
    for body in bodies:
        assert (await http.post("/v1/traces", json=body)).status_code == 200, body
    assert await versions(http) == []


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", OTLP_JSON, 400),
        (b"[]", OTLP_JSON, 400),
        (b'{"resourceSpans": 1}', OTLP_JSON, 400),
        (b"\xff\xff\xff", {"content-type": "application/x-protobuf"}, 400),
        (b"{}", {"content-type": "text/plain"}, 415),
        (b"{}", {}, 415),
        (b"{}", OTLP_JSON | {"content-encoding": "gzip"}, 400),
        (b"{}", OTLP_JSON | {"content-encoding": "br"}, 415),
        (gzip.compress(b"{}", mtime=0)[:-4], OTLP_JSON | {"content-encoding": "gzip"}, 400),
        (gzip.compress(b" " * 50_000_000), OTLP_JSON | {"content-encoding": "gzip"}, 413),
        (b" " * 5_000_000, OTLP_JSON, 413),
    ],
)
async def test_what_is_no_export_is_refused(
    http: httpx.AsyncClient, body: bytes, headers: dict[str, str], status: int
) -> None:
    answer = await http.post("/v1/traces", content=body, headers=headers)
    assert answer.status_code == status, answer.text


def test_only_the_newest_are_kept() -> None:
    book = TraceBook(most=3)
    for number in range(5):
        book.add(Marker("hash:a", number + 1, "write", "t", str(number), 0), None)
    [kept] = book.seen_by(None, limited=False).values()
    assert [marker.version for marker in kept] == [3, 4, 5]


def test_one_sender_replaces_and_displaces_nothing_of_another() -> None:
    book = TraceBook(most=6)
    for number in range(2):
        book.add(Marker("hash:a", number + 1, "write", "t", str(number), 0), "first")
    for number in range(50):
        book.add(Marker("hash:a", 100 + number, "write", "t", str(number), 0), "second")
    [own] = book.seen_by("first", limited=True).values()
    assert [marker.version for marker in own] == [1, 2]
    [all_of_them] = book.seen_by("first", limited=False).values()
    assert [marker.version for marker in all_of_them] == [1, 2, 146, 147, 148, 149]


async def test_a_token_does_not_replace_what_another_sent(ws: Workspace) -> None:
    secrets = {name: f"a-secret-of-{name}-for-spans" for name in ("first", "second")}
    tokens = [token_of(secret, name=name) for name, secret in secrets.items()]
    async with serving(ws, tokens=tokens) as url, httpx.AsyncClient(base_url=url) as http:
        for version, secret in enumerate(secrets.values(), 1):
            sent = await http.post(
                "/v1/traces",
                json=export(("hash:a", version, "a" * 16)),
                headers={"authorization": f"Bearer {secret}"},
            )
            assert sent.status_code == 200
        for version, secret in enumerate(secrets.values(), 1):
            answer = await http.get(
                "/v1/traces/versions", headers={"authorization": f"Bearer {secret}"}
            )
            [file] = answer.json()["files"]
            assert [one["version"] for one in file["versions"]] == [version]


async def test_files_are_labelled_where_their_hash_is_known(
    http: httpx.AsyncClient, ws: Workspace
) -> None:
    await ws.write("/workspace/a.md", "x")
    await ws.write("/workspace/secret.md", "x", namespace="other")
    hashes = {
        p: str(await ws._core.recorder.label(p))
        for p in ("/workspace/a.md", "/workspace/secret.md", "/workspace/later.md")
    }
    body = export(*((each, 1, str(n) * 16) for n, each in enumerate(hashes.values(), 1)))
    await http.post("/v1/traces", json=body)
    told = {file["path_hash"]: file["path"] for file in await versions(http, namespace="default")}
    assert told == {
        hashes["/workspace/a.md"]: "/workspace/a.md",
        hashes["/workspace/secret.md"]: None,
        hashes["/workspace/later.md"]: None,
    }
    assert {file["path"] for file in await versions(http)} == {
        "/workspace/a.md",
        "/workspace/secret.md",
        None,
    }
    await ws.write("/workspace/later.md", "x")
    await ws.rename("/workspace/later.md", "/workspace/renamed.md")
    assert "/workspace/later.md" in {file["label"] for file in await versions(http)}
    await ws.drop_namespace("default")
    await ws.write("/outputs/new.md", "x")
    assert [file["path"] for file in await versions(http, namespace="default")] == [None] * 3


async def test_paths_are_kept_of_what_was_asked_for_last_only(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks: list[str] = []
    plain = Workspace.walk

    def walk(self: Workspace, *args: Any, **options: Any) -> Any:
        walks.append(str(self._runner.bound))
        return plain(self, *args, **options)

    monkeypatch.setattr(Workspace, "walk", walk)
    for name in "abc":
        await ws.write("/workspace/a.md", "x", namespace=name)
    caller = Principals(ws, [], write=True).find(None)
    assert caller is not None
    labels = Labels(most=2)
    for name in "abacbac":
        assert list((await labels.find(caller, [name])).values()) == ["/workspace/a.md"]
    assert walks == ["a", "b", "c", "b", "a", "c"]


async def test_a_restricted_token_sees_what_it_sent_itself(ws: Workspace) -> None:
    tokens = [
        token_of(SECRET, name="all", access="readwrite", all_namespaces=True),
        token_of("secret-of-the-part", name="part", mounts=["/outputs"]),
        token_of("secret-of-the-name", name="name", namespaces=["x"]),
    ]
    async with serving(ws, tokens=tokens) as url, httpx.AsyncClient(base_url=url) as http:
        for number, secret in enumerate((SECRET, "secret-of-the-part", "secret-of-the-name"), 1):
            headers = {"authorization": f"Bearer {secret}"}
            body = export((f"hash:{number}", 1, str(number) * 16))
            assert (await http.post("/v1/traces", json=body, headers=headers)).status_code == 200
        for secret, seen in ((SECRET, 3), ("secret-of-the-part", 1), ("secret-of-the-name", 1)):
            answer = await http.get(
                "/v1/traces/versions", headers={"authorization": f"Bearer {secret}"}
            )
            assert len(answer.json()["files"]) == seen


async def test_an_sdk_is_pointed_at_it(tmp_path: Any) -> None:
    """A real exporter, from another process than the service, over one store: paths are named by the shared key."""
    store = f"sqlite:///{tmp_path / 'work.db'}"
    async with service_process(store, "--write") as service:
        import asyncio

        exporter = OTLPSpanExporter(endpoint=f"{service.url}/v1/traces")
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))

        def work() -> None:
            from crux_workspace import open_workspace_sync

            with open_workspace_sync(store, telemetry=Telemetry(tracer_provider=provider)) as ws:
                ws.write("/workspace/a.md", "one")
                ws.append("/workspace/a.md", "two")

        await asyncio.to_thread(work)
        await asyncio.to_thread(provider.shutdown)
        async with httpx.AsyncClient(base_url=service.url) as http:
            [file] = await versions(http)
    assert (file["path"], file["label"]) == ("/workspace/a.md", "/workspace/a.md")
    assert [(v["version"], v["operation"]) for v in file["versions"]] == [
        (2, "append"),
        (1, "write"),
    ]


async def test_requests_join_the_callers_trace_and_tell_no_path() -> None:
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry(tracer_provider=provider)
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    async with (
        open_workspace("memory://", telemetry=telemetry) as ws,
        serving(ws, write=True, telemetry=telemetry, limits=ServiceLimits()) as url,
        httpx.AsyncClient(
            base_url=url, headers={"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"}
        ) as http,
    ):
        body = {"path": "/workspace/zzsecret.md", "content": "x", "status": "draft"}
        file = (await http.post("/v1/write", json=body, params={"namespace": "zzsecret"})).json()
        await http.get("/v1/zzsecret/file")
        assert file["produced_by"]["run_id"] == trace_id
    spans = exporter.get_finished_spans()
    assert {f"{span.context.trace_id:032x}" for span in spans if span.context} == {trace_id}
    names = {span.name for span in spans}
    assert {"POST /v1/write", "GET other", "workspace.operation", "workspace.version"} <= names
    assert "zzsecret" not in json.dumps([json.loads(span.to_json()) for span in spans])
