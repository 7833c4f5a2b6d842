"""Signing in, and what a session may see and do."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from playwright.async_api import Browser, Route, expect

from crux_workspace import Workspace
from tests.inspector.looking import Looking, looking
from tests.support.services import token_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

WRITER = "may-do-everything"
READER = "may-only-read-it"
PARTIAL = "sees-outputs-only"
TOKENS = [
    token_of(WRITER, all_namespaces=True, access="readwrite"),
    token_of(READER, all_namespaces=True),
    token_of(PARTIAL, all_namespaces=True, access="readwrite", mounts=("/outputs",)),
]
BUTTONS = ("Undo", "Redo", "Finalize", "Restore version 1", "Restore v1", "Bring it back", "Take back commit 1")  # fmt: skip


async def test_a_token_signs_in_and_a_wrong_one_does_not(browser: Browser, ws: Workspace) -> None:
    await ws.write("/workspace/a.txt", "x")
    async with looking(browser, ws, tokens=TOKENS) as look:
        seen = await look(calm=False)  # the browser's console tells of the refused requests
        await seen.go(path="/workspace/a.txt")
        await seen.page.get_by_label("Token").fill("not-a-token-at-all")
        await seen.page.get_by_role("button", name="Sign in").click()
        await expect(seen.page.get_by_role("alert")).to_contain_text("does not know this token")
        await seen.page.get_by_label("Token").fill(WRITER)
        await seen.page.get_by_role("button", name="Sign in").click()
        await expect(seen.main.get_by_label("Text of the file")).to_have_text("1x")
        kept = await seen.page.evaluate("() => document.cookie + JSON.stringify({...localStorage})")
        assert WRITER not in kept
        assert "session" not in kept
        await seen.page.reload()
        await expect(seen.main.get_by_label("Text of the file")).to_have_text("1x")
        await seen.page.get_by_role("button", name="Sign out").click()
        await expect(seen.page.get_by_label("Token")).to_be_visible()
        await seen.page.reload()
        await expect(seen.page.get_by_label("Token")).to_be_visible()


async def test_a_link_with_a_token_signs_in_and_forgets_it(browser: Browser, ws: Workspace) -> None:
    async with looking(browser, ws, tokens=TOKENS) as look:
        seen = await look()
        await seen.go(token=READER)
        await expect(seen.tree).to_be_visible()
        assert READER not in seen.page.url
        await seen.page.go_back()
        assert READER not in seen.page.url


async def test_such_a_link_works_where_the_page_is_open_already(
    browser: Browser, ws: Workspace
) -> None:
    async with looking(browser, ws, tokens=TOKENS) as look:
        seen = await look(calm=False)  # the browser's console tells of the refused request
        await seen.go()
        await expect(seen.page.get_by_label("Token")).to_be_visible()
        await seen.go(token=READER)
        await expect(seen.tree).to_be_visible()
        assert READER not in seen.page.url


async def test_a_session_that_ended_asks_for_a_token_and_goes_on_where_it_was(
    browser: Browser, ws: Workspace
) -> None:
    await ws.write("/workspace/a.txt", "one")
    async with looking(browser, ws, tokens=TOKENS) as look:
        seen = await look(calm=False)  # the browser's console tells of the refused requests
        await seen.go(path="/workspace/a.txt", token=READER)
        await expect(seen.main.get_by_label("Text of the file")).to_have_text("1one")
        await seen.live()
        await seen.page.context.clear_cookies()
        await ws.write("/workspace/a.txt", "two")
        await seen.page.get_by_label("Token").fill(WRITER)
        await seen.page.get_by_role("button", name="Sign in").click()
        await expect(seen.main.get_by_label("Text of the file")).to_have_text("1two")


async def test_a_namespace_that_the_token_may_not_use_is_refused_and_said(
    browser: Browser, ws: Workspace
) -> None:
    tokens = [token_of(READER)]
    async with looking(browser, ws, tokens=tokens) as look:
        seen = await look(namespace="other", calm=False)  # refused requests are told by the console
        await seen.go(token=READER)
        await expect(seen.main.get_by_role("alert").first).to_contain_text("PERMISSION_DENIED")
        await expect(seen.page.get_by_text("Not allowed")).to_be_visible()


WHERE_BUTTONS_ARE: list[tuple[str, dict[str, Any]]] = [
    ("files", {"path": "/workspace/a.txt"}),
    ("files", {"path": "/workspace/a.txt", "v": 1}),
    ("files", {"path": "/workspace/gone.txt"}),
    ("commits", {}),
]


async def buttons(seen: Looking) -> set[str]:
    """Which buttons there are that change something, on the pages of two files and of the feed."""
    found = set()
    for view, place in WHERE_BUTTONS_ARE:
        await seen.go(view, **place)
        await expect(seen.main.get_by_text("v1").first).to_be_visible()
        there = await seen.main.get_by_role("button").all()
        found |= {
            await each.get_attribute("aria-label") or await each.inner_text() for each in there
        }
    return found & set(BUTTONS)


async def test_buttons_that_change_something_are_for_who_may_write(
    browser: Browser, ws: Workspace
) -> None:
    await ws.write("/workspace/a.txt", "one")
    await ws.write("/workspace/a.txt", "two")
    await ws.write("/workspace/gone.txt", "x")
    await ws.delete("/workspace/gone.txt")
    async with looking(browser, ws, tokens=TOKENS) as look:
        writer, reader = await look(), await look()
        await writer.go(token=WRITER)
        await expect(writer.page.get_by_text("may write")).to_be_visible()
        assert await buttons(writer) == set(BUTTONS)
        await reader.go(token=READER)
        await expect(reader.page.get_by_title("This session may only read")).to_be_visible()
        assert await buttons(reader) == set()


async def test_a_restricted_token_sees_its_mounts_and_nothing_else(
    browser: Browser, ws: Workspace
) -> None:
    await ws.write("/workspace/secret-plan.txt", "secret needle")
    await ws.write("/outputs/open.txt", "open needle", status="final")
    await ws.write("/workspace/secret-artifact.txt", "x", status="final")
    async with looking(browser, ws, tokens=TOKENS) as look:
        seen = await look()
        answers: list[str] = []

        async def keep(route: Route) -> None:
            response = await route.fetch()
            answers.append(await response.text())
            await route.fulfill(response=response)

        await seen.page.route(re.compile(r"/v1/(?!events|session)"), keep)
        await seen.go(token=PARTIAL)
        await expect(seen.row("/outputs/open.txt")).to_be_visible()
        await seen.live()
        for view in ("search", "commits", "artifacts", "traces", "usage", "files"):
            await seen.go(view, q="needle", path="/")
            chosen = seen.page.locator("nav.views [aria-current=page]")
            await expect(chosen).to_have_text(re.compile(view, re.IGNORECASE))
            if view not in ("traces", "usage"):
                await expect(seen.main.get_by_text("open.txt").first).to_be_visible()
            await expect(seen.main.locator(".waiting")).to_have_count(0)
            assert "secret" not in await seen.page.locator("body").inner_text()
        await ws.write("/workspace/secret-later.txt", "x")
        await ws.write("/outputs/later.txt", "x")
        await expect(seen.row("/outputs/later.txt")).to_be_visible()
        await seen.page.unroute_all(behavior="wait")
        assert len(answers) > 10
        assert not [text for text in answers if "secret" in text]


OTHER_SITE = """<!doctype html><title>other site</title><script>
const told = {method: "POST", mode: "no-cors", credentials: "include"};
const body = JSON.stringify({path: "/workspace/a.txt"});
Promise.allSettled([
  fetch("URL/v1/undo?namespace=SPACE", {...told, body, headers: {"Content-Type": "text/plain"}}),
  fetch("URL/v1/undo?namespace=SPACE", {...told, mode: "cors", body,
    headers: {"Content-Type": "application/json", "X-Workspace-Request": "1"}}),
  fetch("URL/v1/session", {...told, method: "POST", body: "{}"}),
  fetch("URL/v1/content?namespace=SPACE&path=/workspace/a.txt", {mode: "cors", credentials: "include"})
    .then((answer) => answer.text()).then((text) => { window.stolen = text; }),
]).then(() => { document.title = "done"; });
</script><iframe src="URL/inspector/"></iframe><form id="form" method="post" enctype="text/plain" target="frame"
action="URL/v1/undo?namespace=SPACE"><input name='{"path": "/workspace/a.txt", "x": "' value='"}'></form><iframe name="frame"></iframe>"""


async def test_another_site_cannot_use_the_session(browser: Browser, ws: Workspace) -> None:
    await ws.write("/workspace/a.txt", "one")
    await ws.write("/workspace/a.txt", "two")
    async with looking(browser, ws, tokens=TOKENS) as look:
        seen = await look(calm=False)  # what the other site tries is refused, and told
        await seen.go(token=WRITER)
        await expect(seen.tree).to_be_visible()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            page = (
                OTHER_SITE.replace("URL", seen.url).replace("SPACE", str(seen.namespace)).encode()
            )
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + page
            )
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as other:
            port = other.sockets[0].getsockname()[1]
            page = await seen.page.context.new_page()
            await page.goto(f"http://127.0.0.1:{port}/")
            await expect(page).to_have_title("done")
            async with page.expect_response(re.compile(r"/v1/undo")) as sent:
                await page.evaluate("() => document.getElementById('form').submit()")
            assert not (await sent.value).ok
            assert await page.evaluate("() => window.stolen") is None
            framed = [frame for frame in page.frames if "/inspector/" in frame.url]
            assert not framed or await framed[0].locator(".app").count() == 0
        assert [entry.operation for entry in await ws.history("/workspace/a.txt")] == [
            "write",
            "write",
        ]
