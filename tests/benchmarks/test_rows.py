"""The benchmarks run: every row gives a figure. Whether it is good is for a quiet machine to tell."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import benchmarks
from benchmarks.__main__ import measure, show
from benchmarks.compare import changes
from benchmarks.growth import Scale
from benchmarks.postgres import ROWS, measure_postgres
from benchmarks.rows import ABSOLUTE, GROWTH, PAIRED
from benchmarks.saving import keep
from benchmarks.verbs import FOLLOWED, ON_A_FILE, ON_A_STORE, ON_HOT_FILES, WHOLE
from crux_workspace.model.verbs import VERBS

README = Path(benchmarks.__file__).with_name("README.md").read_text(encoding="utf-8")


def _explained() -> list[re.Pattern[str]]:
    """Return what the names of rows that the page explains look like."""
    table = README.partition("| row | the floor | ours |\n")[2].partition("\n\n")[0]
    verbs = "|".join(map(re.escape, ON_HOT_FILES | ON_A_STORE | FOLLOWED))
    return [
        re.compile(re.escape(name).replace("…", ".+").replace("<verb>", f"(?:{verbs})"))
        for line in table.splitlines()[1:]
        for name in line.split(" | ")[0].removeprefix("| ").split(" · ")
    ]


def unexplained(rows: list[dict[str, object]]) -> list[str]:
    patterns = _explained()
    names = [str(row["row"]) for row in rows]
    return [name for name in names if not any(pattern.fullmatch(name) for pattern in patterns)]


async def test_every_row_gives_a_figure() -> None:
    rows = await measure(pairs=2, scale=replace(Scale.quick(files=150), calls=2))
    names = [str(row["row"]) for row in rows]
    assert len(names) == len(set(names))
    assert len(names) > sum(len(row.durabilities) for row in PAIRED) + len(GROWTH) + len(ABSOLUTE)
    for row in rows:
        assert isinstance(row.get("ratio", row.get("ms", row.get("share"))), float)
        assert "at_most" in row or "at_most_ms" in row
    assert unexplained(rows) == []
    strange = ["an unknown row", "fly: 7 files / 100"]
    assert unexplained([{"row": name} for name in strange]) == strange
    show(rows)


def test_every_verb_is_measured_where_there_is_much() -> None:
    """All but those that look at everything: what is measured together stands in one row's name."""
    named = {
        part.removesuffix(", a page of 20")
        for name in ON_HOT_FILES | ON_A_STORE | FOLLOWED
        for part in (name.split(", ") if "page" not in name else [name])
    }
    assert named - {"create"} == set(VERBS) - set(WHOLE)
    of_a_file = set(ON_HOT_FILES) - {"create", "usage", "cursor"}
    assert {name for name in of_a_file if "page" not in name} <= set(ON_A_FILE)


def test_figures_are_kept_with_the_machine_that_they_come_from(tmp_path: Path) -> None:
    target = tmp_path / "figures.json"
    keep([{"row": "a", "ms": 1.0}], [target], save=False)
    kept = json.loads(target.read_text(encoding="utf-8"))
    assert kept["rows"] == [{"row": "a", "ms": 1.0}]
    told = kept["machine"]
    for name in ("python", "sqlite", "system", "cpus", "load", "version", "at"):
        assert told[name], name
    assert told["packages"]["msgspec"]
    assert {"processor", "memory", "revision"} <= set(told)


def test_a_comparison_takes_medians_of_the_rows_that_both_have() -> None:
    old = [{"write": 2.0, "read": 0.5}, {"write": 3.0, "read": 0.5}, {"write": 9.0, "read": 0.5}]
    new = [{"write": 1.5, "list": 1.0}, {"write": 1.5, "list": 1.0}, {"write": 1.2, "list": 1.0}]
    assert changes(old, new) == [("write", 3.0, 1.5, 0.5)]


@pytest.mark.postgres
async def test_every_row_of_postgres_gives_a_figure() -> None:
    rows = await measure_postgres(pairs=2, scale=Scale(150, 150, 120, calls=1))
    verbs = 2 * len(ON_HOT_FILES) + len(ON_A_STORE) + len(ON_A_FILE) + 2 * len(FOLLOWED)
    assert len(rows) == len(ROWS) + len(GROWTH) + verbs + 1
    for row in rows:
        assert isinstance(row.get("ratio", row.get("ms")), float)
    assert unexplained(rows) == []
    show(rows)
