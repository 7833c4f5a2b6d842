"""The service as a process of its own: how it starts, stops, and what a crash leaves."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from crux_workspace import open_workspace
from tests.support.services import ROOT, ServiceProcess, service_process

ROUNDS = int(os.environ.get("CRUX_SERVER_CRASHES", "2"))
"""How often the process is killed; more for a long run."""


async def test_a_term_signal_ends_it_cleanly(tmp_path: Path) -> None:
    """Streams end, what was begun is finished and acknowledged, and the process leaves with 0."""
    store = f"sqlite:///{tmp_path / 'work.db'}"
    acknowledged: list[int] = []
    async with (
        service_process(store, "--write") as service,
        httpx.AsyncClient(base_url=service.url) as client,
    ):
        begun = asyncio.Event()

        async def listen() -> list[str]:
            async with client.stream("GET", "/v1/events") as stream:
                return [line async for line in stream.aiter_lines()]

        async def write(worker: int) -> None:
            for number in range(100_000):
                body = {"path": f"/workspace/{worker}.md", "text": f"{number}\n"}
                try:
                    answer = await client.post("/v1/append", json=body)
                except httpx.TransportError:
                    return
                if answer.status_code != 200:
                    return
                acknowledged.append(worker)
                if len(acknowledged) > 50:
                    begun.set()

        listening = asyncio.ensure_future(listen())
        writing = [asyncio.ensure_future(write(worker)) for worker in range(4)]
        await asyncio.wait_for(begun.wait(), 30)
        assert await service.stop() == 0
        await asyncio.gather(*writing)
        assert "event: ready" in await listening
    async with open_workspace(store) as ws:
        for worker in range(4):
            lines = (await ws.read_text(f"/workspace/{worker}.md")).split()
            assert lines == [str(number) for number in range(len(lines))]
            # A commit whose answer the end of its connection took is there as well.
            assert acknowledged.count(worker) <= len(lines) <= acknowledged.count(worker) + 1


async def write_until_killed(service: ServiceProcess, worker: int, told: dict[str, int]) -> None:
    """Append through transactions; `told` counts what was acknowledged. A lost answer is asked for again with its key."""
    path = f"/workspace/{worker}.md"
    async with httpx.AsyncClient(base_url=service.url) as client:
        while True:
            number = told.get(path, 0)
            operations = [
                {"verb": "append", "path": path, "text": f"{number}\n"},
                {"verb": "write", "path": f"/outputs/{worker}.json", "content": {"n": number}},
            ]
            headers = {"idempotency-key": f"{worker}:{number}"}
            try:
                body = {"operations": operations}
                answer = await client.post("/v1/transaction", json=body, headers=headers)
            except httpx.TransportError:
                return
            assert answer.status_code == 200, answer.text
            told[path] = number + 1


@pytest.mark.slow
async def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'work.db'}"
    told: dict[str, int] = {}
    for _ in range(ROUNDS):
        before = sum(told.values())
        async with service_process(store, "--write") as service:
            writing = [
                asyncio.ensure_future(write_until_killed(service, worker, told))
                for worker in range(6)
            ]
            async with asyncio.timeout(30):
                while sum(told.values()) < before + 60:  # noqa: ASYNC110 - of several tasks
                    await asyncio.sleep(0.01)
            await service.kill()
            await asyncio.gather(*writing)
        async with open_workspace(store) as ws:
            for path, count in told.items():
                lines = (await ws.read_text(path)).split()
                assert lines == [str(number) for number in range(len(lines))]
                assert count <= len(lines) <= count + 1
                twin = path.replace("workspace", "outputs").replace(".md", ".json")
                assert await ws.read_json(twin) == {"n": len(lines) - 1}
    async with (
        service_process(store, "--write") as service,
        httpx.AsyncClient(base_url=service.url) as client,
    ):
        for worker in range(6):  # the last one again: it is there once
            path = f"/workspace/{worker}.md"
            number = told[path] - 1
            operations = [
                {"verb": "append", "path": path, "text": f"{number}\n"},
                {"verb": "write", "path": f"/outputs/{worker}.json", "content": {"n": number}},
            ]
            headers = {"idempotency-key": f"{worker}:{number}"}
            body = {"operations": operations}
            answer = await client.post("/v1/transaction", json=body, headers=headers)
            assert answer.json()["replayed"] is True


async def run(*arguments: str, **env: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "crux_workspace.cli",
        *arguments,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 30)
    return process.returncode, out.decode()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["serve", "memory://", "--host", "0.0.0.0"], 1, "Without a token"),  # noqa: S104
        (["serve", "memory://", "--token", "short"], 1, "at least 16"),
        (["serve", "memory://", "--tokens", "/nowhere/tokens.toml"], 1, "cannot be read"),
        (["serve", "memory://", "--port", "70000"], 2, "--port"),
        (["serve", "sqlite:///x.db", "--app", "a:b"], 2, "--app"),
    ],
)
async def test_what_it_does_not_start_with(arguments: list[str], code: int, says: str) -> None:
    found, out = await run(*arguments)
    assert (found, says in out) == (code, True), out


async def test_an_address_that_is_taken_is_told(tmp_path: Path) -> None:
    async with service_process("memory://") as service:
        port = service.url.rpartition(":")[2]
        code, out = await run("serve", "memory://", "--port", port)
    assert (code, "Traceback" in out) == (1, False), out
    assert port in out


async def test_a_token_is_made_and_lets_in(tmp_path: Path) -> None:
    code, out = await run("token", "reviewer")
    assert code == 0
    secret = next(line for line in out.splitlines() if line.startswith("token: "))[7:]
    tokens = tmp_path / "tokens.toml"
    tokens.write_text("\n".join(line for line in out.splitlines() if secret not in line))
    store = f"sqlite:///{tmp_path / 'work.db'}"
    async with service_process(store, "--tokens", str(tokens)) as service:
        headers = {"authorization": f"Bearer {secret}"}
        async with httpx.AsyncClient(base_url=service.url) as client:
            assert (await client.get("/v1/list")).status_code == 401
            told: dict[str, Any] = (await client.get("/v1/session", headers=headers)).json()
            assert (told["name"], told["write"], told["namespace"]) == (
                "reviewer",
                False,
                "default",
            )
