"""The S3 benchmarks run, and streaming takes no more memory than it may; whether it is fast is for a quiet machine to tell."""

from __future__ import annotations

import pytest

from benchmarks.s3 import MOST_EXTRA_MIB, measure, show


@pytest.mark.s3
async def test_every_row_gives_a_figure() -> None:
    rows = await measure(pairs=2, mib=12)
    assert [isinstance(row.get("ratio", row.get("mib")), float) for row in rows] == [True] * 3
    extra = rows[-1]["mib"]
    assert isinstance(extra, float)
    assert 0 < extra <= MOST_EXTRA_MIB
    show(rows)
