"""The benchmarks run: every row gives a figure. Whether it is good is for a quiet machine to tell."""

from __future__ import annotations

from benchmarks.__main__ import measure, show
from benchmarks.growth import Scale
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
