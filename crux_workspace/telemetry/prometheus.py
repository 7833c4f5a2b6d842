"""Metrics in Prometheus' text format, for a service that is scraped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from crux_workspace.model.extras import need_extra

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider

__all__ = ["prometheus_metrics", "use_everywhere"]


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
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    reader = PrometheusMetricReader(
        disable_target_info=True, scope_info_enabled=False, registry=registry
    )
    provider = MeterProvider(metric_readers=[reader])
    return provider, lambda: generate_latest(registry)


def use_everywhere(provider: MeterProvider) -> None:
    """Make a provider the process's own, which every workspace finds."""
    from opentelemetry import metrics

    metrics.set_meter_provider(provider)
