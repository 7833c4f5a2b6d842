"""How often a commit lets go of the interpreter: each step of a statement does, and beside a busy thread each costs a switch."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from crux_workspace import Workspace, workspace
from crux_workspace.storage import MemoryAssetStore
from storage_adapters.sql import SqliteRecordStore
from storage_adapters.sql import store as module
from storage_adapters.sql.opening import Connections, open_connections

BODY = "x" * 1024


class _Cursor:
    def __init__(self, inner: sqlite3.Cursor, steps: Counter[str], text: str) -> None:
        self._inner = inner
        self._steps = steps
        self._text = text

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def fetchall(self) -> list[Any]:
        rows = self._inner.fetchall()
        self._steps[self._text] += len(rows)  # the first row, or the end, came with execute
        return rows


class _Counting:
    """A connection that counts the steps of its statements."""

    def __init__(self, inner: sqlite3.Connection, steps: Counter[str]) -> None:
        self._inner = inner
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def execute(self, text: str, *parameters: Any) -> _Cursor:
        self._steps[text] += 1
        return _Cursor(self._inner.execute(text, *parameters), self._steps, text)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counted: Counter[str] = Counter()

    def counting(*arguments: Any, **options: Any) -> Connections:
        opened = open_connections(*arguments, **options)
        opened.writer = _Counting(opened.writer, counted)  # type: ignore[assignment]
        return opened

    monkeypatch.setattr(module, "open_connections", counting)
    return counted


@pytest.fixture
async def ws(path: Path, steps: Counter[str]) -> Any:
    del steps
    async with await SqliteRecordStore.open(path, durability="normal") as records:
        yield workspace(id="w", namespace="n", records=records, assets=MemoryAssetStore())


async def _taken(steps: Counter[str], work: Any) -> int:
    before = steps.total()
    await work
    return steps.total() - before


async def test_a_lone_commit_takes_at_most_twelve_steps(ws: Workspace, steps: Counter[str]) -> None:
    await ws.write("/workspace/d/first.md", BODY)
    assert await _taken(steps, ws.write("/workspace/d/a.md", BODY)) <= 12
    assert await _taken(steps, ws.write("/workspace/d/a.md", BODY)) <= 12
    assert await _taken(steps, ws.append("/workspace/d/a.md", "more")) <= 12
    assert await _taken(steps, ws.edit("/workspace/d/a.md", "more", "less")) <= 12
    assert await _taken(steps, ws.delete("/workspace/d/a.md")) <= 12


async def test_a_commit_of_a_group_takes_at_most_four_steps(
    ws: Workspace, steps: Counter[str]
) -> None:
    await asyncio.gather(*(ws.write(f"/workspace/d/{n}.md", BODY) for n in range(64)))
    creating = asyncio.gather(*(ws.write(f"/workspace/e/{n}.md", BODY) for n in range(64)))
    assert await _taken(steps, creating) <= 4 * 64
    overwriting = asyncio.gather(*(ws.write(f"/workspace/e/{n}.md", BODY) for n in range(64)))
    assert await _taken(steps, overwriting) <= 4 * 64
