"""A browser, a service and a page that tells of everything that went wrong in it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser

from crux_workspace import Workspace, open_workspace
from tests.inspector.looking import Look, Looking, looking
from tests.support.browser import browsing


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def browser() -> AsyncIterator[Browser]:
    """A Chromium without a window, shared by the tests of a file."""
    async with browsing() as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def ws() -> AsyncIterator[Workspace]:
    """An empty workspace in memory."""
    async with open_workspace("memory://", id="lab", namespace="main") as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def look(browser: Browser, ws: Workspace) -> AsyncIterator[Look]:
    """Opens the inspector on the workspace; whoever has no token may write."""
    async with looking(browser, ws) as look:
        yield look


__all__ = ["Looking"]
