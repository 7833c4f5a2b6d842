"""Figures as files, with the machine that they come from."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from crux_workspace import __version__

__all__ = ["RESULTS", "keep"]

RESULTS = Path(__file__).with_name("results")


def keep(
    rows: list[dict[str, object]], targets: Sequence[Path], *, save: bool, name: str = ""
) -> None:
    """Write the figures to the targets; with `save` also to ``results/<time><name>.json``."""
    described = _machine()
    every = list(targets)
    if save:
        RESULTS.mkdir(exist_ok=True)
        every.append(RESULTS / f"{str(described['at']).replace(':', '')}{name}.json")
    for target in every:
        target.write_text(json.dumps({"machine": described, "rows": rows}, indent=1) + "\n")
        Console().print(f"saved {target.name}")


def _machine() -> dict[str, object]:
    """Describe where the figures come from."""
    return {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": platform.platform(),
        "cpus": os.cpu_count(),
        "version": __version__,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
