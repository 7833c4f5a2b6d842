"""A GiB in and out, searched and windowed, in a few MiB: measured in a process of its own.

`CRUX_STREAM_MIB` says how much; by default 96, in CI 1,024, of which the slower tests take a quarter, and servers the default: more
than what may be taken, so that whoever held it whole would be found out.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SERVERS
from tests.support.crew import Crew, in_ci
from tests.support.postgres import PostgresServer
from tests.support.redis_servers import RedisServer

ASKED = os.environ.get("CRUX_STREAM_MIB")
MIB = int(ASKED or (1024 if in_ci() else 96))
FEWER_MIB = MIB if ASKED or not in_ci() else MIB // 4
SERVER_MIB = MIB if ASKED else 96
MOST_EXTRA = 64 << 20

PRELUDE = """
import asyncio, hashlib, json, os, sys
from crux_workspace import open_workspace
MIB = 1 << 20
url, size = sys.argv[1], int(sys.argv[2]) * MIB

def peak():
    with open("/proc/self/status") as status:
        [line] = [line for line in status if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024

async def chunks(block):
    for _ in range(size // len(block)):
        yield block

async def length(stream):
    found = 0
    async for chunk in stream:
        found += len(chunk)
    return found

async def warm(ws):
    await ws.write("/workspace/warm.bin", os.urandom(MIB))
    await length(ws.stream("/workspace/warm.bin"))
    await ws.write("/workspace/warm.txt", "a warm line\\n" * 100_000)
    await ws.grep("nothing")

async def main():
    async with open_workspace(url) as ws:
        await warm(ws)
        before = peak()
        told = await work(ws)
        print(json.dumps({**told, "extra": peak() - before}))

asyncio.run(main())
"""


def _code(work: str) -> str:
    head, tail = PRELUDE.split("async def main():")
    return f"{head}{work}\nasync def main():{tail}"


def _in_file(folder: Path) -> str:
    return f"sqlite:///{folder}/work.db?durability=normal"


def _run(crew: Crew, url: str, work: str, mib: int) -> dict[str, Any]:
    worker = crew.start(_code(work), url, mib)
    told: dict[str, Any] = worker.first()
    worker.finish()
    assert told["extra"] <= MOST_EXTRA, f"{told['extra'] >> 20} MiB more than before"
    return told


@pytest.fixture
def crew() -> Any:
    with Crew().at_work() as crew:
        yield crew


BINARY = """
async def work(ws):
    block = os.urandom(MIB)
    file = await ws.write("/workspace/big.bin", chunks(block))
    assert file.content_kind == "binary"
    digest = hashlib.sha256()
    for _ in range(size // MIB):
        digest.update(block)
    assert file.sha256 == digest.hexdigest()
    out = await length(ws.stream("/workspace/big.bin"))
    inside = await length(ws.stream("/workspace/big.bin", offset=size // 2, length=5 * MIB))
    await ws.copy("/workspace/big.bin", "/workspace/there.bin", to_namespace="other")
    there = await length(ws.stream("/workspace/there.bin", namespace="other"))
    return {"size": file.size, "out": out, "inside": inside, "there": there}
"""


@pytest.mark.timeout(60 + MIB)
def test_binary_goes_in_and_out_in_constant_memory(crew: Crew, tmp_path: Path) -> None:
    told = _run(crew, _in_file(tmp_path), BINARY, MIB)
    assert told["size"] == told["out"] == told["there"] == MIB << 20
    assert told["inside"] == 5 << 20


@pytest.fixture(params=SERVERS)
def server_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty store on a server that keeps assets as well."""
    server: PostgresServer | RedisServer = request.getfixturevalue(f"{request.param}_server")
    if isinstance(server, PostgresServer):
        server.empty()
    return server.url()


@pytest.mark.timeout(60 + SERVER_MIB)
def test_a_server_gets_and_gives_it_in_constant_memory(crew: Crew, server_url: str) -> None:
    told = _run(crew, server_url, BINARY, SERVER_MIB)
    assert told["size"] == told["out"] == told["there"] == SERVER_MIB << 20
    assert told["inside"] == 5 << 20


TEXT = """
async def work(ws):
    path = "/workspace/big.txt"
    block = b"a line of 32 bytes, and its end\\n" * (MIB // 32)
    file = await ws.write(path, chunks(block), encoding="utf-8")
    await ws.append(path, "needle")
    await ws.append(path, " in the end\\n")
    lines = size // 32 + 1
    last = await ws.read(path, start_line=lines, end_line=lines)
    head = await ws.read(path)
    found = await ws.grep("needle in", context_lines=1)
    none = await ws.grep("nee+dle[a-z]{3}$", regex=True)
    out = await length(ws.stream(path))
    return {
        "last": last.content, "total": last.total_lines, "head": len(head.content), "out": out,
        "at": [found.matches[0].line, found.matches[0].column], "none": len(none.matches),
    }
"""


@pytest.mark.timeout(60 + MIB)
def test_text_is_windowed_searched_and_added_to_in_constant_memory(
    crew: Crew, tmp_path: Path
) -> None:
    told = _run(crew, _in_file(tmp_path), TEXT, FEWER_MIB)
    lines = (FEWER_MIB << 20) // 32 + 1
    assert told["last"] == "needle in the end\n"
    assert told["total"] == lines
    assert told["head"] == 64_000
    assert told["out"] == (FEWER_MIB << 20) + 18
    assert told["at"] == [lines, 1]
    assert told["none"] == 0


ONE_LINE = """
async def work(ws):
    path = "/workspace/line.txt"
    file = await ws.write(path, chunks(b"x" * MIB), encoding="utf-8")
    await ws.append(path, "needle")
    literal = await ws.grep("xneedle", context_lines=3)
    expression = await ws.grep("x{10}n[e]edle$", regex=True)
    return {
        "columns": [m.column for m in (*literal.matches, *expression.matches)],
        "shown": max(len(m.text) for m in (*literal.matches, *expression.matches)),
        "size": file.size,
    }
"""


@pytest.mark.timeout(60 + MIB)
def test_a_line_without_an_end_is_searched_in_constant_memory(crew: Crew, tmp_path: Path) -> None:
    told = _run(crew, _in_file(tmp_path), ONE_LINE, FEWER_MIB)
    assert told["columns"] == [told["size"], told["size"] - 9]
    assert told["shown"] <= 2_000
