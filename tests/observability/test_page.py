"""The page about observability names what there is, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from opentelemetry.metrics import NoOpMeter

from crux_workspace.telemetry import attributes, metrics, requests

PAGE = (Path(__file__).parents[2] / "docs" / "observability.md").read_text(encoding="utf-8")


def rows(title: str) -> list[str]:
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| `")]


def test_the_attributes_of_spans_are_those_of_the_code() -> None:
    named = {value for name, value in vars(attributes).items() if name.isupper() and name[0] != "_"}
    told = set(re.findall(r"`(crux\.workspace\.[a-z_.]+)`", PAGE))
    spans = {row.strip("`") for row in rows("Spans")}
    assert spans | {"crux.workspace.version"} == named
    assert named <= told


def test_the_metrics_are_those_of_the_code() -> None:
    made: list[str] = []

    class _Meter(NoOpMeter):
        def create_histogram(self, name: str, *given: object, **options: object) -> object:  # type: ignore[override]
            unit = given[0] if given else options["unit"]
            made.append(f"`{name}`, histogram, {unit}")
            return super().create_histogram(name)

        def create_counter(self, name: str, *given: object, **options: object) -> object:  # type: ignore[override]
            made.append(f"`{name}`, counter")
            return super().create_counter(name)

        def create_observable_counter(  # type: ignore[override]
            self, name: str, *given: object, **options: object
        ) -> object:
            made.append(f"`{name}`, observable counter")
            return super().create_observable_counter(name)

        def create_observable_up_down_counter(  # type: ignore[override]
            self, name: str, *given: object, **options: object
        ) -> object:
            made.append(f"`{name}`, up and down")
            return super().create_observable_up_down_counter(name)

    metrics._Instruments(_Meter("x"))
    requests._Instruments(_Meter("x"))
    assert sorted(row.removesuffix(", bytes") for row in rows("Metrics")) == sorted(made)
