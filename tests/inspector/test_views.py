"""Each view, as a person uses it."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from crux_workspace import Limits, Workspace, open_workspace
from tests.inspector.looking import Look, looking
from tests.inspector.samples import PNG

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_tree_opens_directory_by_directory(ws: Workspace, look: Look) -> None:
    await ws.write("/workspace/deep/er/file.txt", "x")
    seen = await look()
    await seen.go()
    await expect(seen.row("/workspace/deep")).to_be_visible()
    await expect(seen.row("/workspace/deep/er")).to_have_count(0)
    await seen.row("/workspace/deep").click()
    await seen.row("/workspace/deep/er").click()
    await seen.row("/workspace/deep/er/file.txt").click()
    await expect(seen.main.get_by_label("Text of the file")).to_have_text("1x")
    assert "path=%2Fworkspace%2Fdeep%2Fer%2Ffile.txt" in seen.page.url


async def test_a_link_to_a_file_opens_what_is_above_it(ws: Workspace, look: Look) -> None:
    await ws.write("/workspace/a/b/c.py", "import os\n\n\ndef f() -> None: ...\n")
    seen = await look()
    await seen.go(path="/workspace/a/b/c.py")
    await expect(seen.row("/workspace/a/b/c.py")).to_have_attribute("aria-selected", "true")
    await expect(seen.main.locator(".hl-keyword").first).to_have_text("import")
    await expect(seen.main.locator("[data-line]")).to_have_count(4)


async def test_older_versions_are_shown_compared_and_restored(ws: Workspace, look: Look) -> None:
    for text in ("one\ntwo\n", "one\n2\n", "one\n2\nthree\n"):
        await ws.write("/workspace/a.txt", text)
    seen = await look()
    await seen.go(path="/workspace/a.txt")
    history = seen.page.get_by_role("complementary", name="History")
    await expect(history.get_by_role("listitem")).to_have_count(3)
    await history.get_by_role("link").nth(2).click()
    await expect(seen.main.get_by_label("Text of the file")).to_contain_text("two")
    await seen.main.get_by_role("button", name="Restore v1").click()
    await expect(history.get_by_role("listitem")).to_have_count(4)
    assert await ws.read_text("/workspace/a.txt") == "one\ntwo\n"
    assert (await ws.history("/workspace/a.txt"))[0].operation == "undo"


async def test_a_difference_in_one_column_and_side_by_side(ws: Workspace, look: Look) -> None:
    await ws.write("/workspace/a.md", "first\nthe old word\nlast\n")
    await ws.write("/workspace/a.md", "first\nthe new word\nlast")
    seen = await look()
    await seen.go(path="/workspace/a.md")
    await seen.main.get_by_role("button", name="Changes").click()
    diff = seen.main.get_by_role("region", name="Difference")
    await expect(diff.locator("td.text.remove")).to_have_text(["the old word", "last"])
    await expect(diff.locator("td.text.add")).to_have_text(
        ["the new word", "last no newline at the end"]
    )
    await expect(diff.locator(".mark")).to_have_text(["old", "new"])
    await seen.main.get_by_role("button", name="Split").click()
    await expect(diff.locator("tr").filter(has_text="the old word")).to_contain_text("the new word")
    await seen.page.reload()
    await expect(seen.main.get_by_role("button", name="Split")).to_have_attribute(
        "aria-pressed", "true"
    )


async def test_undo_and_redo_by_button(ws: Workspace, look: Look) -> None:
    await ws.write("/workspace/a.txt", "one")
    await ws.write("/workspace/a.txt", "two")
    seen = await look()
    await seen.go(path="/workspace/a.txt")
    await expect(seen.main.get_by_role("button", name="Redo")).to_be_disabled()
    await seen.main.get_by_role("button", name="Undo").click()
    await expect(seen.main.get_by_label("Text of the file")).to_have_text("1one")
    await seen.main.get_by_role("button", name="Redo").click()
    await expect(seen.main.get_by_label("Text of the file")).to_have_text("1two")


async def test_a_change_on_old_ground_is_refused_and_said(ws: Workspace, look: Look) -> None:
    await ws.write("/workspace/a.txt", "one")
    await ws.write("/workspace/a.txt", "two")
    seen = await look(calm=False)  # the browser's console tells of the refused request
    await seen.go(path="/workspace/a.txt")
    await expect(seen.main.get_by_label("Text of the file")).to_have_text("1two")
    stale = '{"path": "/workspace/a.txt", "if_version": 1}'
    await seen.page.route("**/v1/undo**", lambda route: route.continue_(post_data=stale))
    await seen.main.get_by_role("button", name="Undo").click()
    await expect(seen.page.locator(".note.bad")).to_contain_text("version")
    assert await ws.read_text("/workspace/a.txt") == "two"


async def test_a_deleted_file_can_be_brought_back(ws: Workspace, look: Look) -> None:
    await ws.write("/workspace/gone.txt", "still there")
    await ws.delete("/workspace/gone.txt")
    seen = await look()
    await seen.go(path="/workspace/gone.txt")
    await expect(seen.main.get_by_role("heading", name="This file was deleted")).to_be_visible()
    await seen.main.get_by_role("link", name="v1").click()
    await expect(seen.main.get_by_label("Text of the file")).to_have_text("1still there")
    await seen.go(path="/workspace/gone.txt")
    await seen.main.get_by_role("button", name="Bring it back").click()
    await expect(seen.main.get_by_role("button", name="Undo")).to_be_visible()
    assert await ws.read_text("/workspace/gone.txt") == "still there"


async def test_a_path_that_never_held_a_file_says_so(look: Look) -> None:
    seen = await look()
    await seen.go(path="/workspace/nothing.txt")
    await expect(seen.main.get_by_role("heading", name="There is no file here")).to_be_visible()


async def test_a_version_that_never_was_is_not_offered(ws: Workspace, look: Look) -> None:
    await ws.write("/workspace/a.txt", "one")
    seen = await look(calm=False)  # the browser's console tells of the missing version
    await seen.go(path="/workspace/a.txt", v=99)
    await expect(seen.main.get_by_role("alert")).to_contain_text("no version 99")
    await expect(seen.main.get_by_role("button", name="Undo")).to_be_visible()
    for name in ("Restore", "Finalize"):
        await expect(seen.main.get_by_role("button", name=name)).to_have_count(0)
    await seen.go(path="/workspace/a.txt")
    await expect(seen.main.get_by_role("button", name="Finalize")).to_be_visible()


async def test_json_is_shown_in_its_pretty_form(ws: Workspace, look: Look) -> None:
    await ws.write("/workspace/a.json", {"name": "x", "list": [1, 2]})
    seen = await look()
    await seen.go(path="/workspace/a.json")
    await expect(seen.main.locator('[data-line="2"]')).to_contain_text('"name": "x"')


async def test_pictures_are_drawn_and_bytes_described(ws: Workspace, look: Look) -> None:
    await ws.write("/workspace/a.png", PNG)
    await ws.write("/workspace/a.bin", bytes(range(256)) * 5)
    await ws.write("/workspace/no.png", b"this is no picture")
    seen = await look()
    await seen.go(path="/workspace/a.png")
    await expect(seen.main.locator("figcaption")).to_contain_text("4 \u00d7 3")
    await seen.go(path="/workspace/a.bin")
    await expect(seen.main.locator("pre")).to_contain_text("000001f0  f0 f1 f2")
    await expect(seen.main.get_by_text("1.3 KB (1,280 bytes)")).to_be_visible()
    await seen.go(path="/workspace/no.png")
    await expect(seen.main.get_by_role("heading", name="Not a picture that the browser can draw")).to_be_visible()  # fmt: skip


async def test_a_large_text_is_read_piece_by_piece(ws: Workspace, look: Look) -> None:
    await ws.write("/workspace/big.log", "".join(f"line {n:07d}\n" for n in range(40_000)))
    seen = await look()
    await seen.go(path="/workspace/big.log")
    await expect(seen.main.get_by_text("Shown: lines 1 to 3,000 of 40,000.")).to_be_visible()
    for shown in range(6_000, 13_000, 3_000):  # those beyond 128 KiB are fetched
        await seen.main.get_by_role("button", name="Load more").click()
        await expect(seen.main.locator(f'[data-line="{shown}"] code')).to_have_text(
            f"line {shown - 1:07d}"
        )
    await seen.go(path="/workspace/big.log", line=35_001)
    await expect(seen.main.locator(".line.marked code")).to_have_text("line 0035000")
    await expect(seen.main.locator(".line.marked")).to_be_in_viewport()


async def test_the_feed_shows_commits_and_takes_one_back(ws: Workspace, look: Look) -> None:
    await ws.acting_as("agent:writer").write("/workspace/a.txt", "one")
    async with ws.transaction() as tx:
        for name in "bcdefgh":
            await tx.write(f"/workspace/{name}.txt", name)
    seen = await look()
    await seen.go("commits")
    feed = seen.main.get_by_role("list", name="Commits")
    await expect(feed.locator(".commit").first).to_contain_text("#2")
    await expect(feed.locator(".commit").nth(1)).to_contain_text("agent:writer")
    await feed.get_by_role("button", name="3 more changes").click()
    await expect(feed.get_by_role("link", name="/workspace/h.txt")).to_be_visible()
    await feed.get_by_role("button", name="Take back commit 2").click()
    await expect(feed.locator(".commit").first).to_contain_text("undo")
    assert not await ws.exists("/workspace/b.txt")


async def test_artifacts_show_what_is_pinned_and_how_far_it_is_behind(
    ws: Workspace, look: Look
) -> None:
    await ws.write("/outputs/report.md", "first", status="final", kind="report")
    await ws.write("/outputs/report.md", "second")
    await ws.write("/outputs/note.md", "x", status="draft")
    seen = await look()
    await seen.go("artifacts")
    rows = seen.main.locator("tbody tr")
    await expect(rows).to_have_count(2)
    await expect(rows.nth(1)).to_contain_text("v1")
    await expect(rows.nth(1)).to_contain_text("1 newer version")
    await seen.main.get_by_role("button", name="Draft").click()
    await expect(rows).to_have_count(1)
    await seen.main.get_by_role("button", name="All").click()
    await rows.nth(1).get_by_role("link", name="/outputs/report.md").click()
    await expect(seen.main.get_by_label("Text of the file")).to_have_text("1first")
    await seen.main.get_by_role("button", name="Withdraw").click()
    await expect(seen.main.get_by_role("button", name="Finalize")).to_be_visible()


async def test_usage_stands_against_its_limits(browser: object, look: Look) -> None:
    del look
    async with (
        open_workspace(
            "memory://", namespace="main", limits=Limits(max_namespace_bytes=2_000)
        ) as ws,
        looking(browser, ws) as opened,  # type: ignore[arg-type]
    ):
        await ws.write("/workspace/a.txt", "x" * 1_000)
        seen = await opened()
        await seen.go("usage")
        meter = seen.main.get_by_role("meter", name="Live content")
        await expect(meter).to_have_attribute("aria-valuetext", "1000 B of 2.0 KB")
        await ws.write("/workspace/b.txt", "x" * 900)
        await expect(meter).to_have_attribute("aria-valuenow", "1900")


async def test_search_finds_lines_and_leads_to_them(ws: Workspace, look: Look) -> None:
    await ws.write("/workspace/a.txt", "alpha\n" * 50 + "the Needle\n")
    await ws.write("/outputs/b.txt", "no needle here")
    seen = await look()
    await seen.go()
    await seen.tree.wait_for()
    await seen.page.keyboard.press("/")
    await expect(seen.main.get_by_label("Search for")).to_be_focused()
    await seen.page.keyboard.type("needle")
    await expect(seen.main.get_by_text("2 matches in 2 files")).to_be_visible()
    await expect(seen.main.locator("mark")).to_have_text(["needle", "Needle"])
    await seen.main.get_by_role("button", name="Match case").click()
    await expect(seen.main.get_by_text("1 match in 1 file")).to_be_visible()
    await seen.main.get_by_role("button", name="Match case").click()
    await seen.main.get_by_label("Only in").fill("/workspace")
    await seen.main.get_by_role("link", name="the Needle").click()
    await expect(seen.main.locator(".line.marked code")).to_have_text("the Needle")


async def test_a_wrong_expression_is_explained(ws: Workspace, look: Look) -> None:
    await ws.write("/workspace/a.txt", "x")
    seen = await look(calm=False)  # the browser's console tells of the refused request
    await seen.go("search", q="(", regex="yes")
    await expect(seen.main.get_by_role("alert")).to_contain_text("INVALID_REGEX")


async def test_another_namespace_is_one_choice_away(ws: Workspace, look: Look) -> None:
    await ws.write("/workspace/a.txt", "x")
    seen = await look()
    await seen.go()
    await seen.page.get_by_title("Another namespace").click()
    await expect(seen.page.get_by_role("option", name=str(seen.namespace))).to_be_visible()
    await seen.page.keyboard.press("Escape")
    await expect(seen.page.get_by_role("dialog")).to_have_count(0)


async def test_a_file_is_found_by_a_part_of_its_name(ws: Workspace, look: Look) -> None:
    await ws.write("/workspace/notes/Harbour-Office.md", "x")
    await ws.write("/workspace/notes/other[1].md", "y")
    seen = await look()
    await seen.go()
    await seen.tree.wait_for()
    await seen.page.keyboard.press("t")
    await seen.page.keyboard.type("bour off")
    await expect(seen.page.get_by_role("option")).to_have_count(1)
    await seen.page.get_by_role("combobox").fill("[1]")
    await expect(seen.page.get_by_role("option")).to_contain_text("other[1].md")
    await seen.page.keyboard.press("Enter")
    await expect(seen.main.get_by_label("Text of the file")).to_have_text("1y")


async def test_an_empty_namespace_says_how_to_begin(look: Look) -> None:
    seen = await look()
    await seen.go(path="/workspace")
    await expect(seen.main.get_by_text("crux-workspace write")).to_be_visible()
    await seen.go("commits")
    await expect(seen.main.get_by_role("heading", name="No commits yet")).to_be_visible()
    await seen.go("artifacts")
    await expect(seen.main.get_by_role("heading", name="No artifacts")).to_be_visible()
