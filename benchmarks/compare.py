"""Compare two revisions: each is measured several times in processes of its own, in turns, and the rows are laid side by side.

Run: python -m benchmarks.compare REVISION [--rounds N] [--large N]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

__all__ = ["changes", "main"]

HERE = Path(__file__).resolve().parent.parent
Figures = dict[str, float]


def measured(tree: Path, arguments: list[str]) -> Figures:
    """Run the benchmarks of a source tree; return each row's figure: a ratio, a share, or ms."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "figures.json"
        command = [sys.executable, "-m", "benchmarks", "--json", str(target), *arguments]
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        subprocess.run(  # noqa: S603 - our own interpreter and module
            command, cwd=tree, env=environment, check=True, stdout=subprocess.DEVNULL
        )
        rows = json.loads(target.read_text())["rows"]
    return {row["row"]: figure(row) for row in rows}


def figure(row: dict[str, float]) -> float:
    """Return what a row is judged by."""
    return next(row[name] for name in ("ratio", "share", "ms") if name in row)


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """Lay a revision out in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(HERE)]
        added = [*git, "worktree", "add", "--quiet", "--detach", str(tree), revision]
        subprocess.run(added, check=True)  # noqa: S603 - git, and a revision that git judges
        try:
            yield tree
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", str(tree)], check=True)  # noqa: S603


def changes(old: list[Figures], new: list[Figures]) -> list[tuple[str, float, float, float]]:
    """Return (row, median of the old runs, median of the new ones, new : old) of the rows that both have."""
    found = []
    for row in new[0]:
        if all(row in run for run in (*old, *new)):
            before = statistics.median(run[row] for run in old)
            after = statistics.median(run[row] for run in new)
            found.append((row, before, after, after / before))
    return found


def main() -> None:
    """Measure both in turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", help="what to compare the working tree with")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each")
    parser.add_argument("--large", default="20000", help="files of the large namespace")
    parser.add_argument("--quick", action="store_true", help="see that it runs")
    given = parser.parse_args()
    arguments = ["--large", given.large, *(["--quick"] if given.quick else [])]
    old: list[Figures] = []
    new: list[Figures] = []
    with checked_out(given.revision) as tree:
        for turn in range(given.rounds):
            pair = [(tree, old), (HERE, new)]
            for where, runs in pair if turn % 2 == 0 else reversed(pair):
                runs.append(measured(where, arguments))
    table = Table(title=f"{given.revision} and the working tree, medians of {given.rounds} runs")
    for column in ("row", given.revision, "working tree", "change"):
        table.add_column(column, justify="left" if column == "row" else "right")
    for row, before, after, change in changes(old, new):
        table.add_row(row, f"{before:.3g}", f"{after:.3g}", f"{change - 1:+.0%}")
    Console().print(table)


if __name__ == "__main__":
    main()
