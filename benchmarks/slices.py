"""How two sides are compared, and the workspaces that rows are measured on."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks.floor import BODY
from crux_workspace import ContentOptions, Workspace, open_workspace

__all__ = ["Slice", "fill", "filled", "opened", "paired", "url_of"]

Slice = Callable[[], Awaitable[float]]


async def paired(first: Slice, second: Slice, pairs: int) -> dict[str, float]:
    """Return medians in µs and the median ratio second : first with its quartiles."""
    firsts, seconds, ratios = [], [], []
    for turn in range(pairs):
        if turn % 2:
            b, a = await second(), await first()
        else:
            a, b = await first(), await second()
        firsts.append(a)
        seconds.append(b)
        ratios.append(b / a)
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {
        "base_us": statistics.median(firsts) * 1e6,
        "ours_us": statistics.median(seconds) * 1e6,
        "ratio": middle,
        "low": low,
        "high": high,
    }


def url_of(folder: Path, name: str, durability: str) -> str:
    """Return where a workspace of this run is."""
    return f"sqlite:///{folder}/{name}.db?durability={durability}"


async def opened(
    folder: Path, name: str, stack: AsyncExitStack, *, inline: int = 64_000
) -> Workspace:
    """Open an empty workspace of normal durability."""
    content = ContentOptions(inline_text_below_bytes=inline)
    url = url_of(folder, name, "normal")
    return await stack.enter_async_context(open_workspace(url, content=content))


async def fill(ws: Workspace, paths: list[str], body: str = BODY) -> None:
    """Write files, many in a commit."""
    for start in range(0, len(paths), 500):
        async with ws.transaction() as tx:
            for path in paths[start : start + 500]:
                await tx.write(path, body)


async def filled(
    folder: Path, name: str, files: int, durability: str, stack: AsyncExitStack
) -> Workspace:
    """Open a workspace with 50 hot files among `files` others."""
    url = url_of(folder, name, durability)
    ws = await stack.enter_async_context(open_workspace(url))
    for number in range(50):
        await ws.write(f"/workspace/hot/f{number}.md", BODY)
    await fill(ws, [f"/workspace/b{number % 300}/f{number}.md" for number in range(files)])
    return ws
