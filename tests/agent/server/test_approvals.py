"""Approvals over HTTP: the page's routes, envelope and codes, and the walk of the page with the demo agent."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from crux_workspace.agent import CommandRequest, Decision, Interrupt, PermissionGate, approval_app
from crux_workspace.agent.demo import demo_app
from crux_workspace.errors import UnsupportedError

README = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
THREAD = "thread-1"
KEY = {"authorization": "Bearer one"}


@pytest.fixture
def gate() -> PermissionGate:
    return PermissionGate(mode="interactive")


def authorize(headers: Mapping[str, str], thread_id: str) -> bool:
    return headers.get("authorization") == "Bearer one" and thread_id.startswith("thread")


def client(app: Any, headers: dict[str, str] | None = None) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app)
    return httpx.AsyncClient(
        transport=transport, base_url="http://agent", headers=KEY if headers is None else headers
    )


async def asked(gate: PermissionGate, command: str = "make all", call: str = "c") -> Interrupt:
    found = (await gate.check(CommandRequest(command), thread_id=THREAD, call_id=call)).interrupt
    assert found is not None
    return found


def resolved(*interrupts: Interrupt, payload: str = "once") -> dict[str, Any]:
    return {
        "resume": [
            {"interruptId": i.interrupt_id, "status": "resolved", "payload": payload}
            for i in interrupts
        ],
        "route": "/navlog#agent",
    }


async def test_what_waits_is_listed_and_never_cached(gate: PermissionGate) -> None:
    async with client(approval_app(gate, authorize=authorize)) as http:
        empty = await http.get(f"/threads/{THREAD}/pending_interrupts")
        assert (empty.status_code, empty.json()) == (200, {"interrupts": []})
        interrupt = await asked(gate)
        found = await http.get(f"/threads/{THREAD}/pending_interrupts")
        assert found.headers["cache-control"] == "no-store"
        (entry,) = found.json()["interrupts"]
        assert entry["interruptId"] == interrupt.interrupt_id
        assert entry["value"] == interrupt.to_dict()
        assert len(entry["resumeKey"]) == 32


async def test_without_a_runner_the_answer_has_the_decisions_in_order(gate: PermissionGate) -> None:
    one, two = await asked(gate, call="1"), await asked(gate, call="2")
    async with client(approval_app(gate, authorize=authorize)) as http:
        body = resolved(two, one)
        body["resume"][1] = {"interruptId": one.interrupt_id, "status": "cancelled"}
        typed = {"content-type": "Application/JSON; charset=utf-8"}
        answer = await http.post(f"/threads/{THREAD}/resume", json=body, headers=typed)
    assert answer.status_code == 200
    first, second = answer.json()["decisions"]
    assert (first["allowed"], first["answer"], first["interrupt"]["interruptId"]) == (
        True,
        "once",
        two.interrupt_id,
    )
    assert (second["allowed"], second["answer"]) == (False, "deny")


async def test_every_refusal_has_its_status_and_its_code_in_lower_case(
    gate: PermissionGate,
) -> None:
    async with client(approval_app(gate, authorize=authorize)) as http:

        async def refused(body: Any, **options: Any) -> tuple[int, str]:
            sent = options or {"json": body}
            answer = await http.post(f"/threads/{THREAD}/resume", **sent)
            assert set(answer.json()) == {"error"}
            assert set(answer.json()["error"]) == {"code", "message"}
            return answer.status_code, answer.json()["error"]["code"]

        stranger = {"resume": [{"interruptId": "perm-x", "status": "cancelled"}], "route": "x"}
        assert await refused(stranger) == (409, "stale_interrupt")
        interrupt = await asked(gate)
        assert await refused({"resume": [], "route": "x"}) == (409, "resume_required")
        assert await refused(stranger) == (409, "interrupt_set_mismatch")
        assert await refused(resolved(interrupt, payload="perhaps")) == (
            400,
            "invalid_resume_payload",
        )
        wrong: list[Any] = [
            {},
            {"interrupt_id": interrupt.interrupt_id, "decision": "once"},
            {**resolved(interrupt), "more": 1},
            [],
            "x",
            None,
        ]
        for bad in wrong:
            assert await refused(bad) == (400, "invalid_resume_payload")
        typed = {"content-type": "application/json"}
        twice = '{"resume": [], "resume": []}'
        for content in (
            "{",
            "",
            "NaN",
            twice,
            "[" * 100_000,
            " " * 2_000_000,
            '{"resume": [], "route": "\xff',
        ):
            assert await refused(None, content=content.encode("latin-1"), headers=typed) == (
                400,
                "invalid_resume_payload",
            )
        form = json.dumps(resolved(interrupt)).encode()
        assert await refused(None, content=form, headers={"content-type": "text/plain"}) == (
            400,
            "invalid_resume_payload",
        )
        async with gate.resuming(THREAD):
            assert await refused(resolved(interrupt)) == (409, "resume_in_progress")
        assert await gate.pending(THREAD) == [interrupt]


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 401), ({"authorization": "Bearer two"}, 403), ({"cookie": "a=b"}, 403)],
)
async def test_who_may_not_sees_and_answers_nothing(
    headers: dict[str, str], status: int, gate: PermissionGate
) -> None:
    interrupt = await asked(gate)
    async with client(approval_app(gate, authorize=authorize), headers) as http:
        for answer in (
            await http.get(f"/threads/{THREAD}/pending_interrupts"),
            await http.get(f"/threads/{THREAD}/interrupts"),
            await http.post(f"/threads/{THREAD}/resume", json=resolved(interrupt)),
        ):
            assert answer.status_code == status
            assert interrupt.interrupt_id not in answer.text
    assert await gate.pending(THREAD) == [interrupt]


async def test_authorize_may_be_async_and_only_true_is_yes(gate: PermissionGate) -> None:
    async def later(headers: Mapping[str, str], thread_id: str) -> bool:
        return thread_id == THREAD

    async with client(approval_app(gate, authorize=later)) as http:
        assert (await http.get(f"/threads/{THREAD}/pending_interrupts")).status_code == 200
        assert (await http.get("/threads/other/pending_interrupts")).status_code == 403
    sloppy: Any = lambda *_: "yes"  # noqa: E731 - what must not count
    async with client(approval_app(gate, authorize=sloppy)) as http:
        assert (await http.get(f"/threads/{THREAD}/pending_interrupts")).status_code == 403


async def test_every_failure_has_the_one_form(gate: PermissionGate, tmp_path: Path) -> None:
    def broken(*_: Any) -> bool:
        raise RuntimeError("secret detail")

    async def told(app: Any, method: str, path: str) -> tuple[int, str]:
        async with client(app) as http:
            answer = await http.request(method, path)
            assert answer.headers["content-type"] == "application/json"
            assert set(answer.json()) == {"error"}
            assert set(answer.json()["error"]) == {"code", "message"}
            assert "secret" not in answer.text
            return answer.status_code, answer.json()["error"]["code"]

    app = approval_app(gate, authorize=authorize)
    failing = approval_app(gate, authorize=broken)
    assert await told(app, "GET", "/nothing") == (404, "not_found")
    assert await told(app, "GET", f"/threads/{THREAD}/resume") == (405, "method_not_allowed")
    assert await told(app, "DELETE", f"/threads/{THREAD}/interrupts") == (405, "method_not_allowed")
    for method, path in (("POST", "resume"), ("GET", "pending_interrupts"), ("GET", "interrupts")):
        assert await told(failing, method, f"/threads/{THREAD}/{path}") == (500, "internal")
    demo = demo_app(tmp_path)
    assert await told(demo, "GET", "/nothing") == (404, "not_found")
    assert await told(demo, "POST", "/threads/nobody/runs/stream") == (404, "thread_not_found")


def events(text: str) -> list[tuple[str, Any]]:
    found = []
    for block in text.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append((lines.get("event", "message"), json.loads(lines["data"])))
    return found


async def test_a_runner_streams_how_the_thread_goes_on_and_holds_it(gate: PermissionGate) -> None:
    going, may_end = asyncio.Event(), asyncio.Event()

    async def runner(thread_id: str, decisions: list[Decision]) -> AsyncIterator[Any]:
        yield ("tool_result", {"thread": thread_id, "allowed": decisions[0].allowed})
        going.set()
        await may_end.wait()
        yield {"plain": True}

    interrupt = await asked(gate)
    app = approval_app(gate, authorize=authorize, runner=runner)
    async with client(app) as http:
        first = asyncio.ensure_future(
            http.post(f"/threads/{THREAD}/resume", json=resolved(interrupt))
        )
        await going.wait()
        second = await http.post(f"/threads/{THREAD}/resume", json=resolved(interrupt))
        assert (second.status_code, second.json()["error"]["code"]) == (409, "resume_in_progress")
        may_end.set()
        answer = await first
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert events(answer.text) == [
            ("tool_result", {"thread": THREAD, "allowed": True}),
            ("message", {"plain": True}),
        ]
        third = await http.post(f"/threads/{THREAD}/resume", json=resolved(interrupt))
        assert third.json()["error"]["code"] == "stale_interrupt"


async def test_a_runner_that_fails_ends_the_stream_without_details_and_lets_the_thread_go(
    gate: PermissionGate,
) -> None:
    async def runner(thread_id: str, decisions: list[Decision]) -> AsyncIterator[Any]:
        yield ("started", {})
        raise RuntimeError("secret detail")

    interrupt = await asked(gate)
    async with client(approval_app(gate, authorize=authorize, runner=runner)) as http:
        answer = await http.post(f"/threads/{THREAD}/resume", json=resolved(interrupt))
        assert [name for name, _ in events(answer.text)] == ["started", "error"]
        assert "secret" not in answer.text
        again = await asked(gate, call="d")
        assert (
            await http.post(f"/threads/{THREAD}/resume", json=resolved(again))
        ).status_code == 200


async def test_what_waits_is_sent_as_events_each_once(gate: PermissionGate) -> None:
    """Straight through ASGI, because the stream has no end of its own."""
    app = approval_app(gate, authorize=lambda *_: True)
    one = await asked(gate)
    sent: list[bytes] = []
    gone = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            sent.append(message.get("body", b""))

    scope = {
        "type": "http", "method": "GET", "path": f"/threads/{THREAD}/interrupts", "raw_path": b"", "query_string": b"", "headers": [],
        "http_version": "1.1", "scheme": "http", "server": ("agent", 80), "client": ("me", 1), "asgi": {"version": "3.0"}, "root_path": "",
    }  # fmt: skip
    running = asyncio.ensure_future(app(scope, receive, send))
    async with asyncio.timeout(10):
        while not sent:
            await asyncio.sleep(0.02)
        two = await asked(gate, call="d")
        while len(sent) < 2:
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.6)
    gone.set()
    await running
    text = b"".join(sent).decode()
    assert events(text) == [("interrupt", one.to_dict()), ("interrupt", two.to_dict())]


async def test_the_walk_of_the_page_with_the_demo_agent(tmp_path: Path) -> None:
    async with client(demo_app(tmp_path), {}) as http:
        thread = (await http.post("/threads", json={})).json()["thread_id"]
        body = {
            "input": {"messages": [{"role": "user", "content": "fetch the API docs"}]},
            "route": "/navlog#agent",
        }
        first = events((await http.post(f"/threads/{thread}/runs/stream", json=body)).text)
        interrupt = dict(first)["interrupt"]
        assert (interrupt["type"], interrupt["kind"], interrupt["toolCallId"]) == (
            "permission-request",
            "command",
            "call_2",
        )
        busy = await http.post(f"/threads/{thread}/runs/stream", json=body)
        assert (busy.status_code, busy.json()["error"]["code"]) == (409, "resume_required")

        async def resume(found: dict[str, Any], payload: str) -> list[tuple[str, Any]]:
            entry = {"interruptId": found["interruptId"], "status": "resolved", "payload": payload}
            answer = await http.post(
                f"/threads/{thread}/resume", json={"resume": [entry], "route": "/navlog#agent"}
            )
            return events(answer.text)

        second = await resume(interrupt, "always")
        assert (
            dict(second)["tool_result"]["output"]["stdout"] == "fetched https://example.com/api\n"
        )
        path = dict(second)["interrupt"]
        assert path["detail"] == {
            "operation": "readFile",
            "path": "/etc/hostname",
            "suggestedPattern": "/etc/",
        }
        third = await resume(path, "deny")
        assert [name for name, _ in third][-2:] == ["message", "end"]
        assert "Permission denied" in third[0][1]["error"]
        assert (tmp_path / "workspace" / "reports" / "api.md").exists()
        later = (await http.post("/threads", json={})).json()["thread_id"]
        again = events((await http.post(f"/threads/{later}/runs/stream", json=body)).text)
        assert dict(again)["interrupt"]["kind"] == "path", "the command matches the allow list now"
        for method, route in (
            ("GET", "pending_interrupts"),
            ("GET", "interrupts"),
            ("POST", "resume"),
            ("POST", "runs/stream"),
        ):
            gone = await http.request(method, f"/threads/unknown/{route}", json={})
            assert (gone.status_code, gone.json()["error"]["code"]) == (404, "thread_not_found")


async def test_the_readme_s_walk_with_curl_is_what_the_demo_agent_understands(
    tmp_path: Path,
) -> None:
    """Each curl of the README, made by this client: the same methods, paths and bodies."""
    block = re.search(r"```sh\n(python -m crux_workspace\.agent\.demo.*?)```", README, re.S)
    assert block is not None
    calls = re.findall(
        r"curl (.*?)(?: \| jq -r '?([^')]*)'?\))?\n(?!  )", block[1].replace("\\\n ", "")
    )
    known = {"$THREAD": "", "'$ID'": ""}
    seen: list[str] = []
    async with client(demo_app(tmp_path), {}) as http:
        for call, query in calls:
            path = re.search(r"\$AGENT(\S+)", call)
            body = re.search(r" -d '(.*)'$", call)
            assert path is not None
            text = body[1] if body else ""
            for name, value in known.items():
                text = text.replace(name, value)
            method = "POST" if body else "GET"
            answer = await http.request(
                method, path[1].replace("$THREAD", known["$THREAD"]), content=text,
                headers={"content-type": "application/json"},
            )  # fmt: skip
            assert answer.status_code == 200, answer.text
            seen.append(answer.text)
            if query == ".thread_id":
                known["$THREAD"] = answer.json()["thread_id"]
            elif query:
                assert query == ".interrupts[0].interruptId"
                known["'$ID'"] = answer.json()["interrupts"][0]["interruptId"]
    assert len(seen) == 4
    assert dict(events(seen[1]))["interrupt"]["kind"] == "command"
    assert dict(events(seen[3]))["tool_result"]["output"]["stdout"].startswith("fetched")


def test_a_missing_starlette_names_the_extra(
    gate: PermissionGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    with pytest.raises(UnsupportedError) as caught:
        approval_app(gate, authorize=lambda *_: True)
    assert caught.value.hint == "Install crux-workspace[server]."
