"""What is measured: our side of each row, and the figure that it is held to."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from benchmarks.floor import BODY, RawFloor
from crux_workspace import Edit, Workspace, open_workspace

__all__ = ["ABSOLUTE", "GROWTH", "PAIRED", "AbsoluteRow", "GrowthRow", "PairedRow"]


@dataclass(frozen=True, slots=True)
class PairedRow:
    """A row with a floor: both sides return seconds per operation."""

    name: str
    at_most: float
    floor: Callable[[RawFloor], Awaitable[float]]
    ours: Callable[[Workspace], Awaitable[float]]
    durabilities: tuple[str, ...] = ("normal",)


@dataclass(frozen=True, slots=True)
class GrowthRow:
    """A row that compares a large namespace with a small one."""

    name: str
    at_most: float
    ours: Callable[[Workspace], Awaitable[float]]


@dataclass(frozen=True, slots=True)
class AbsoluteRow:
    """A row with a limit in ms that the contract itself names."""

    name: str
    at_most_ms: float
    ours: Callable[[Workspace, str], Awaitable[float]]
    """Gets the workspace, and the URL at which another process finds the same one."""


_taken = iter(range(10**9))


async def create(ws: Workspace, count: int = 150) -> float:
    """Create files of 1 KiB, one client."""
    began = time.perf_counter()
    for _ in range(count):
        number = next(_taken)
        await ws.write(f"/workspace/d{number % 100}/f{number}.md", BODY)
    return (time.perf_counter() - began) / count


async def overwrite(ws: Workspace, count: int = 150) -> float:
    """Overwrite 50 files of 1 KiB in turn, one client."""
    began = time.perf_counter()
    for number in range(count):
        await ws.write(f"/workspace/hot/f{number % 50}.md", BODY)
    return (time.perf_counter() - began) / count


async def read(ws: Workspace, count: int = 300) -> float:
    """Read files of 1 KiB."""
    began = time.perf_counter()
    for number in range(count):
        await ws.read(f"/workspace/hot/f{number % 50}.md")
    return (time.perf_counter() - began) / count


async def append(ws: Workspace, count: int = 150) -> float:
    """Append a line to one of 50 files of 1 KiB, which are written anew each time, untimed, to stay at their size."""
    spent = 0.0
    for number in range(count):
        path = f"/workspace/hot/f{number % 50}.md"
        if number < 50:
            await ws.write(path, BODY)
        began = time.perf_counter()
        await ws.append(path, "one more line\n")
        spent += time.perf_counter() - began
    return spent / count


async def edit(ws: Workspace, count: int = 75) -> float:
    """Replace the first characters of 50 files of 1 KiB in turn."""
    began = time.perf_counter()
    for number in range(count):
        path = f"/workspace/hot/f{number % 50}.md"
        await ws.edit(path, edits=[Edit(BODY[20:60], BODY[20:60][::-1], replace_all=True)])
        await ws.edit(path, edits=[Edit(BODY[20:60][::-1], BODY[20:60], replace_all=True)])
    return (time.perf_counter() - began) / count / 2


async def stat(ws: Workspace, count: int = 300) -> float:
    """Look at files of 1 KiB."""
    began = time.perf_counter()
    for number in range(count):
        await ws.stat(f"/workspace/hot/f{number % 50}.md")
    return (time.perf_counter() - began) / count


async def overwriting_clients(ws: Workspace, number_of: int = 32, each: int = 10) -> float:
    """Overwrite 50 files of 1 KiB, many clients at once; per commit."""

    async def client() -> None:
        for _ in range(each):
            await ws.write(f"/workspace/hot/f{next(_taken) % 50}.md", BODY)

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(number_of)))
    return (time.perf_counter() - began) / (number_of * each)


async def clients(ws: Workspace, number_of: int = 32, each: int = 10) -> float:
    """Create files of 1 KiB, many clients at once; per commit."""

    async def client() -> None:
        for _ in range(each):
            number = next(_taken)
            await ws.write(f"/workspace/g{number % 100}/f{number}.md", BODY)

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(number_of)))
    return (time.perf_counter() - began) / (number_of * each)


async def transaction_of_100(ws: Workspace, repeats: int = 4) -> float:
    """Create 100 files of 1 KiB in one transaction."""
    began = time.perf_counter()
    for _ in range(repeats):
        async with ws.transaction() as tx:
            for _ in range(100):
                number = next(_taken)
                await tx.write(f"/workspace/t{number % 100}/f{number}.md", BODY)
    return (time.perf_counter() - began) / repeats


async def transaction_of_2(ws: Workspace, repeats: int = 60) -> float:
    """Read two hot files and overwrite them in one transaction."""
    began = time.perf_counter()
    for number in range(repeats):
        async with ws.transaction() as tx:
            for path in (
                f"/workspace/hot/f{number % 25}.md",
                f"/workspace/hot/f{25 + number % 25}.md",
            ):
                text = await tx.read_text(path)
                await tx.write(path, text)
    return (time.perf_counter() - began) / repeats


async def delivery_p99(ws: Workspace, url: str, events: int = 300) -> float:
    """Write one file after the other; 99th percentile from the start of a write to its event in the same process, in ms."""
    del url
    began: dict[str, float] = {}
    late: list[float] = []
    async with ws.watch("/workspace/w", recursive=True) as feed:

        async def follow() -> None:
            async for event in feed:
                late.append((time.perf_counter() - began[event.path]) * 1000)
                if len(late) == events:
                    return

        following = asyncio.create_task(follow())
        for _ in range(events):
            path = f"/workspace/w/f{next(_taken)}.md"
            began[path] = time.perf_counter()
            await ws.write(path, BODY)
        await asyncio.wait_for(following, 30)
    return statistics.quantiles(late, n=100)[98]


_WRITER = """
import random, sys, time
from crux_workspace import open_workspace_sync
with open_workspace_sync(sys.argv[1]) as ws:
    for _ in range(int(sys.argv[2])):
        ws.write(f"/workspace/x/{time.time_ns()}", "x")
        time.sleep(random.uniform(0.005, 0.03))
"""


async def across_processes_p99(
    ws: Workspace, url: str, events: int = 150, poll_ms: int = 50
) -> float:
    """Another process writes; 99th percentile from the start of a write to its event here, in ms."""
    late: list[float] = []
    async with ws.watch("/workspace/x", recursive=True, poll_interval_ms=poll_ms) as feed:
        writer = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _WRITER, url, str(events)
        )
        async for event in feed:
            late.append((time.time_ns() - int(event.path.rpartition("/")[2])) / 1e6)
            if len(late) == events:
                break
        await writer.wait()
    return statistics.quantiles(late, n=100)[98]


async def memory_write(ws: Workspace, url: str, count: int = 2_000) -> float:
    """Overwrite 50 files of 1 KiB in the memory store, one client, in ms."""
    del ws, url
    async with open_workspace("memory://") as memory:
        for number in range(50):
            await memory.write(f"/workspace/hot/f{number}.md", BODY)
        return await overwrite(memory, count) * 1000


async def memory_read(ws: Workspace, url: str, count: int = 5_000) -> float:
    """Read 50 files of 1 KiB from the memory store, in ms."""
    del ws, url
    async with open_workspace("memory://") as memory:
        for number in range(50):
            await memory.write(f"/workspace/hot/f{number}.md", BODY)
        return await read(memory, count) * 1000


PAIRED = (
    PairedRow(
        "write 1 KiB", 1.3, lambda f: f.writes(150, overwrite=False), create, ("normal", "full")
    ),
    PairedRow(
        "overwrite 1 KiB",
        1.2,
        lambda f: f.writes(150, overwrite=True),
        overwrite,
        ("normal", "full"),
    ),
    PairedRow("edit 1 KiB", 1.6, lambda f: f.writes(150, overwrite=True), edit),
    PairedRow("append to 1 KiB", 1.6, lambda f: f.writes(150, overwrite=True), append),
    PairedRow(
        "overwrite 1 KiB / a durable plain file",
        1.0,
        lambda f: f.durable_files(150),
        overwrite,
        ("full",),
    ),
    PairedRow("read 1 KiB / hopped select", 0.5, lambda f: f.selects(300), read),
    PairedRow("stat 1 KiB / hopped select", 0.5, lambda f: f.selects(300), stat),
    PairedRow(
        "32 clients, create, per commit", 1.3, lambda f: f.grouped(32, 10, overwrite=False), clients
    ),
    PairedRow(
        "32 clients, overwrite, per commit",
        1.3,
        lambda f: f.grouped(32, 10, overwrite=True),
        overwriting_clients,
    ),
    PairedRow("transaction of 100 files", 1.2, lambda f: f.batch(100, 4), transaction_of_100),
)
GROWTH = (
    GrowthRow("transaction of 2 files", 1.3, transaction_of_2),
    GrowthRow("overwrite 1 KiB, hot files", 1.3, overwrite),
    GrowthRow("read 1 KiB, hot files", 1.3, read),
)
ABSOLUTE = (
    AbsoluteRow("event in another process, poll 50 ms, p99", 70.0, across_processes_p99),
    AbsoluteRow("write and its event in the same process, p99", 10.0, delivery_p99),
    AbsoluteRow("memory store: write 1 KiB", 0.040, memory_write),
    AbsoluteRow("memory store: read 1 KiB", 0.015, memory_read),
)
