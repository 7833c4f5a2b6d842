"""A collector that takes OTLP over HTTP, as the exporters send it, and keeps what it got."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

__all__ = ["Receiver", "receiving"]


class Receiver:
    """What arrived, decoded; `raw` has the bodies as they came."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.raw: list[bytes] = []
        self._traces: list[Any] = []
        self._metrics: list[Any] = []
        self._lock = Lock()

    def take(self, path: str, body: bytes) -> bytes:
        """Decode one request and return the answer."""
        kind: Any = ExportTraceServiceRequest if path == "/v1/traces" else ExportMetricsServiceRequest  # fmt: skip
        request = kind.FromString(body)
        with self._lock:
            self.raw.append(body)
            (self._traces if path == "/v1/traces" else self._metrics).append(request)
        answer: Any = (
            ExportTraceServiceResponse if path == "/v1/traces" else ExportMetricsServiceResponse
        )
        return bytes(answer().SerializeToString())

    @property
    def spans(self) -> list[Any]:
        """All spans, in the order in which they came."""
        return [
            span
            for request in self._traces
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def ours(self) -> list[Any]:
        """The spans of our instrumentation scope."""
        return [
            span
            for request in self._traces
            for resource in request.resource_spans
            for scope in resource.scope_spans
            if scope.scope.name == "crux_workspace"
            for span in scope.spans
        ]

    @property
    def metrics(self) -> dict[str, Any]:
        """The newest state of each metric of ours, by name."""
        return {
            metric.name: metric
            for request in self._metrics
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            if scope.scope.name == "crux_workspace"
            for metric in scope.metrics
        }


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            answer = receiver.take(self.path, body)
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
