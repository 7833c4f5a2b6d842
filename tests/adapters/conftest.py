"""Stores, batches and proofs for the adapter tests."""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crux_workspace.storage import Batch, Plan, Put, Reader
from crux_workspace.storage.layout import META_KEY, decode_meta
from storage_adapters.sql import SqliteRecordStore, opening, store

PART = "ws\x01n\x01"


class Writing:
    """Builds plans that write one file each, as the engine would."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)

    def plan(self, name: str, body: bytes = b"text") -> Plan:
        async def plan(reader: Reader) -> Batch:
            key = f"head\x01{name}\x01"
            meta, head = await reader.get_many([META_KEY, key], bodies=False)
            return Batch(
                commit_id=f"{os.getpid():016x}{next(self._ids):016x}",
                verb="write",
                now=1,
                incarnation=None if meta is None else decode_meta(meta.value).incarnation,
                expect={key: 0 if head is None else head.revision},
                expect_empty=[(f"head\x01{name}\x02", f"head\x01{name}\x03")],
                puts=[Put(key, b"{}", body)],
                counters={"files": (1 if head is None else 0, None)},
            )

        return plan


@pytest.fixture
def writing() -> Writing:
    return Writing()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.db"


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[opening.Connections]:
    """What the stores of this test hold open."""
    opened: list[opening.Connections] = []

    def remember(*arguments: Any, **options: Any) -> opening.Connections:
        opened.append(opening.open_connections(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr(store, "open_connections", remember)
    return opened


@pytest.fixture
async def sqlite(
    path: Path, connections: list[opening.Connections]
) -> AsyncIterator[SqliteRecordStore]:
    async with await SqliteRecordStore.open(path, durability="normal") as opened:
        yield opened


@pytest.fixture
def audit(path: Path) -> Callable[[], tuple[int, int, int]]:
    """Proves the file whole and free of bodies without an owner; returns (heads, logs, sequence)."""

    def prove() -> tuple[int, int, int]:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
            (lost,) = connection.execute(
                "select count(*) from bodies where id not in "
                "(select body_id from records where body_id is not null)"
            ).fetchone()
            assert lost == 0
            (dangling,) = connection.execute(
                "select count(*) from records where body_id not in (select id from bodies)"
            ).fetchone()
            assert dangling == 0
            (owners,) = connection.execute(
                "select count(*) - count(distinct body_id) from records where body_id is not null"
            ).fetchone()
            assert owners == 0
            count = "select count(*) from records where key >= ? and key < ?"
            (heads,) = connection.execute(count, ("head\x01", "head\x02")).fetchone()
            (logs,) = connection.execute(count, ("log\x01", "log\x02")).fetchone()
            row = connection.execute(
                "select value from records where key = ?", (META_KEY,)
            ).fetchone()
            return heads, logs, 0 if row is None else decode_meta(row[0]).sequence

    return prove


@pytest.fixture
def spawn() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts Python processes that see the same packages; those left are killed at the end."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str, *arguments: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
