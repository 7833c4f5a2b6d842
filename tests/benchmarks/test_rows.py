"""The benchmarks run: every row gives a figure. Whether it is good is for a quiet machine to tell."""

from __future__ import annotations

from benchmarks.__main__ import measure, show
from benchmarks.rows import ABSOLUTE, GROWTH, PAIRED


async def test_every_row_gives_a_figure() -> None:
    rows = await measure(pairs=2, large=150)
    durabilities = sum(len(row.durabilities) for row in PAIRED)
    assert len(rows) == durabilities + len(GROWTH) + len(ABSOLUTE)
    for row in rows:
        assert isinstance(row.get("ratio", row.get("ms")), float)
    show(rows)
