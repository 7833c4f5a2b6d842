"""``make demo-serve``: the sample data, looked at view by view, with a picture of each."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.inspector.looking import Looking, pages
from tests.support.services import ROOT

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCHEMES = ["light", "dark"] if os.environ.get("CRUX_SCREENSHOTS") else ["dark"]
PICTURES: dict[str, tuple[str, dict[str, Any], str]] = {
    "overview": ("files", {"path": "/"}, "Recent commits"),
    "file": ("files", {"path": "/workspace/src/analysis.py"}, "HOURS_S2"),
    "diff": ("files", {"path": "/workspace/src/analysis.py", "show": "diff"}, "swing = max"),
    "picture": ("files", {"path": "/outputs/tide.png"}, "640"),
    "old-version": ("files", {"path": "/outputs/report.md", "v": 2}, "Restore v2"),
    "deleted": ("files", {"path": "/workspace/notes/draft.md"}, "This file was deleted"),
    "source": ("files", {"path": "/sources/spring-tides.md"}, "spring tide comes"),
    "bytes": ("files", {"path": "/outputs/model.bin"}, "000001f0"),
    "search": ("search", {"q": "quay"}, "matches in"),
    "commits": ("commits", {}, "mira@harbour"),
    "artifacts": ("artifacts", {}, "1 newer version"),
    "approvals": ("approvals", {}, "git push origin"),
    "traces": ("traces", {}, "/workspace/plan.md"),
    "usage": ("usage", {}, "977 KB"),
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def link() -> AsyncIterator[str]:
    """The demonstration in a process of its own; gives the link that it prints, and sees that it ends well."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(ROOT / "examples/demo_serve.py"), "--port", "0", "--every", "0.5",
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), 40)).decode()
        found = re.search(r"http://\S+", line)
        assert found is not None, line
        yield found[0]
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), 15) == 0
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the pictures go: CRUX_SCREENSHOTS, to look at them."""
    given = Path(os.environ.get("CRUX_SCREENSHOTS") or tmp_path)
    given.mkdir(parents=True, exist_ok=True)
    return given


async def arrive(seen: Looking, link: str) -> None:
    await seen.page.goto(link)
    await expect(seen.tree).to_be_visible()
    await seen.live()


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_every_view_shows_the_sample_project(
    browser: Browser, link: str, folder: Path, scheme: str
) -> None:
    async with pages(browser, link.partition("/inspector/")[0], "thread:tides") as look:
        seen = await look(color_scheme=scheme, reduced_motion="reduce")
        await arrive(seen, link)
        for name, (view, place, told) in PICTURES.items():
            await seen.go(view, **place)
            await expect(seen.main).to_contain_text(told)
            await seen.page.screenshot(path=folder / f"{name}-{scheme}.png")
            assert (folder / f"{name}-{scheme}.png").stat().st_size > 10_000


async def test_the_sample_project_on_a_telephone(browser: Browser, link: str, folder: Path) -> None:
    async with pages(browser, link.partition("/inspector/")[0], "thread:tides") as look:
        seen = await look(
            namespace="thread:tides",
            viewport={"width": 390, "height": 780},
            reduced_motion="reduce",
        )
        await seen.page.goto(link)
        await expect(seen.main.get_by_role("heading", name="Recent commits")).to_be_visible()
        await seen.page.screenshot(path=folder / "narrow.png")
        await seen.page.get_by_role("button", name="Navigation").click()
        await expect(seen.tree).to_be_visible()
        await seen.page.screenshot(path=folder / "narrow-navigation.png")
