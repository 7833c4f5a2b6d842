"""The inspector in a browser, as a test drives it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias
from urllib.parse import urlencode

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, expect

from crux_workspace import Workspace
from crux_workspace.inspector import inspector_app
from tests.support.services import serving

expect.set_options(timeout=8_000)

_TELL_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI}`);
});
"""


class Looking:
    """One page; it keeps what the browser complained of."""

    def __init__(self, page: Page, url: str, namespace: str | None) -> None:
        self.page = page
        self.url = url
        self.namespace = namespace
        self.complaints: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.on("popup", lambda popup: self.complaints.append(f"popup: {popup.url}"))
        page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.url, "blob:" + self.url)):
            self.complaints.append(f"request: {request.url}")

    async def go(self, view: str = "files", **place: Any) -> None:
        """Go to a place of the inspector."""
        own = {} if self.namespace is None else {"ns": self.namespace}
        await self.page.goto(f"{self.url}/inspector/#{urlencode(own | {'view': view} | place)}")

    @property
    def main(self) -> Locator:
        """The view, without what is around it."""
        return self.page.get_by_role("main")

    @property
    def tree(self) -> Locator:
        return self.page.get_by_role("tree")

    def row(self, path: str) -> Locator:
        """A row of the tree."""
        return self.page.locator(f'[role="treeitem"][data-path="{path}"]')

    async def live(self) -> None:
        """Wait until changes are followed."""
        await expect(self.page.locator(".connection.live")).to_be_visible()

    async def violations(self) -> list[str]:
        """What the page's policy refused."""
        found: list[str] = await self.page.evaluate("() => window.violations")
        return found


Look: TypeAlias = Callable[..., Awaitable[Looking]]


async def new_context(browser: Browser, **options: Any) -> BrowserContext:
    """Make a context whose pages tell what their policy refused."""
    context = await browser.new_context(**({"viewport": {"width": 1280, "height": 800}} | options))
    await context.add_init_script(_TELL_VIOLATIONS)
    return context


@asynccontextmanager
async def looking(browser: Browser, ws: Workspace, **options: Any) -> AsyncIterator[Look]:
    """Serve a workspace, and open pages on the namespace that it has."""
    given = {"write": True} | options if "tokens" not in options else options
    namespace = ws._runner.bound or str(ws._core.namespace)
    async with (
        serving(ws, inspector=inspector_app(), **given) as url,
        pages(browser, url, namespace) as look,
    ):
        yield look


@asynccontextmanager
async def pages(
    browser: Browser, url: str, namespace: str | None, shared: BrowserContext | None = None
) -> AsyncIterator[Look]:
    """Open pages on a service; at the end no page may have complained of anything.

    Args:
        browser: Where.
        url: The service.
        namespace: What they look at, if they are not told otherwise.
        shared: For pages that ask for nothing special; others get a context of their own.
    """
    opened: list[tuple[Looking, bool]] = []

    async def look(
        *, namespace: str | None = namespace, calm: bool = True, **options: Any
    ) -> Looking:
        own = shared is None or bool(options)
        context = await new_context(browser, **options) if own or shared is None else shared
        looked = Looking(await context.new_page(), url, namespace)
        opened.append((looked, calm))
        return looked

    try:
        yield look
        for looked, calm in opened:
            if calm:
                assert not looked.complaints, looked.complaints
                assert await looked.violations() == []
    finally:
        for looked, _ in opened:
            if looked.page.context is shared:
                await looked.page.evaluate("() => localStorage.clear()")
                await looked.page.close()
            else:
                await looked.page.context.close()
