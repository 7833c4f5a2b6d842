from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from crux_workspace import Telemetry
from tests.observability.otlp_receiver import Receiver, receiving
from tests.support.privacy_sweep import Sweep

KEY = b"k" * 32


@dataclass
class Exporting:
    """A program's OpenTelemetry set-up: the SDK with batches over OTLP to a collector."""

    tracers: TracerProvider
    meters: MeterProvider
    receiver: Receiver

    @property
    def telemetry(self) -> Telemetry:
        return Telemetry(self.tracers, self.meters, KEY)

    def flush(self) -> Receiver:
        """Send what waits."""
        assert self.tracers.force_flush()
        assert self.meters.force_flush()
        return self.receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
def exporting(receiver: Receiver) -> Iterator[Exporting]:
    """The whole way: SDK, batch processor, OTLP exporter, HTTP."""
    about = Resource.create({"service.name": "shop"})
    tracers = TracerProvider(resource=about, shutdown_on_exit=False)
    tracers.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(f"{receiver.url}/v1/traces", timeout=5))
    )
    reader = PeriodicExportingMetricReader(
        OTLPMetricExporter(f"{receiver.url}/v1/metrics", timeout=5), 3_600_000
    )
    meters = MeterProvider([reader], resource=about, shutdown_on_exit=False)
    yield Exporting(tracers, meters, receiver)
    tracers.shutdown()
    meters.shutdown()


@pytest.fixture
def sweep() -> Iterator[Sweep]:
    """Looks at everything that is exported while the test runs."""
    made = Sweep()
    with made.installed():
        yield made
