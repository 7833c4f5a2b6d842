"""Measure all rows: floor and ours in alternating slices of one process, order swapped, median of the pairs.

Run: python -m benchmarks [--quick] [--large N] [--save]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.floor import RawFloor
from benchmarks.growth import Scale, measure_growth
from benchmarks.http import measure_http
from benchmarks.postgres import measure_postgres
from benchmarks.redis_rows import measure_redis
from benchmarks.rows import ABSOLUTE, GROWTH, PAIRED
from benchmarks.saving import keep
from benchmarks.slices import filled, paired, url_of
from benchmarks.telemetry import measure_telemetry

_GROUPS = ("sqlite", "postgres", "telemetry")


async def measure(pairs: int, scale: Scale) -> list[dict[str, object]]:
    """Measure every row."""
    found: list[dict[str, object]] = []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for durability in ("normal", "full"):
            place = folder / durability
            place.mkdir()
            floor = RawFloor(place, synchronous=durability)
            stack.callback(floor.close)
            ws = await filled(place, "ours", 0, durability, stack)
            for row in PAIRED:
                if durability in row.durabilities:
                    figures = await paired(partial(row.floor, floor), partial(row.ours, ws), pairs)
                    found.append(
                        {"row": f"{row.name} ({durability})", "at_most": row.at_most, **figures}
                    )
        small = await filled(folder, "small", 100, "normal", stack)
        big = await filled(folder, "big", scale.files, "normal", stack)
        for growth in GROWTH:
            figures = await paired(partial(growth.ours, small), partial(growth.ours, big), pairs)
            found.append(
                {
                    "row": f"{growth.name}: {scale.files} files / 100",
                    "at_most": growth.at_most,
                    **figures,
                }
            )
        for absolute in ABSOLUTE:
            ms = statistics.median(
                [await absolute.ours(small, url_of(folder, "small", "normal")) for _ in range(3)]
            )
            found.append({"row": absolute.name, "at_most_ms": absolute.at_most_ms, "ms": ms})
        found += await measure_growth(folder, small, big, pairs, scale)
    found += await measure_redis(pairs)
    found += await measure_http(pairs)
    return found


def show(rows: list[dict[str, object]]) -> None:
    """Print the table; a row over its limit is marked."""
    table = Table(title="floor and ours, alternating slices, median of the pairs")
    for column in ("row", "floor µs", "ours µs", "ratio [quartiles]", "at most"):
        table.add_column(column, justify="left" if column == "row" else "right")
    for row in rows:
        if "ms" in row:
            over = row["ms"] > row["at_most_ms"]  # type: ignore[operator]
            base = f"{row['base_us']:.0f}" if "base_us" in row else ""
            cells = [str(row["row"]), base, f"{row['ms']:.3f} ms", "", f"{row['at_most_ms']} ms"]
        elif "share" in row:
            over = row["share"] > row["at_most"]  # type: ignore[operator]
            cells = [str(row["row"]), "", f"{row['share']:.2%}", "", f"{row['at_most']:.0%}"]
        else:
            over = row["ratio"] > row["at_most"]  # type: ignore[operator]
            ratio = f"{row['ratio']:.2f} [{row['low']:.2f}-{row['high']:.2f}]"
            cells = [
                str(row["row"]),
                f"{row['base_us']:.0f}",
                f"{row['ours_us']:.0f}",
                ratio,
                f"{row['at_most']}",
            ]
        table.add_row(*cells, style="red" if over else "")
    Console().print(table)


def main() -> None:
    """Measure, print, and with --save keep the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="three pairs and 2,000 files, to see that it runs"
    )
    parser.add_argument("--large", type=int, default=100_000, help="files of the large namespace")
    parser.add_argument("--only", choices=_GROUPS, help="leave the other rows out")
    parser.add_argument("--save", action="store_true", help="write benchmarks/results/<time>.json")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    given = parser.parse_args()
    scale = Scale.quick() if given.quick else Scale(files=given.large)
    pairs = 3 if given.quick else 15
    rows: list[dict[str, object]] = []
    if given.only in (None, "sqlite"):
        rows += asyncio.run(measure(pairs, scale))
    if given.only in (None, "telemetry"):
        rows += asyncio.run(measure_telemetry(pairs))
    if given.only in (None, "postgres"):
        rows += asyncio.run(measure_postgres(pairs, scale))
    show(rows)
    keep(rows, [given.json] if given.json else [], save=given.save)


if __name__ == "__main__":
    main()
