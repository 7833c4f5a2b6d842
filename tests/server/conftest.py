"""A served workspace and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from crux_workspace import Workspace, open_workspace
from tests.support.services import serving, token_of

SECRET = "a-secret-for-everything"  # noqa: S105 - of the tests


@pytest.fixture
async def ws() -> AsyncIterator[Workspace]:
    """The workspace behind the service, in memory, with a runtime."""
    async with open_workspace("memory://") as opened:
        yield opened


@pytest.fixture
async def url(ws: Workspace) -> AsyncIterator[str]:
    """Where it is served to whoever has the token `SECRET`."""
    token = token_of(SECRET, access="readwrite", all_namespaces=True, approvals=True)
    async with serving(ws, tokens=[token]) as found:
        yield found


@pytest.fixture
async def http(url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client that sends the token."""
    headers = {"authorization": f"Bearer {SECRET}"}
    async with httpx.AsyncClient(base_url=url, headers=headers) as client:
        yield client
