"""A TCP proxy that breaks what passes through it: it drops, delays, truncates, stays silent, or leads elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

__all__ = ["FaultProxy", "Faults", "fault_proxy"]

_CHUNK = 1 << 16


@dataclass(slots=True)
class Faults:
    """What the proxy does to bytes from now on; all of it may be changed at any time."""

    refuse: bool = False
    """Take no connections."""
    delay_s: float = 0.0
    """Hold each piece back for so long, in both directions."""
    cut_after_request: int | None = None
    """Let so many bytes more of requests through, then cut the connection."""
    cut_after_answer: int | None = None
    """Let so many bytes more of answers through, then cut the connection; 0 loses the whole next answer."""
    silent: bool = False
    """Pass requests on and swallow the answers; the connections stay open."""


@dataclass(slots=True)
class FaultProxy:
    """A listening proxy. `upstream` may be changed: new connections go there."""

    upstream: tuple[str, int]
    faults: Faults = field(default_factory=Faults)
    port: int = 0
    connections: int = 0
    """How many connections were taken so far."""
    _open: set[asyncio.StreamWriter] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def reset(self) -> None:
        """Cut all connections now, as a network that breaks does."""
        for writer in list(self._open):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        if self.faults.refuse:
            writer.transport.abort()
            return
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._open.add(writer)
        there: asyncio.StreamWriter | None = None
        try:
            answers, there = await asyncio.open_connection(*self.upstream)
            self._open.add(there)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._carry(reader, there, request=True))
                group.create_task(self._carry(answers, writer, request=False))
        except* (OSError, _Cut):
            pass
        finally:
            for end in (writer, there):
                if end is not None:
                    self._open.discard(end)
                    end.transport.abort()

    async def _carry(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, request: bool
    ) -> None:
        while piece := await source.read(_CHUNK):
            if self.faults.delay_s:
                await asyncio.sleep(self.faults.delay_s)
            left = self.faults.cut_after_request if request else self.faults.cut_after_answer
            if left is not None:
                self._count(request, left - len(piece))
                sink.write(piece[:left])
                if left < len(piece) or left == 0:
                    with contextlib.suppress(OSError):
                        await sink.drain()
                    raise _Cut
            elif request or not self.faults.silent:
                sink.write(piece)
            await sink.drain()
        raise _Cut

    def _count(self, request: bool, left: int) -> None:
        """Remember what may still pass; the fault is over once it has struck."""
        remaining = None if left < 0 else left
        if request:
            self.faults.cut_after_request = remaining
        else:
            self.faults.cut_after_answer = remaining


class _Cut(Exception):
    """The connection ends here."""


@contextlib.asynccontextmanager
async def fault_proxy(host: str, port: int) -> AsyncIterator[FaultProxy]:
    """Run a proxy in front of a server; it passes everything on until it is told otherwise."""
    proxy = FaultProxy((host, port))
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        for task in list(proxy._tasks):
            task.cancel()
        await asyncio.gather(*proxy._tasks, return_exceptions=True)
