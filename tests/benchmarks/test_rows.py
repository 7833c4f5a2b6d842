"""The benchmarks run: every row gives a figure. Whether it is good is for a quiet machine to tell."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import measure, show
from benchmarks.compare import changes
from benchmarks.growth import Scale
from benchmarks.postgres import ROWS, measure_postgres
from benchmarks.rows import ABSOLUTE, GROWTH, PAIRED


async def test_every_row_gives_a_figure() -> None:
    rows = await measure(pairs=2, scale=Scale.quick(files=150))
    names = [str(row["row"]) for row in rows]
    assert len(names) == len(set(names))
    assert len(names) > sum(len(row.durabilities) for row in PAIRED) + len(GROWTH) + len(ABSOLUTE)
    for row in rows:
        assert isinstance(row.get("ratio", row.get("ms", row.get("share"))), float)
        assert "at_most" in row or "at_most_ms" in row
    show(rows)


def test_a_comparison_takes_medians_of_the_rows_that_both_have() -> None:
    old = [{"write": 2.0, "read": 0.5}, {"write": 3.0, "read": 0.5}, {"write": 9.0, "read": 0.5}]
    new = [{"write": 1.5, "list": 1.0}, {"write": 1.5, "list": 1.0}, {"write": 1.2, "list": 1.0}]
    assert changes(old, new) == [("write", 3.0, 1.5, 0.5)]


@pytest.mark.postgres
async def test_every_row_of_postgres_gives_a_figure() -> None:
    rows = await measure_postgres(pairs=2, large=150)
    assert len(rows) == len(ROWS) + len(GROWTH) + 1
    for row in rows:
        assert isinstance(row.get("ratio", row.get("ms")), float)
    show(rows)
