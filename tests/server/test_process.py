"""The service as a process of its own: how it starts, stops, and what a crash leaves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx

from tests.support.services import service_process


async def test_a_term_signal_ends_it_cleanly(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'work.db'}"
    async with (
        service_process(store, "--write") as service,
        httpx.AsyncClient(base_url=service.url) as client,
    ):
        body = {"path": "/workspace/a.md", "content": "a"}
        assert (await client.post("/v1/write", json=body)).status_code == 200

        async def listen() -> str:
            async with client.stream("GET", "/v1/events") as stream:
                return "".join([line async for line in stream.aiter_lines()])

        listening = asyncio.ensure_future(listen())
        await asyncio.sleep(0.2)
        assert await service.stop() == 0
        assert "event: ready" in await listening
