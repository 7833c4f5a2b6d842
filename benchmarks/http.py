"""HTTP: a file read through the service beside the service's own empty answer, on one connection each."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks.floor import BODY
from benchmarks.slices import paired, url_of
from crux_workspace import open_workspace
from tests.support.services import Connection, service_process

__all__ = ["AT_MOST", "measure_http"]

AT_MOST = 3.0
_FILES = 50


async def empty(connection: Connection, count: int = 200) -> float:
    """Ask for nothing."""
    began = time.perf_counter()
    for _ in range(count):
        await connection.ask("GET", "/healthz")
    return (time.perf_counter() - began) / count


async def read(connection: Connection, count: int = 200) -> float:
    """Read one of 50 files of 1 KiB."""
    began = time.perf_counter()
    for number in range(count):
        path = f"/workspace/hot/f{number % _FILES}.md"
        status, body = await connection.ask("GET", "/v1/file", path=path)
        assert (status, len(body)) == (200, len(BODY))
    return (time.perf_counter() - began) / count


async def measure_http(pairs: int) -> list[dict[str, object]]:
    """Measure against a service in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        store = url_of(Path(folder), "http", "normal")
        async with open_workspace(store) as ws:
            for number in range(_FILES):
                await ws.write(f"/workspace/hot/f{number}.md", BODY)
        async with service_process(store) as service, Connection(service.url) as connection:
            figures = await paired(partial(empty, connection), partial(read, connection), pairs)
    return [{"row": "HTTP: read 1 KiB / an empty answer", "at_most": AT_MOST, **figures}]
