"""What long histories, many files and many namespaces cost, beside the same work where there is little of them."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.floor import BODY, RawFloor
from benchmarks.slices import Slice, fill, opened, paired, url_of
from benchmarks.verbs import FOLLOWED, ON_A_FILE, ON_A_STORE, ON_HOT_FILES, Act, timed
from crux_workspace import Workspace, open_workspace

__all__ = ["Scale", "hot_files", "measure_growth", "namespaces", "versions"]

Row = dict[str, object]
_HOT = [f"/workspace/hot/f{number}.md" for number in range(50)]
_DEEP = "/workspace/hot/deep.md"
_LINE = "{0:05d} of the lines of a long text, of which every version changes one in a hundred"


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is large."""

    files: int = 100_000
    versions: int = 10_000
    namespaces: int = 10_000
    long_history: int = 1_000
    grepped: int = 2_000
    database_bytes: int = 1 << 30
    calls: int = 30

    @classmethod
    def quick(cls, files: int = 2_000) -> Scale:
        """Enough to see that everything runs."""
        return cls(files, 300, 150, 80, 200, 1 << 22, 5)


async def measure_growth(
    folder: Path, small: Workspace, large: Workspace, pairs: int, scale: Scale
) -> list[Row]:
    """Measure all rows; `small` has 100 files and `large` as many as the scale says, each with the same hot ones."""
    rows: list[Row] = []
    async with AsyncExitStack() as stack:
        rows += await hot_files(small, large, pairs, scale)
        few, many = [await opened(folder, f"versions{n}", stack) for n in (100, scale.versions)]
        rows += await versions(few, many, pairs, scale)
        few, many = [await opened(folder, f"namespaces{n}", stack) for n in (100, scale.namespaces)]
        rows += await namespaces(few, many, pairs, scale)
        rows += await _lists(folder, large, pairs, scale, stack)
        rows.append(await _grep(folder, pairs, scale, stack))
        rows += await _long_history(folder, scale, stack)
    rows.append(await _opening(folder, scale))
    rows += _importing()
    return rows


async def hot_files(
    small: Workspace, large: Workspace, pairs: int, scale: Scale, where: str = ""
) -> list[Row]:
    """Compare the verbs on hot files among many with those among a hundred."""
    acts = ON_HOT_FILES | FOLLOWED
    return await _compared(acts, _HOT, small, large, pairs, scale, f"{scale.files} files", where)


async def versions(
    few: Workspace, many: Workspace, pairs: int, scale: Scale, where: str = ""
) -> list[Row]:
    """Write many versions of a file, and a hundred of another; compare the verbs on them."""
    for ws, count in ((few, 100), (many, scale.versions)):
        for _ in range(count):
            await ws.write(_DEEP, BODY)
    acts = ON_A_FILE | FOLLOWED
    what = f"{scale.versions} versions"
    return await _compared(acts, [_DEEP], few, many, pairs, scale, what, where)


async def namespaces(
    few: Workspace, many: Workspace, pairs: int, scale: Scale, where: str = "",
    settle: Callable[[], Awaitable[None]] | None = None,
) -> list[Row]:  # fmt: skip
    """Make many namespaces in a store, and a hundred in another; compare the verbs in one of each, once both have settled."""
    for ws, count in ((few, 100), (many, scale.namespaces)):
        for start in range(0, count, 500):
            chosen = range(start, min(count, start + 500))
            views = [ws.for_namespace(f"n{number:05d}") for number in chosen]
            await asyncio.gather(*(view.write(_HOT[0], BODY) for view in views))
    if settle is not None:
        await settle()
    one, other = (ws.for_namespace("n00050") for ws in (few, many))
    what = f"{scale.namespaces} namespaces"
    rows = await _compared(ON_HOT_FILES, _HOT[:1], one, other, pairs, scale, what, where)
    return rows + await _compared(ON_A_STORE, _HOT[:1], few, many, pairs, scale, what, where)


async def _compared(
    acts: dict[str, Act], paths: list[str], small: Workspace, large: Workspace, pairs: int,
    scale: Scale, what: str, where: str,
) -> list[Row]:  # fmt: skip
    rows: list[Row] = []
    for name, act in acts.items():
        slices = timed(act, paths, scale.calls)
        figures = await paired(partial(slices, small), partial(slices, large), pairs)
        rows.append({"row": f"{name}: {what} / 100{where}", "at_most": 1.3, **figures})
    return rows


def _list_all(ws: Workspace, path: str, entries: int) -> Slice:
    async def slice_of() -> float:
        began = time.perf_counter()
        for _ in range(5):
            assert len((await ws.list(path)).entries) == entries
        return (time.perf_counter() - began) / 5

    return slice_of


async def _lists(
    folder: Path, large: Workspace, pairs: int, scale: Scale, stack: AsyncExitStack
) -> list[Row]:
    """List a directory among many files, and one of directories that have many files each."""
    flat = [f"/workspace/flat/f{number:03d}.md" for number in range(100)]
    directories = max(10, scale.files // 100)
    alone = await opened(folder, "lists", stack)
    wide = await opened(folder, "wide", stack)
    for ws in (alone, large):
        await fill(ws, flat)
    await fill(alone, [f"/workspace/dirs/d{number:04d}/f.md" for number in range(directories)])
    deep = [f"/workspace/dirs/d{n:04d}/f{k:02d}.md" for n in range(directories) for k in range(100)]
    await fill(wide, deep)
    rows: list[Row] = []
    for name, path, entries, ws in (
        (f"list 100 entries: {scale.files} files / alone", "/workspace/flat", 100, large),
        (
            f"list {directories} directories: of 100 files / of 1",
            "/workspace/dirs",
            directories,
            wide,
        ),
    ):
        figures = await paired(_list_all(alone, path, entries), _list_all(ws, path, entries), pairs)
        rows.append({"row": name, "at_most": 1.3, **figures})
        ms = figures["ours_us"] / 1e3
        rows.append({"row": name.split(":")[0] + ", in ms", "at_most_ms": 4.0, "ms": ms})
    return rows


async def _grep(folder: Path, pairs: int, scale: Scale, stack: AsyncExitStack) -> Row:
    """Search small files for a word that a hundredth of them hold, beside a raw scan of as many rows."""
    ws = await opened(folder, "grep", stack)
    paths = [f"/workspace/g/f{number:04d}.md" for number in range(scale.grepped)]
    bodies = dict.fromkeys(paths, BODY)
    bodies |= dict.fromkeys(paths[::100], BODY[:500] + "needle" + BODY[506:])
    hits = len(paths[::100])
    for body in set(bodies.values()):
        await fill(ws, [path for path in paths if bodies[path] == body], body)
    place = folder / "grep-floor"
    place.mkdir()
    raw = RawFloor(place, synchronous="normal")
    stack.callback(raw.close)
    raw.hold(bodies)

    async def ours() -> float:
        began = time.perf_counter()
        for _ in range(5):
            found = await ws.grep("needle", path="/workspace/g")
            assert len(found.matches) == hits
        return (time.perf_counter() - began) / 5

    figures = await paired(lambda: raw.searches("needle", hits, 5), ours, pairs)
    name = f"literal grep, {scale.grepped} files, {hits} hits / raw scan with instr"
    return {"row": name, "at_most": 1.0, **figures}


async def _long_history(folder: Path, scale: Scale, stack: AsyncExitStack) -> list[Row]:
    """Keep versions of a text of 100 KB that change one line in a hundred; read each of them."""
    ws = await opened(folder, "history", stack, inline=200_000)
    lines = [_LINE.format(number) for number in range(1_200)]
    full = 0
    for version in range(scale.long_history):
        for line in range(version % 100, len(lines), 100):
            lines[line] = _LINE.format((version + 1) * 7919 + line * 104_729)
        text = "\n".join(lines)
        full += len(text)
        await ws.write(_DEEP, text)
    with closing(sqlite3.connect(folder / "history.db")) as raw:
        (kept,) = raw.execute(
            "select sum(length(r.value) + coalesce(length(b.data), 0)) from records r "
            "left join bodies b on b.id = r.body_id where r.key >= 'state' and r.key < 'statf'"
        ).fetchone()
    worst = 0.0
    for version in range(1, scale.long_history + 1):
        best = 1.0
        for _ in range(3):
            began = time.perf_counter()
            await ws.read(_DEEP, version=version)
            best = min(best, time.perf_counter() - began)
        worst = max(worst, best)
    name = f"{scale.long_history} versions of 100 KB, 1 % edits"
    return [
        {"row": f"{name}: kept / full copies", "at_most": 0.10, "share": kept / full},
        {"row": f"{name}: slowest read of a version", "at_most_ms": 10.0, "ms": worst * 1e3},
    ]


async def _opening(folder: Path, scale: Scale) -> Row:
    """Open a large database, look at one file, and close it."""
    url = url_of(folder, "opening", "normal")
    body = BODY * 62
    async with open_workspace(url) as ws:
        await fill(
            ws,
            [f"/workspace/f{number}.md" for number in range(scale.database_bytes // len(body))],
            body,
        )
    took = []
    for _ in range(5):
        began = time.perf_counter()
        async with open_workspace(url) as ws:
            await ws.stat("/workspace/f1.md")
            took.append((time.perf_counter() - began) * 1e3)
    name = f"open a database of {scale.database_bytes >> 20} MiB and look at a file"
    return {"row": name, "at_most_ms": 50.0, "ms": statistics.median(took)}


def _importing() -> list[Row]:
    """Import the library, and what opens a workspace, in a fresh interpreter, beside one that imports nothing."""

    def took(code: str) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, env=compiled)  # noqa: S603 - our own texts
        return (time.perf_counter() - began) * 1e3

    # As an installed library is imported: from bytecode, which the first of the nine writes.
    compiled = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    bare = min(took("pass") for _ in range(9))
    return [
        {
            "row": f"{code}, over bare python",
            "at_most_ms": 100.0,
            "ms": min(took(code) for _ in range(9)) - bare,
        }
        for code in ("import crux_workspace", "from crux_workspace import open_workspace")
    ]
