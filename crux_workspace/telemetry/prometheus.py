"""Metrics in Prometheus' text format, for a service that is scraped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from crux_workspace.model.extras import need_extra

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider

__all__ = ["prometheus_metrics", "use_everywhere"]

_MS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000]
_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30]
_BUCKETS = {
    "crux.workspace.operation.duration": _MS,
    "crux.workspace.watch.lag": _MS,
    "http.server.request.duration": _S,
}


def prometheus_metrics() -> tuple[MeterProvider, Callable[[], bytes]]:
    """Make a meter provider, and what tells its metrics as ``/metrics`` does.

    Returns:
        The provider, for `Telemetry` or `use_everywhere`, and a function for ``service_app(metrics=...)``.

    Raises:
        UnsupportedError: The extra ``server`` is not installed (``CAPABILITY_MISSING``).
    """
    need_extra("prometheus_client", "server")
    from opentelemetry.exporter.prometheus import PrometheusMetricReader
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    reader = PrometheusMetricReader(
        disable_target_info=True, scope_info_enabled=False, registry=registry
    )
    views = [
        View(instrument_name=name, aggregation=ExplicitBucketHistogramAggregation(buckets))
        for name, buckets in _BUCKETS.items()
    ]
    provider = MeterProvider(metric_readers=[reader], views=views)
    return provider, lambda: generate_latest(registry)


def use_everywhere(provider: MeterProvider) -> None:
    """Make a provider the process's own, which every workspace finds."""
    from opentelemetry import metrics

    metrics.set_meter_provider(provider)
