"""What ``crux-workspace serve`` adds: the page, and the gate over what waits in the store."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, expect

from crux_workspace.agent import CommandRequest, PermissionGate, record_permission_store
from storage_adapters import open_storage
from tests.inspector.looking import pages
from tests.support.services import service_process

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_an_agent_of_another_process_is_answered(browser: Browser, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'agents.db'}"
    async with open_storage(store) as storage:
        gate = PermissionGate(
            store=record_permission_store(storage.records),
            mode="interactive",
            interrupts=storage.records,
        )
        push = CommandRequest("git push origin main")
        asked = await gate.check(push, thread_id="t-1", call_id="call-1")
        assert asked.interrupt is not None
        async with (
            service_process(store, "--write", "--in-store") as process,
            pages(browser, process.url, "default") as look,
        ):
            seen = await look()
            await seen.go("approvals")
            await seen.main.get_by_role("button", name="Always").click()
            await expect(
                seen.main.get_by_role("heading", name="Nothing waits for you")
            ).to_be_visible()
        told = await gate.wait(asked.interrupt, timeout_ms=8_000)
        assert (told.outcome, told.answer) == ("allow", "always")
        again = await gate.check(push, thread_id="t-1", call_id="call-2")
        assert again.outcome == "allow"


async def test_the_page_can_be_left_out(tmp_path: Path) -> None:
    async with (
        service_process(f"sqlite:///{tmp_path / 'plain.db'}", "--no-inspector") as process,
        httpx.AsyncClient(base_url=process.url) as http,
    ):
        assert (await http.get("/inspector/")).status_code == 404
        assert (await http.get("/v1/session")).json()["write"] is False
