"""A namespace of 100,000 files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from time import perf_counter
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Route, expect

from crux_workspace import Workspace, open_workspace
from tests.inspector.looking import Look, looking

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]

FILES = int(os.environ.get("CRUX_INSPECTOR_FILES", "100000"))
FLAT = FILES * 6 // 10
A_COMMIT = 5_000
AIM_S = 2.0
HOLDS_TIMES = os.environ.get("CRUX_HOLD_TIMES") == "1"
"""Whether the aim is held to: only a quiet machine can be; the figure itself is always printed."""
MOST_ROWS = 120
LATE_S = 0.7


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def ws() -> AsyncIterator[Workspace]:
    """Most files lie in one directory, the rest in many."""
    async with open_workspace("memory://", namespace="main") as opened:
        paths = [f"/workspace/flat/file-{number:06d}.txt" for number in range(FLAT)]
        paths += [
            f"/workspace/many/d{number // 100:04d}/file-{number:06d}.txt"
            for number in range(FILES - FLAT)
        ]
        for start in range(0, FILES, A_COMMIT):
            async with opened.transaction() as tx:
                for path in paths[start : start + A_COMMIT]:
                    await tx.write(path, "x")
        yield opened


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def look(browser: Browser, ws: Workspace) -> AsyncIterator[Look]:
    async with looking(browser, ws) as look:
        yield look


async def test_it_is_usable_within_two_seconds(look: Look) -> None:
    seen = await look()
    started = perf_counter()
    await seen.go()
    await seen.row("/workspace/flat").click()
    await expect(seen.row("/workspace/flat/file-000000.txt")).to_be_visible()
    await seen.row("/workspace/flat/file-000003.txt").click()
    await expect(seen.main.get_by_label("Text of the file")).to_have_text("1x")
    took = perf_counter() - started
    print(
        f"\na tree of {FILES:,} files, from the address to a file's text: {took:.2f} s (aim {AIM_S:.0f} s)"
    )
    assert took <= AIM_S or not HOLDS_TIMES


async def test_only_what_is_in_sight_is_drawn_and_more_comes_by_scrolling(look: Look) -> None:
    seen = await look()
    await seen.go(path="/workspace/flat")
    await expect(seen.row("/workspace/flat/file-000000.txt")).to_be_visible()
    tree = seen.page.locator(".tree")
    for _ in range(6):
        await tree.evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
        await seen.page.wait_for_timeout(120)
    await expect(seen.row("/workspace/flat/file-001200.txt")).to_have_count(0)
    assert int(await tree.get_attribute("data-rows") or 0) > 1_200
    assert await seen.page.get_by_role("treeitem").count() <= MOST_ROWS


async def test_a_link_deep_into_it_shows_the_file(look: Look) -> None:
    path = f"/workspace/flat/file-{FLAT - 7:06d}.txt"
    seen = await look()
    await seen.go(path=path)
    await expect(seen.row(path)).to_have_attribute("aria-selected", "true")
    await expect(seen.row(path)).to_be_in_viewport()
    await expect(seen.main.get_by_label("Text of the file")).to_have_text("1x")


@pytest.mark.parametrize("late", ["/", "/workspace", "/workspace/flat"])
async def test_a_link_deep_into_it_shows_the_file_whatever_comes_late(
    look: Look, late: str
) -> None:
    path = f"/workspace/flat/file-{FLAT - 7:06d}.txt"
    seen = await look()

    async def answer(route: Route) -> None:
        if parse_qs(urlsplit(route.request.url).query)["path"] == [late]:
            await asyncio.sleep(LATE_S)
        await route.continue_()

    await seen.page.route("**/v1/list?**", answer)
    await seen.go(path=path)
    await expect(seen.main.get_by_label("Text of the file")).to_have_text("1x")
    await expect(seen.row(path)).to_be_in_viewport()
    await seen.page.wait_for_timeout(2 * LATE_S * 1000)
    await expect(seen.row(path)).to_be_in_viewport()
    await expect(seen.row(path)).to_have_attribute("aria-posinset", "301")
    await seen.page.unroute_all(behavior="wait")


async def test_any_file_is_found_by_its_name(ws: Workspace, look: Look) -> None:
    seen = await look()
    await seen.go()
    await seen.tree.wait_for()
    await seen.page.keyboard.press("t")
    await seen.page.keyboard.type(f"{FILES - FLAT - 1:06d}")
    await expect(seen.page.get_by_role("option").last).to_contain_text(f"{FILES - FLAT - 1:06d}")


async def test_a_new_file_shows_up_in_its_place(ws: Workspace, look: Look) -> None:
    seen = await look()
    await seen.go(path="/workspace/flat")
    await seen.live()
    await expect(seen.row("/workspace/flat/file-000000.txt")).to_be_visible()
    await ws.write("/workspace/flat/file-000002-b.txt", "x")
    await expect(seen.row("/workspace/flat/file-000002-b.txt")).to_be_visible()
    names = await seen.page.locator(".tree-name").all_text_contents()
    ordered = await seen.page.evaluate(
        "() => [...document.querySelectorAll('[role=treeitem]')]"
        ".sort((a, b) => a.offsetTop - b.offsetTop).map((row) => row.dataset.path)"
    )
    assert "file-000002-b.txt" in names
    assert ordered == sorted(ordered)
