"""Keyboard, screen readers, dark colours and narrow screens."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from crux_workspace import Workspace
from crux_workspace.agent import CommandRequest, PermissionGate
from tests.inspector.looking import Look, Looking, looking
from tests.inspector.samples import PNG

pytestmark = pytest.mark.asyncio(loop_scope="module")

AXE = (files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
PLACES: list[tuple[str, dict[str, Any]]] = [
    ("files", {"path": "/"}),
    ("files", {"path": "/workspace"}),
    ("files", {"path": "/workspace/code.py"}),
    ("files", {"path": "/workspace/code.py", "v": 1}),
    ("files", {"path": "/workspace/code.py", "show": "diff"}),
    ("files", {"path": "/workspace/a.png"}),
    ("files", {"path": "/workspace/a.bin"}),
    ("files", {"path": "/workspace/gone.txt"}),
    ("search", {"q": "def"}),
    ("commits", {}),
    ("artifacts", {}),
    ("approvals", {}),
    ("traces", {}),
    ("usage", {}),
]
COLOURED = [PLACES[number] for number in (0, 3, 4, 7, 8, 9, 10, 11, 13)]
"""Where the colours differ."""
PYTHON = '"""Words."""\n\nimport os\n\n\n@decorated\ndef f(number: int = 1) -> str:  # why\n    return f"{number}" + os.name\n'


async def fill(ws: Workspace) -> PermissionGate:
    """Something for every view."""
    await ws.write("/workspace/code.py", PYTHON)
    await ws.edit("/workspace/code.py", "number: int = 1", "number: int = 2")
    await ws.write("/workspace/a.png", PNG)
    await ws.write("/workspace/a.bin", bytes(range(256)))
    await ws.write("/workspace/gone.txt", "x")
    await ws.delete("/workspace/gone.txt")
    await ws.acting_as("agent:x").write(
        "/outputs/report.md", "# x\n", status="final", kind="report"
    )
    await ws.append("/outputs/report.md", "more\n")
    await ws.write("/outputs/draft.json", {"a": 1}, status="draft")
    gate = PermissionGate(mode="interactive")
    await gate.check(CommandRequest("git push"), thread_id="t-1", call_id="call-1")
    await gate.check(CommandRequest("make all"), thread_id="t-1", call_id="call-2")
    return gate


async def faults(seen: Looking, rules: list[str] | None = None) -> list[str]:
    """What axe finds: serious or critical; by all rules or some."""
    await seen.page.evaluate(f"() => {{ if (!window.axe) {{ {AXE} }} }}")
    found = await seen.page.evaluate(
        "(rules) => axe.run(document, {resultTypes: ['violations'], ...(rules ? {runOnly: rules} : {})})",
        rules,
    )
    return [
        f"{each['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


@pytest.mark.parametrize(("scheme", "rules"), [("light", None), ("dark", ["color-contrast"])])
async def test_axe_finds_nothing_serious_in_any_view(
    browser: Browser, ws: Workspace, scheme: str, rules: list[str] | None
) -> None:
    gate = await fill(ws)
    async with looking(browser, ws, gate=gate) as look:
        seen = await look(color_scheme=scheme, reduced_motion="reduce")
        for view, place in PLACES if rules is None else COLOURED:
            await seen.go(view, **place)
            await seen.live()
            await expect(seen.main.locator(".waiting")).to_have_count(0)
            await expect(seen.main.get_by_role("heading").first).to_be_attached()
            assert await faults(seen, rules) == [], (view, place)
        await seen.page.keyboard.press("?")
        await expect(seen.page.get_by_role("dialog")).to_be_visible()
        assert await faults(seen, rules) == []
        await seen.page.evaluate(
            "() => { document.querySelector('dialog h2').style.cssText = 'color: #888; background: #777'; }"
        )
        assert await faults(seen, rules) != [], "axe is asleep"


async def test_a_walk_by_keyboard_alone(ws: Workspace, look: Look) -> None:
    await ws.write("/workspace/a/one.txt", "1")
    await ws.write("/workspace/a/two.txt", "old")
    await ws.write("/workspace/a/two.txt", "new")
    await ws.write("/workspace/b.txt", "b")
    seen = await look()
    await seen.go()
    await seen.row("/workspace/a").wait_for()
    press = seen.page.keyboard.press
    await press("Tab")
    await expect(seen.page.get_by_role("button", name="Skip to the content")).to_be_focused()
    for _ in range(20):
        await press("Tab")
        if (
            await seen.page.evaluate("() => document.activeElement.getAttribute('role')")
            == "treeitem"
        ):
            break
    await expect(seen.row("/outputs")).to_be_focused()
    await press("End")
    await expect(seen.row("/workspace/b.txt")).to_be_focused()
    await press("ArrowUp")
    await press("ArrowRight")
    await expect(seen.row("/workspace/a")).to_have_attribute("aria-expanded", "true")
    await expect(seen.row("/workspace/a/one.txt")).to_be_visible()
    await press("ArrowRight")
    await expect(seen.row("/workspace/a/one.txt")).to_be_focused()
    await press("ArrowDown")
    await press("Enter")
    await expect(seen.main.get_by_label("Text of the file")).to_have_text("1new")
    await press("d")
    await expect(seen.main.get_by_role("region", name="Difference")).to_be_visible()
    await press("s")
    await expect(seen.main.get_by_role("button", name="Split")).to_have_attribute(
        "aria-pressed", "true"
    )
    await press("d")
    await press("j")
    await expect(seen.main.get_by_label("Text of the file")).to_have_text("1old")
    await press("k")
    await expect(seen.main.get_by_label("Text of the file")).to_have_text("1new")
    await press("ArrowLeft")
    await expect(seen.row("/workspace/a")).to_be_focused()
    await press("ArrowLeft")
    await expect(seen.row("/workspace/a")).to_have_attribute("aria-expanded", "false")
    for keys, name in (("gc", "Commits"), ("ga", "Artifacts"), ("gu", "Usage"), ("gv", "Traces")):
        for key in keys:
            await press(key)
        await expect(seen.main.get_by_role("heading", name=name, exact=True)).to_be_visible()
    await press("?")
    await expect(seen.page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    await press("Escape")
    await expect(seen.page.get_by_role("dialog")).to_have_count(0)
    await press("Control+k")
    await expect(seen.page.get_by_role("combobox")).to_be_focused()
    await press("Escape")
    await seen.page.go_back()
    await expect(seen.main.get_by_role("heading", name="Usage")).to_be_visible()


async def background(seen: Looking) -> str:
    found: str = await seen.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    return found


async def test_colours_follow_the_system_until_somebody_chooses(look: Look) -> None:
    dark, light = "rgb(17, 21, 27)", "rgb(255, 255, 255)"
    seen = await look(color_scheme="dark")
    await seen.go()
    await seen.tree.wait_for()
    assert await background(seen) == dark
    await seen.page.keyboard.press("m")
    assert await background(seen) == light
    await seen.page.reload()
    await seen.tree.wait_for()
    assert await background(seen) == light
    await seen.page.keyboard.press("m")
    assert await background(seen) == dark
    await seen.page.keyboard.press("m")
    await seen.page.emulate_media(color_scheme="light")
    assert await background(seen) == light


async def test_a_narrow_screen_has_everything_within_its_width(
    browser: Browser, ws: Workspace
) -> None:
    gate = await fill(ws)
    async with looking(browser, ws, gate=gate) as look:
        seen = await look(viewport={"width": 360, "height": 640}, reduced_motion="reduce")
        for view, place in PLACES:
            await seen.go(view, **place)
            await expect(seen.main.locator(".waiting")).to_have_count(0)
            await expect(seen.main.get_by_role("heading").first).to_be_attached()
            wide = "() => document.documentElement.scrollWidth + document.querySelector('main').scrollWidth"
            assert await seen.page.evaluate(wide) <= 720, (view, place)
            await expect(seen.tree).not_to_be_visible()
        await seen.page.get_by_role("button", name="Navigation").click()
        await seen.row("/workspace/code.py").click()
        await expect(seen.main.get_by_label("Text of the file")).to_contain_text("import os")
        await expect(seen.tree).not_to_be_visible()
