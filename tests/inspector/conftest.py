"""A browser, a service and a page that tells of everything that went wrong in it.

The tests of a file share a browser, a service and what the browser has cached; each has a namespace of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext

from crux_workspace import Workspace, open_workspace
from crux_workspace.inspector import inspector_app
from tests.inspector.looking import Look, new_context, pages
from tests.support.browser import browsing
from tests.support.services import serving


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def browser() -> AsyncIterator[Browser]:
    """A Chromium without a window."""
    async with browsing() as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def context(browser: Browser) -> AsyncIterator[BrowserContext]:
    """What the pages share that ask for nothing special: the browser's cache."""
    made = await new_context(browser)
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def root() -> AsyncIterator[Workspace]:
    """A workspace in memory, bound to no namespace."""
    async with open_workspace("memory://", id="lab", namespace=None) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def served(root: Workspace) -> AsyncIterator[str]:
    """Where it is served; whoever has no token may write."""
    async with serving(root, write=True, inspector=inspector_app()) as url:
        yield url


@pytest.fixture
def ws(root: Workspace, request: pytest.FixtureRequest) -> Workspace:
    """An empty namespace of it."""
    return root.for_namespace(request.node.name)


@pytest_asyncio.fixture(loop_scope="module")
async def look(
    browser: Browser,
    context: BrowserContext,
    served: str,
    ws: Workspace,
    request: pytest.FixtureRequest,
) -> AsyncIterator[Look]:
    """Opens the inspector on the namespace."""
    async with pages(browser, served, request.node.name, shared=context) as look:
        yield look
