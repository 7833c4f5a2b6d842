"""The Grafana dashboard asks for metrics that Prometheus gets from us, and for all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from crux_workspace import Telemetry, open_workspace
from crux_workspace.errors import ConflictError

DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana" / "crux-workspace.json"


@pytest.fixture
async def exported() -> dict[str, set[str]]:
    """Everything that a scrape gets from us: names of samples, with their labels."""
    meters = MeterProvider([PrometheusMetricReader()], shutdown_on_exit=False)
    try:
        async with open_workspace("memory://", telemetry=Telemetry(meter_provider=meters)) as ws:
            async with ws.watch() as events:
                await ws.write("/workspace/a.md", "x")
                await anext(events)
            with pytest.raises(ConflictError):
                await ws.write("/workspace/a.md", "x", if_version=99)
        scraped = generate_latest(REGISTRY).decode()
    finally:
        meters.shutdown()
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(scraped):
        for sample in family.samples:
            if sample.name.startswith("crux_workspace_"):
                found.setdefault(sample.name, set()).update(sample.labels)
    return found


def texts(value: Any) -> Iterator[str]:
    """Yield every query of the dashboard."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name in ("expr", "query") and isinstance(each, str):
                yield each
            else:
                yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)


def dashboard() -> Any:
    return json.loads(DASHBOARD.read_text(encoding="utf-8"))


def queried() -> tuple[set[str], set[str]]:
    """Return the metrics and the labels that the dashboard names."""
    names: set[str] = set()
    for query in texts(dashboard()):
        names.update(re.findall(r"crux_workspace_\w+", query))
    labels = {"crux_workspace_operation", "crux_workspace_status", "crux_workspace_error_code"}
    return names - labels, names & labels


def test_every_metric_and_label_of_the_dashboard_is_exported(exported: dict[str, set[str]]) -> None:
    names, labels = queried()
    assert names
    assert names <= exported.keys()
    assert labels <= set().union(*exported.values())


def test_every_metric_of_ours_is_on_the_dashboard(exported: dict[str, set[str]]) -> None:
    def family(name: str) -> str:
        return re.sub(r"_(total|bucket|count|sum|created)$", "", name)

    assert {family(name) for name in queried()[0]} == {family(name) for name in exported}
    assert len({family(name) for name in exported}) == 4


def test_the_dashboard_can_be_imported() -> None:
    told = dashboard()
    panels = told["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert told["schemaVersion"] >= 36
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}  # fmt: skip
        assert not cells & taken, f"{panel['title']} lies on another panel"
        assert at["x"] + at["w"] <= 24
        taken |= cells
        for target in panel["targets"]:
            for opening, closing in ("()", "{}", "[]"):
                assert target["expr"].count(opening) == target["expr"].count(closing)
            assert "{}" not in target["expr"]
            assert ",," not in target["expr"]


def test_the_counters_of_a_scrape_have_no_private_labels(exported: dict[str, set[str]]) -> None:
    told = set().union(*exported.values()) - {"le"}
    ours = {name for name in told if not name.startswith("otel_scope")}
    assert ours == {"crux_workspace_operation", "crux_workspace_status", "crux_workspace_error_code"}  # fmt: skip
