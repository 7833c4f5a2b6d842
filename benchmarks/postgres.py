"""The rows of PostgreSQL: a server from a package, the raw floor by asyncpg, and ours, each over a socket of this machine.

A commit of the floor is one statement, so one round trip and one transaction: it stores the head with its 1 KiB body apart, the
namespace's record and the log entry, and for an overwrite the version that ended, which takes over the old body. It reads nothing and
checks nothing.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

import asyncpg

from benchmarks.floor import BODY, HEAD, LOG
from benchmarks.growth import Scale, hot_files, namespaces, versions
from benchmarks.rows import GROWTH, create, overwrite, read
from benchmarks.slices import paired
from crux_workspace import Workspace, open_workspace
from storage_adapters import migrate
from tests.support.postgres import PostgresServer, serving

__all__ = ["ROWS", "measure_postgres"]

_TABLES = """
create table bodies(part bigint, id bigint, data bytea, primary key (part, id));
create table records(part bigint, key text collate "C", revision bigint, at bigint, value bytea, body bigint,
    primary key (part, key)) with (fillfactor = 85)
"""
_STORE = """
with old as (select body from records where part = $1 and key = $4 and $10),
kept as (insert into bodies values ($1, $2, $3))
insert into records(part, key, revision, at, value, body)
select $1, $4, $2, $2, $5::bytea, $2 union all select $1, 'meta', $2, $2, $6::bytea, null
union all select $1, $7, $2, $2, $8::bytea, null
union all select $1, $9, $2, $2, $5::bytea, (select body from old) where $10
on conflict (part, key) do update set revision = excluded.revision, at = excluded.at,
    value = excluded.value, body = excluded.body
"""
_POINT = """
select r.value, b.data, r.revision, r.at from records r left join bodies b on b.part = r.part and b.id = r.body
where r.part = $1 and r.key = $2
"""
CLIENTS = 32
_WHERE = " (postgres)"
_DATABASES = ("hundred", "thousands")


class PostgresFloor:
    """Raw statements by asyncpg, on connections of its own."""

    def __init__(
        self, pool: asyncpg.Pool[asyncpg.Record], alone: asyncpg.Connection[asyncpg.Record]
    ) -> None:
        self._pool = pool
        self._alone = alone
        self._next = 1

    @classmethod
    async def open(cls, server: PostgresServer, stack: AsyncExitStack) -> PostgresFloor:
        """Make the tables and connect."""
        await server.create("floor")
        alone = await server.connect("floor")
        stack.push_async_callback(alone.close)
        await alone.execute(_TABLES)
        pool = await stack.enter_async_context(
            asyncpg.create_pool(
                host=str(server.folder), user="postgres", database="floor", max_size=10, reset=_keep
            )
        )
        return cls(pool, alone)

    async def _store(
        self, connection: asyncpg.Connection[asyncpg.Record], part: int, overwrites: bool
    ) -> None:
        self._next += 1
        number = self._next
        key = f"head/workspace/d{number % 100}/f{number % 50 if overwrites else number}.md"
        await connection.execute(
            _STORE, part, number, BODY.encode(), key, HEAD, b'{"seq":1}', f"log/{number:016d}", LOG,
            f"state/{number % 50}/{number:016d}", overwrites,
        )  # fmt: skip

    async def writes(self, *, overwrites: bool, count: int = 150) -> float:
        """Return seconds per commit of one client."""
        began = time.perf_counter()
        for _ in range(count):
            await self._store(self._alone, 1, overwrites)
        return (time.perf_counter() - began) / count

    async def selects(self, count: int = 300) -> float:
        """Return seconds per point select."""
        began = time.perf_counter()
        for number in range(count):
            await self._alone.fetchrow(
                _POINT, 1, f"head/workspace/d{number % 50}/f{number % 50}.md"
            )
        return (time.perf_counter() - began) / count

    async def side_by_side(self, each: int = 10) -> float:
        """Return seconds per commit of many clients, each with a namespace of its own."""

        async def client(part: int) -> None:
            for _ in range(each):
                async with self._pool.acquire() as connection:
                    await self._store(connection, part, False)  # type: ignore[arg-type]

        began = time.perf_counter()
        await asyncio.gather(*(client(100 + number) for number in range(CLIENTS)))
        return (time.perf_counter() - began) / (CLIENTS * each)


async def _keep(connection: object) -> None:
    """Give a connection back as it is."""


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    at_most: float
    floor: Callable[[PostgresFloor], Awaitable[float]]
    ours: Callable[[Workspace], Awaitable[float]]


_taken = iter(range(10**9))


async def namespaces_side_by_side(ws: Workspace, each: int = 10) -> float:
    """Create files of 1 KiB, many clients at once, each in a namespace of its own; per commit."""

    async def client(number: int) -> None:
        view = ws.for_namespace(f"client:{number}")
        for _ in range(each):
            await view.write(f"/workspace/f{next(_taken)}.md", BODY)

    began = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    return (time.perf_counter() - began) / (CLIENTS * each)


ROWS = (
    _Row("write 1 KiB", 2.0, lambda f: f.writes(overwrites=False), create),
    _Row("overwrite 1 KiB", 2.0, lambda f: f.writes(overwrites=True), overwrite),
    _Row("read 1 KiB / point select", 1.5, lambda f: f.selects(), read),
    _Row(
        "32 clients on 32 namespaces, per commit",
        1 / 0.6,
        lambda f: f.side_by_side(),
        namespaces_side_by_side,
    ),
)

_BUSY = """
import asyncio, sys, time
from crux_workspace import open_workspace
async def main(url, count, clients):
    async with open_workspace(url) as ws:
        began = time.perf_counter()
        async def client(number):
            for turn in range(count // clients):
                due = began + (turn * clients + number) / 200
                await asyncio.sleep(max(0, due - time.perf_counter()))
                await ws.write(f"/workspace/x/{number}-{time.time_ns()}", "x")
        await asyncio.gather(*(client(number) for number in range(clients)))
asyncio.run(main(sys.argv[1], int(sys.argv[2]), 4))
"""


async def busy_event_p99(ws: Workspace, url: str, events: int = 400) -> float:
    """Another process makes 200 commits a second; 99th percentile from the start of a write to its event here, in ms."""
    late: list[float] = []
    async with ws.watch("/workspace/x", recursive=True) as feed:
        await feed.ready()
        writer = await asyncio.create_subprocess_exec(sys.executable, "-c", _BUSY, url, str(events))
        async for event in feed:
            late.append((time.time_ns() - int(event.path.rpartition("-")[2])) / 1e6)
            if len(late) == events:
                break
        await writer.wait()
    return statistics.quantiles(late, n=100)[98]


async def measure_postgres(pairs: int, scale: Scale) -> list[dict[str, object]]:
    """Measure every row of PostgreSQL."""
    found: list[dict[str, object]] = []
    async with AsyncExitStack() as stack:
        server = stack.enter_context(serving(durable=True))
        floor = await PostgresFloor.open(server, stack)
        ws = await stack.enter_async_context(open_workspace(server.url()))
        await _fill(ws, 0)
        for row in ROWS:

            async def base(row: _Row = row) -> float:
                return await row.floor(floor)

            async def ours(row: _Row = row) -> float:
                return await row.ours(ws)

            figures = await paired(base, ours, pairs)
            found.append({"row": f"{row.name} (postgres)", "at_most": row.at_most, **figures})
        small, big = ws.for_namespace("small"), ws.for_namespace("big")
        await _fill(small, 100)
        await _fill(big, scale.files)
        for growth in GROWTH:

            async def few(ours: Callable[[Workspace], Awaitable[float]] = growth.ours) -> float:
                return await ours(small)

            async def many(ours: Callable[[Workspace], Awaitable[float]] = growth.ours) -> float:
                return await ours(big)

            figures = await paired(few, many, pairs)
            found.append(
                {
                    "row": f"{growth.name}: {scale.files} files / 100 (postgres)",
                    "at_most": growth.at_most,
                    **figures,
                }
            )
        found += await hot_files(small, big, pairs, scale, _WHERE)
        short, long = ws.for_namespace("short"), ws.for_namespace("long")
        found += await versions(short, long, pairs, scale, _WHERE)
        lone, crowded = [await _database(server, name, stack) for name in _DATABASES]

        async def settle() -> None:
            """Do now what autovacuum begins after so many writes, and what slows down others while it lasts."""
            for name in _DATABASES:
                await asyncio.to_thread(server.psql, name, "vacuum (analyze)")

        found += await namespaces(lone, crowded, pairs, scale, _WHERE, settle)
        ms = statistics.median([await busy_event_p99(ws, server.url()) for _ in range(3)])
        found.append(
            {
                "row": "event in another process, 200 commits/s, p99 (postgres)",
                "at_most_ms": 50.0,
                "ms": ms,
            }
        )
    return found


async def _database(server: PostgresServer, name: str, stack: AsyncExitStack) -> Workspace:
    """Open a workspace in a database of its own."""
    await server.create(name)
    await asyncio.to_thread(migrate, server.url(name))
    return await stack.enter_async_context(open_workspace(server.url(name)))


async def _fill(ws: Workspace, files: int) -> None:
    """Write 50 hot files among `files` others."""
    for number in range(50):
        await ws.write(f"/workspace/hot/f{number}.md", BODY)
    for start in range(0, files, 500):
        async with ws.transaction() as tx:
            for number in range(start, min(files, start + 500)):
                await tx.write(f"/workspace/b{number % 300}/f{number}.md", BODY)
