"""Changes of other processes, as they reach the page."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from crux_workspace import open_workspace
from tests.inspector.looking import Look, pages
from tests.support.services import ROOT, ServiceProcess, service_process

pytestmark = pytest.mark.asyncio(loop_scope="module")

COMMITS = int(os.environ.get("CRUX_INSPECTOR_COMMITS", "60"))
P99_MS = 100
HOLDS_TIMES = os.environ.get("CRUX_HOLD_TIMES") == "1"
"""Whether the aim is held to: only a quiet machine can be; the figure itself is always printed."""

WRITER = """
import asyncio, json, random, sys, time
from crux_workspace import open_workspace

async def main(url, commits):
    async with open_workspace(url, namespace="main") as ws:
        for _ in range(commits):
            await asyncio.sleep(random.uniform(0.02, 0.08))
            file = await ws.append("/workspace/feed.log", "one more\\n")
            print(json.dumps([file.sequence, time.time() * 1000]), flush=True)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""

TELL_WHEN_SEEN = """
window.seen = {};
const told = new MutationObserver(() => {
  const place = document.querySelector("[data-sequence]");
  if (place) window.seen[place.dataset.sequence] ??= Date.now();
});
told.observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-sequence"] });
"""


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'shared.db'}"


@pytest_asyncio.fixture(loop_scope="module")
async def service(store: str) -> AsyncIterator[ServiceProcess]:
    """The command line's service, in a process of its own."""
    async with open_workspace(store, namespace="main") as ws:
        await ws.write("/workspace/first.txt", "one\n")
    async with service_process(store, "--write") as process:
        yield process


@pytest_asyncio.fixture(loop_scope="module")
async def look(browser: Browser, service: ServiceProcess) -> AsyncIterator[Look]:
    async with pages(browser, service.url, "main") as look:
        yield look


async def cli(store: str, *arguments: str, content: str = "") -> None:
    """Run the command line in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "crux_workspace.cli", "--url", store, "--namespace", "main", *arguments,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    await process.communicate(content.encode())
    assert process.returncode == 0


async def test_what_other_processes_do_shows_up_by_itself(store: str, look: Look) -> None:
    seen = await look()
    await seen.go(path="/workspace/first.txt")
    await seen.live()
    await expect(seen.main.get_by_label("Text of the file")).to_have_text("1one")
    async with open_workspace(store, namespace="main") as other:
        await other.append("/workspace/first.txt", "two\n")
        await expect(seen.main.get_by_label("Text of the file")).to_have_text("1one2two")
        await expect(seen.row("/workspace/first.txt")).to_contain_text("v2")
        await other.write("/workspace/new/deep.txt", "x")
        await expect(seen.row("/workspace/new")).to_be_visible()
        await other.rename("/workspace/new/deep.txt", "/workspace/moved.txt")
        await expect(seen.row("/workspace/moved.txt")).to_be_visible()
        await expect(seen.row("/workspace/new")).to_have_count(0)
        await other.delete("/workspace/first.txt")
        await expect(seen.main.get_by_role("heading", name="This file was deleted")).to_be_visible()
        await expect(seen.row("/workspace/first.txt")).to_have_count(0)


async def test_the_feed_grows_while_it_is_looked_at(store: str, look: Look) -> None:
    seen = await look()
    await seen.go("commits")
    await seen.live()
    await expect(seen.main.locator(".commit")).to_have_count(1)
    await cli(store, "write", "/workspace/by-cli.txt", content="from the shell\n")
    await expect(seen.main.locator(".commit").first).to_contain_text("/workspace/by-cli.txt")
    await expect(seen.page.locator("[data-sequence='2']")).to_be_visible()


async def test_it_comes_back_after_the_service_was_gone(
    store: str, service: ServiceProcess, look: Look
) -> None:
    seen = await look(calm=False)  # the browser's console tells of refused connections
    await seen.go()
    await seen.live()
    await service.kill()
    await expect(seen.page.get_by_text("Reconnecting")).to_be_visible()
    async with open_workspace(store, namespace="main") as other:
        await other.write("/workspace/meanwhile.txt", "x")
    port = int(service.url.rpartition(":")[2])
    async with service_process(store, "--write", port=port):
        await expect(seen.row("/workspace/meanwhile.txt")).to_be_visible(timeout=15_000)
        await seen.live()


async def test_a_commit_is_seen_within_a_tenth_of_a_second(store: str, look: Look) -> None:
    seen = await look()
    await seen.page.add_init_script(TELL_WHEN_SEEN)
    await seen.go("commits")
    await seen.live()
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, store, str(COMMITS),
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    told, _ = await writer.communicate()
    committed = [json.loads(line) for line in told.splitlines()]
    assert len(committed) == COMMITS
    await expect(seen.page.locator(f"[data-sequence='{committed[-1][0]}']")).to_be_visible()
    shown = {int(key): at for key, at in (await seen.page.evaluate("() => window.seen")).items()}
    # Commits that reach the page in one go are drawn at once: one is seen when it or a later one is.
    lags = sorted(
        min(at for number, at in shown.items() if number >= sequence) - at_ms
        for sequence, at_ms in committed
    )
    p50, p99 = lags[len(lags) // 2], lags[int(len(lags) * 0.99) - 1]
    print(
        f"\ncommit in one process to the page in another: p50 {p50:.0f} ms, p99 {p99:.0f} ms (aim {P99_MS} ms)"
    )
    assert p99 <= P99_MS or not HOLDS_TIMES
