"""`check-store`: a report, an exit code, and usage errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

STORES = """
from crux_workspace.storage import MemoryAssetStore, MemoryRecordStore, StoreCapabilities, memory_storage
from crux_workspace.testing.broken_commits import ForgetsRevisions
from storage_adapters.sql import SqliteRecordStore

def memory():
    return MemoryRecordStore()

def assets():
    return MemoryAssetStore()

async def sqlite():
    return await SqliteRecordStore.open("checked.db", durability="normal")

def both():
    return memory_storage()

def broken():
    return ForgetsRevisions()

def nothing():
    class Thing:
        async def aclose(self):
            pass
    return Thing()
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "my_stores.py").write_text(STORES)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        [sys.executable, "-m", "crux_workspace.cli", "check-store", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("memory", ["records: MemoryRecordStore", "base ", "one process at a time", "conforms"]),
        ("sqlite", ["records: SqliteRecordStore", "declares: search", "multi_process", "durable"]),
        ("assets", ["assets: MemoryAssetStore", "verdict: conforms"]),
        ("both", ["records: MemoryRecordStore", "assets: MemoryAssetStore"]),
    ],
)
def test_a_store_that_conforms_is_told_so(tmp_path: Path, name: str, words: list[str]) -> None:
    done = run(tmp_path, f"my_stores:{name}")
    assert done.returncode == 0, done.stdout + done.stderr
    for word in words:
        assert word in done.stdout
    assert "FAILED" not in done.stdout


def test_a_store_that_does_not_fails_and_says_by_which_checks(tmp_path: Path) -> None:
    done = run(tmp_path, "my_stores:broken")
    assert done.returncode == 1
    assert "FAILED R-031" in done.stdout
    assert "verdict: does not conform" in done.stdout
    told = run(tmp_path, "my_stores:broken", "--json")
    assert told.returncode == 1
    report = json.loads(told.stdout)
    assert not report["passed"]
    failed = {o["id"] for o in report["reports"][0]["outcomes"] if o["status"] == "failed"}
    assert "R-031" in failed


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("my_stores:nothing", "neither a record store nor an asset store"),
        ("my_stores:absent", "no attribute"),
        ("no_such_module:x", "no module"),
        ("my_stores", "MODULE:ATTR"),
    ],
)
def test_what_is_no_factory_is_wrong_usage(tmp_path: Path, spec: str, words: str) -> None:
    done = run(tmp_path, spec)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.replace("│", " ").split())
