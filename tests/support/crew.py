"""Processes that work on one store, and what must hold of the store afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from crux_workspace import Workspace
from crux_workspace.storage import Storage
from crux_workspace.storage.layout import partition_name
from storage_adapters import open_storage
from tests.support.soundness import Records, check_sound

__all__ = ["Crew", "Shared", "SharedDatabase", "SharedServer", "Worker", "in_ci", "look_at"]

LIMIT_S = 60


def in_ci() -> bool:
    """Tell whether the tests run where time matters less."""
    return bool(os.environ.get("CI"))


class Worker:
    """One process; what it prints are JSON lines."""

    def __init__(self, code: str, *arguments: str) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def first(self) -> Any:
        """Wait for the first line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        return json.loads(line)

    def go(self) -> None:
        """Let a process that waits for a line go on."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def finish(self) -> list[Any]:
        """Wait for the end; returns the lines that are left."""
        out, errors = self.process.communicate(timeout=LIMIT_S)
        assert self.process.returncode == 0, errors
        return [json.loads(line) for line in out.splitlines()]

    def kill(self) -> list[Any]:
        """End the process where it is; returns the lines that it had written whole."""
        self.process.kill()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        out = (
            self.process.stdout.read()
        )  # not communicate(): that misses lines which `first` read ahead
        errors = self.process.stderr.read()
        self.process.wait()
        assert "Traceback" not in errors, errors
        return [json.loads(line) for line in out.split("\n")[:-1]]

    def end(self) -> None:
        """Leave nothing running."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


class Crew:
    """Starts workers; those that still run at the end are killed."""

    def __init__(self) -> None:
        self.workers: list[Worker] = []

    def start(self, code: str, *arguments: object) -> Worker:
        """Start a worker."""
        worker = Worker(code, *map(str, arguments))
        self.workers.append(worker)
        return worker

    @contextlib.contextmanager
    def at_work(self) -> Iterator[Crew]:
        """Clean up behind the block."""
        try:
            yield self
        finally:
            for worker in self.workers:
                worker.end()


class Shared(Protocol):
    """A store that processes share."""

    @property
    def url(self) -> str:
        """Where it is."""
        ...

    @property
    def share(self) -> int:
        """Which part of the rounds of a long loop it plays, as 1 in so many."""
        ...

    async def check(self) -> Records:
        """Hold it to all its invariants: whole, counters true, log dense, every referenced asset there."""
        ...


@dataclass
class SharedServer:
    """A namespace on a server: a commit is one message, so a client that dies can only have sent it or not."""

    url: str
    share: int

    async def check(self) -> Records:
        """See `Shared.check`."""
        storage: Storage
        async with open_storage(self.url) as storage:
            records = await check_sound(storage.records, partition_name("default", "default"))
            assert storage.assets is not None
            for ref in records.referenced:
                assert await storage.assets.get(ref)
        return records


@dataclass
class SharedDatabase:
    """A namespace in an SQLite file."""

    path: Path
    durability: str
    share: int = 2

    @property
    def url(self) -> str:
        """See `Shared.url`."""
        return f"sqlite:///{self.path}?durability={self.durability}"

    async def check(self) -> Records:
        """See `Shared.check`."""
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
            (astray,) = connection.execute(
                "select (select count(*) from bodies where id not in "
                "(select body_id from records where body_id is not null)) + "
                "(select count(*) from records "
                "where body_id is not null and body_id not in (select id from bodies))"
            ).fetchone()
            assert astray == 0
        return await SharedServer(self.url, self.share).check()


async def look_at(ws: Workspace) -> dict[str, bytes]:
    """Return every file and what it holds."""
    return {entry.path: await ws.read_bytes(entry.path) async for entry in ws.walk()}
