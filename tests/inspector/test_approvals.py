"""What agents wait for, answered in the browser."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from crux_workspace import Workspace
from crux_workspace.agent import (
    CommandRequest,
    Interrupt,
    PathRequest,
    PermissionGate,
    PermissionPolicy,
    ToolRequest,
)
from tests.inspector.looking import looking
from tests.support.services import token_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

READER, WRITER = "reader-of-approvals", "writer-without-any"
PUSH = CommandRequest("git push origin main")
OUTSIDE = PathRequest("readFile", "/etc/hosts", root="/srv/app")


def interactive(**policy: object) -> PermissionGate:
    return PermissionGate(PermissionPolicy(**policy), mode="interactive")  # type: ignore[arg-type]


async def asked(
    gate: PermissionGate, request: CommandRequest | PathRequest, call: str
) -> Interrupt:
    """Have an agent ask; returns what waits."""
    decision = await gate.check(request, thread_id="t-1", call_id=call)
    assert decision.interrupt is not None
    return decision.interrupt


async def answered(gate: PermissionGate, interrupt: Interrupt) -> tuple[str, str | None]:
    """What the agent that waits is told."""
    decision = await gate.wait(interrupt, timeout_ms=8_000)
    return decision.outcome, decision.answer


@pytest.mark.parametrize(
    ("button", "told", "again"),
    [
        ("Once", ("allow", "once"), "interrupt"),
        ("Always", ("allow", "always"), "allow"),
        ("Deny", ("deny", "deny"), "interrupt"),
    ],
)
async def test_an_answer_reaches_the_agent(
    browser: Browser, ws: Workspace, button: str, told: tuple[str, str], again: str
) -> None:
    gate = interactive()
    waiting = await asked(gate, PUSH, "call-1")
    async with looking(browser, ws, gate=gate) as look:
        seen = await look()
        await seen.go("approvals")
        thread = seen.main.get_by_role("region", name="Thread t-1")
        await expect(thread.get_by_label("What is asked")).to_have_text("git push origin main")
        await expect(seen.page.get_by_label("1 waiting")).to_be_visible()
        await thread.get_by_role("button", name=button).click()
        await expect(seen.main.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
        assert await answered(gate, waiting) == told
        other = await gate.check(PUSH, thread_id="t-1", call_id="call-2")
        assert other.outcome == again


async def test_the_questions_of_a_thread_are_answered_together(
    browser: Browser, ws: Workspace
) -> None:
    gate = interactive()
    push = await asked(gate, PUSH, "call-1")
    outside = await asked(gate, OUTSIDE, "call-2")
    async with looking(browser, ws, gate=gate) as look:
        seen = await look()
        await seen.go("approvals")
        send = seen.main.get_by_role("button", name="Send 2 answers")
        await expect(send).to_be_disabled()
        questions = seen.main.locator(".question")
        await questions.filter(has_text="git push").get_by_role("button", name="Once").click()
        await expect(send).to_be_disabled()
        await questions.filter(has_text="/etc/hosts").get_by_role("button", name="Deny").click()
        await send.click()
        await expect(seen.main.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    assert await answered(gate, push) == ("allow", "once")
    assert await answered(gate, outside) == ("deny", "deny")


async def test_what_comes_later_shows_up_and_always_is_offered_only_where_it_holds(
    browser: Browser, ws: Workspace
) -> None:
    gate = interactive(approve=["sendMail"])
    async with looking(browser, ws, gate=gate) as look:
        seen = await look()
        await seen.go("approvals")
        await expect(seen.main.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
        await gate.check(CommandRequest("echo $(date"), thread_id="t-2", call_id="call-1")
        thread = seen.main.get_by_role("region", name="Thread t-2")
        await expect(thread.get_by_role("button", name="Once")).to_be_visible()
        await expect(thread.get_by_role("button", name="Always")).to_have_count(0)
        await gate.check(
            ToolRequest("sendMail", {"to": "a@b.example"}), thread_id="t-3", call_id="call-1"
        )
        await expect(seen.main.get_by_role("region", name="Thread t-3")).to_contain_text(
            "a@b.example"
        )


async def test_who_may_not_answer_sees_no_buttons_and_who_may_not_see_sees_nothing(
    browser: Browser, ws: Workspace
) -> None:
    gate = interactive()
    await asked(gate, PUSH, "call-1")
    tokens = [
        token_of(READER, all_namespaces=True, approvals=True),
        token_of(WRITER, all_namespaces=True, access="readwrite"),
    ]
    async with looking(browser, ws, gate=gate, tokens=tokens) as look:
        reader = await look()
        await reader.go("approvals", token=READER)
        await expect(reader.main.get_by_label("What is asked")).to_be_visible()
        await expect(reader.main.get_by_role("button", name="Once")).to_have_count(0)
        writer = await look()
        await writer.go("approvals", token=WRITER)
        await expect(
            writer.main.get_by_role("heading", name="Approvals are for others")
        ).to_be_visible()
        await expect(writer.page.get_by_role("link", name="Approvals")).to_have_count(0)
