"""Redis: our side of each row beside what the driver and the server cost for the same keys, without this library.

A write of the floor is one script, sent by the driver's own client: it sets the head, `meta` and the log entry with values of the size
that ours have, the body of 1 KiB, and the two new keys in the index. A read of the floor is one HMGET that brings head and body.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from functools import partial

import redis.asyncio

from benchmarks.floor import BODY
from benchmarks.rows import across_processes_p99, create, overwrite, read
from benchmarks.slices import paired
from crux_workspace import Workspace, open_workspace
from tests.support.redis_servers import serving

__all__ = ["measure_redis"]

_SCRIPT = """
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3], ARGV[2], ARGV[4], 'meta', ARGV[5])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[6])
redis.call('ZADD', KEYS[3], 0, ARGV[1], 0, ARGV[2])
if ARGV[7] then
  redis.call('HSET', KEYS[1], ARGV[7], ARGV[3])
  redis.call('HSET', KEYS[2], ARGV[7], ARGV[6])
  redis.call('ZADD', KEYS[3], 0, ARGV[7])
end
return 1
"""
_HEAD, _LOG, _META = b"h" * 430, b"l" * 250, b"m" * 170
_CLIENTS = 32


class RawRedis:
    """The driver's client and the floor's script, on a database of their own."""

    def __init__(self, client: redis.asyncio.Redis, digest: str) -> None:
        self._client = client
        self._digest = digest
        self._next = 0

    @classmethod
    async def open(cls, port: int, database: int) -> RawRedis:
        """Connect."""
        client = redis.asyncio.Redis(host="127.0.0.1", port=port, db=database)
        raw = cls(client, await client.script_load(_SCRIPT))
        await raw.write(0)
        return raw

    async def write(self, space: int, *ended: str) -> None:
        """Set what one commit sets; with the version that it ended."""
        self._next += 1
        head, log = f"head/workspace/d{self._next % 100}/f{self._next}.md", f"log{self._next:016d}"
        keys = [f"{{{space}}}:{name}" for name in ("values", "bodies", "index")]
        await self._client.evalsha(
            self._digest, 3, *keys, head, log, _HEAD, _LOG, _META, BODY, *ended
        )

    async def writes(self, count: int = 150) -> float:
        """Return seconds per write of one client."""
        began = time.perf_counter()
        for _ in range(count):
            await self.write(0)
        return (time.perf_counter() - began) / count

    async def overwrites(self, count: int = 150) -> float:
        """Return seconds per overwrite of one client."""
        began = time.perf_counter()
        for _ in range(count):
            await self.write(0, f"state/{self._next:032d}/{self._next:016d}")
        return (time.perf_counter() - began) / count

    async def reads(self, count: int = 300) -> float:
        """Return seconds per read of one client."""
        await self._client.hset("read", mapping={"head": _HEAD, "body": BODY})
        began = time.perf_counter()
        for _ in range(count):
            await self._client.hmget("read", ["head", "body"])
        return (time.perf_counter() - began) / count

    async def clients(self, each: int = 10) -> float:
        """Return seconds per write of many clients at once, each with keys of its own."""

        async def client(space: int) -> None:
            for _ in range(each):
                await self.write(space)

        began = time.perf_counter()
        await asyncio.gather(*(client(space) for space in range(_CLIENTS)))
        return (time.perf_counter() - began) / (_CLIENTS * each)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


_taken = iter(range(10**9))


async def _clients(spaces: list[Workspace], each: int = 10) -> float:
    """Create files of 1 KiB, one client a namespace; per commit."""

    async def client(ws: Workspace) -> None:
        for _ in range(each):
            number = next(_taken)
            await ws.write(f"/workspace/d{number % 100}/f{number}.md", BODY)

    began = time.perf_counter()
    await asyncio.gather(*map(client, spaces))
    return (time.perf_counter() - began) / (len(spaces) * each)


async def measure_redis(pairs: int) -> list[dict[str, object]]:
    """Measure every row of Redis, on a server started for it."""
    found: list[dict[str, object]] = []
    with serving() as server:
        raw = await RawRedis.open(server.port, 1)
        async with open_workspace(server.url()) as ws:
            for number in range(50):
                await ws.write(f"/workspace/hot/f{number}.md", BODY)
            spaces = [ws.for_namespace(f"client {number}") for number in range(_CLIENTS)]
            rows: list[
                tuple[str, float, Callable[[], Awaitable[float]], Callable[[], Awaitable[float]]]
            ] = [
                ("Redis: write 1 KiB", 2.0, raw.writes, partial(create, ws)),
                ("Redis: overwrite 1 KiB", 2.0, raw.overwrites, partial(overwrite, ws)),
                ("Redis: read 1 KiB / HMGET", 1.5, raw.reads, partial(read, ws)),
                (
                    "Redis: 32 clients on 32 namespaces, per commit",
                    2.0,
                    raw.clients,
                    partial(_clients, spaces),
                ),
            ]
            for name, at_most, floor, ours in rows:
                figures = await paired(floor, ours, pairs)
                found.append({"row": name, "at_most": at_most, **figures})
            ms = statistics.median(
                [await across_processes_p99(ws, server.url(), poll_ms=60_000) for _ in range(3)]
            )
            found.append(
                {"row": "Redis: event in another process, p99", "at_most_ms": 50.0, "ms": ms}
            )
        await raw.aclose()
    return found
