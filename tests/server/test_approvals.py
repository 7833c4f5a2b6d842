"""A person answers what waits, through the service."""

from __future__ import annotations

import httpx

from crux_workspace import Workspace
from crux_workspace.agent import CommandRequest, PermissionGate, PermissionPolicy
from tests.server.conftest import SECRET
from tests.support.services import serving, token_of

TOKENS = [
    token_of(SECRET, name="boss", access="readwrite", approvals=True),
    token_of("secret-of-a-reader-01", name="watcher", access="read", approvals=True),
    token_of("secret-of-a-writer-01", name="writer", access="readwrite"),
]


async def test_what_waits_is_listed_and_answered(ws: Workspace) -> None:
    gate = PermissionGate(PermissionPolicy(), mode="interactive")
    asked = await gate.check(CommandRequest("make all"), thread_id="t 1")
    assert asked.interrupt is not None
    async with (
        serving(ws, tokens=TOKENS, gate=gate) as url,
        httpx.AsyncClient(base_url=url) as http,
    ):

        def sent_by(secret: str) -> dict[str, str]:
            return {"authorization": f"Bearer {secret}"}

        boss, watcher, writer = map(
            sent_by, (SECRET, "secret-of-a-reader-01", "secret-of-a-writer-01")
        )
        assert (await http.get("/v1/approvals", headers=boss)).json() == {"threads": ["t 1"]}
        for headers, status in (({}, 401), (writer, 403), (watcher, 200), (boss, 200)):
            answer = await http.get("/threads/t%201/pending_interrupts", headers=headers)
            assert answer.status_code == status
        [waiting] = answer.json()["interrupts"]
        answer_once = {
            "interruptId": waiting["interruptId"],
            "status": "resolved",
            "payload": "once",
        }
        envelope = {"resume": [answer_once], "route": "/inspector"}
        for headers, status in (({}, 401), (writer, 403), (watcher, 403)):
            assert (
                await http.post("/threads/t%201/resume", headers=headers, json=envelope)
            ).status_code == status
        async with http.stream("GET", "/threads/t%201/interrupts", headers=watcher) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data:"):
                    assert "make all" in line
                    break
        await http.post("/v1/session", json={}, headers=boss)
        forged = await http.post("/threads/t%201/resume", json=envelope)
        assert forged.status_code == 403  # a cookie alone does not answer
        done = await http.post("/threads/t%201/resume", headers=boss, json=envelope)
        assert done.status_code == 200, done.text
        assert (await http.get("/v1/approvals", headers=boss)).json() == {"threads": []}
    assert (await gate.check(CommandRequest("make all"), thread_id="t 1")).outcome == "allow"
