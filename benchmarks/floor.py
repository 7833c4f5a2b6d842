"""The raw floors: what SQLite itself costs for the rows that a versioned write must store, without this library.

A commit of the floor stores the head with its 1 KiB body, the namespace's record and the log entry, and for an overwrite the version
that ended, with its body; it reads the old head first; one transaction, one thread hop from asyncio.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

__all__ = ["BODY", "HEAD", "LOG", "RawFloor"]

BODY = os.urandom(512).hex()
_T = TypeVar("_T")
HEAD = json.dumps(
    {"id": "f" * 32, "v": 3, "m": "text/markdown", "s": 1024, "h": "a" * 64, "c": "c" * 24}
).encode()
LOG = json.dumps(
    {"id": "c" * 24, "verb": "write", "changes": [{"t": "update", "p": "/workspace/a.md", "v": 3}]}
).encode()
_SCHEMA = (
    "create table if not exists records(part integer, key text, revision integer, value blob, body blob, "
    "primary key (part, key)) without rowid"
)
_UPSERT = (
    "insert into records(part, key, revision, value, body) values (1, ?, ?, ?, ?) on conflict do update "
    "set revision = excluded.revision, value = excluded.value, body = excluded.body"
)
_OLD = "select key, revision, value, body from records where part = 1 and key in (?, 'meta')"
_POINT = "select revision, value, body from records where part = 1 and key = ?"
_SCAN = (
    "select key, revision, value, body from records where part = 1 and key >= 'head' and key < 'heae' "
    "and instr(body, ?) > 0 order by key"
)


class RawFloor:
    """One SQLite file, driven from asyncio through one thread."""

    def __init__(self, folder: Path, *, synchronous: str) -> None:
        self._folder = folder
        self._directory = os.open(folder, os.O_RDONLY)
        self._pool = ThreadPoolExecutor(1)
        self._connection = sqlite3.connect(
            folder / "floor.db", isolation_level=None, check_same_thread=False
        )
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute(f"pragma synchronous = {synchronous}")
        self._connection.execute(_SCHEMA)
        self._next = 0

    def close(self) -> None:
        """Close the file and end the thread."""
        self._pool.shutdown()
        self._connection.close()
        os.close(self._directory)

    def numbers(self, count: int) -> range:
        """Return numbers that no file of this floor has had."""
        self._next += count
        return range(self._next - count, self._next)

    async def _hop(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def _rows(self, number: int, *, overwrite: bool) -> None:
        key = f"head/workspace/d{number % 100}/f{number % 50 if overwrite else number}.md"
        self._connection.execute(_OLD, (key,)).fetchall()
        body = BODY.encode()
        puts = [
            (key, number, HEAD, body),
            ("meta", number, b'{"seq":1}', None),
            (f"log/{number:016d}", number, LOG, None),
        ]
        if overwrite:
            puts.append((f"state/{number % 50}/{number:016d}", number, HEAD, body))
        self._connection.executemany(_UPSERT, puts)

    def _commit(self, numbers: Iterable[int], overwrite: bool) -> None:
        self._connection.execute("begin immediate")
        for number in numbers:
            self._rows(number, overwrite=overwrite)
        self._connection.execute("commit")

    async def writes(self, count: int, *, overwrite: bool) -> float:
        """Return seconds per commit of one client."""
        began = time.perf_counter()
        for number in self.numbers(count):
            await self._hop(lambda n=number: self._commit([n], overwrite))  # type: ignore[misc]
        return (time.perf_counter() - began) / count

    async def batch(self, files: int, repeats: int) -> float:
        """Return seconds per transaction of some files."""
        began = time.perf_counter()
        for _ in range(repeats):
            numbers = self.numbers(files)
            await self._hop(lambda n=numbers: self._commit(n, overwrite=False))  # type: ignore[misc]
        return (time.perf_counter() - began) / repeats

    async def grouped(self, clients: int, each: int, *, overwrite: bool) -> float:
        """Return seconds per commit of concurrent clients whose commits share transactions."""
        waiting: list[tuple[int, asyncio.Future[None]]] = []
        flushing: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()

        async def flush() -> None:
            nonlocal flushing
            while waiting:
                group = waiting[:]
                waiting.clear()
                numbers = [number for number, _ in group]
                await self._hop(lambda: self._commit(numbers, overwrite))  # noqa: B023 - awaited at once
                for _, future in group:
                    future.set_result(None)
            flushing = None

        async def client() -> None:
            nonlocal flushing
            for number in self.numbers(each):
                future = loop.create_future()
                waiting.append((number, future))
                if flushing is None:
                    flushing = loop.create_task(flush())
                await future

        began = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(clients)))
        return (time.perf_counter() - began) / (clients * each)

    def hold(self, bodies: dict[str, str]) -> None:
        """Store heads with their bodies, as `searches` scans them."""
        rows = [(f"head{path}", 1, HEAD, body.encode()) for path, body in bodies.items()]
        self._connection.execute("begin immediate")
        self._connection.executemany(_UPSERT, rows)
        self._connection.execute("commit")

    async def searches(self, word: str, hits: int, repeats: int) -> float:
        """Return seconds per scan of all heads for those whose body holds a word, through one hop."""

        def search() -> list[object]:
            return self._connection.execute(_SCAN, (word.encode(),)).fetchall()

        began = time.perf_counter()
        for _ in range(repeats):
            assert len(await self._hop(search)) == hits
        return (time.perf_counter() - began) / repeats

    async def durable_files(self, count: int) -> float:
        """Return seconds per plain file of 1 KiB that survives a power cut: temporary file, fsync, rename, fsync of the folder."""

        def write(number: int) -> None:
            temporary, target = self._folder / f"t{number}", self._folder / f"f{number % 50}.md"
            with temporary.open("wb") as file:
                file.write(BODY.encode())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
            os.fsync(self._directory)

        began = time.perf_counter()
        for number in range(count):
            write(number)
        return (time.perf_counter() - began) / count

    async def selects(self, count: int) -> float:
        """Return seconds per point select through one hop."""

        def select(number: int) -> object:
            key = f"head/workspace/d{number % 50}/f{number % 50}.md"
            return self._connection.execute(_POINT, (key,)).fetchone()

        began = time.perf_counter()
        for number in range(count):
            await self._hop(lambda n=number: select(n))  # type: ignore[misc]
        return (time.perf_counter() - began) / count
