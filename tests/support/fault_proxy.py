"""A TCP proxy that breaks what passes through it: it drops, delays, truncates, stays silent, or leads elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

__all__ = ["Fault", "FaultProxy", "Faults", "Upstream", "fault_proxy", "listening"]

Fault: TypeAlias = Literal["lose request", "lose answer", "truncate answer", "cut client"]
"""What `FaultProxy.arm` does to one request; `cut client` lets it through and keeps the server's side open."""
Upstream: TypeAlias = tuple[str, int] | Path
"""A host and a port, or a Unix socket."""

_CHUNK = 1 << 20


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
    """Swallow the answers; the connections stay open."""
    deaf: bool = False
    """Swallow the requests; the connections stay open."""


@dataclass(slots=True)
class FaultProxy:
    """A listening proxy. `upstream` may be changed: new connections go there."""

    upstream: Upstream
    faults: Faults = field(default_factory=Faults)
    port: int = 0
    connections: int = 0
    """How many connections were taken so far."""
    broken: int = 0
    """How many requests were broken as armed."""
    _armed: tuple[Fault, bytes] | None = None
    _countdown: int = 0
    _open: set[asyncio.StreamWriter] = field(default_factory=set)
    _kept: list[asyncio.StreamWriter] = field(default_factory=list)

    def arm(self, fault: Fault, after: int = 1, *, holding: bytes = b"") -> None:
        """Break the connection at one request: the next one for 1, of those that hold something."""
        self._armed, self._countdown = (fault, holding), after

    def disarm(self) -> None:
        """Break no request any more."""
        self._armed = None

    def reset(self) -> None:
        """Cut all connections now, as a network that breaks does."""
        for writer in list(self._open):
            writer.transport.abort()

    def close(self) -> None:
        """Let go of what was kept open."""
        for writer in self._kept:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        if self.faults.refuse:
            writer.transport.abort()
            return
        self.connections += 1
        self._open.add(writer)
        there: asyncio.StreamWriter | None = None
        passing = _Passing()
        try:
            answers, there = await _connect(self.upstream)
            self._open.add(there)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._carry(reader, there, passing, request=True))
                group.create_task(self._carry(answers, writer, passing, request=False))
        except* (OSError, _Cut):
            pass
        finally:
            self._open -= {writer, there}
            writer.transport.abort()
            if there is not None:
                if passing.fault == "cut client":
                    self._kept.append(there)
                else:
                    there.transport.abort()

    async def _carry(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        passing: _Passing,
        *,
        request: bool,
    ) -> None:
        faults = self.faults
        while piece := await source.read(_CHUNK):
            if faults.delay_s:
                await asyncio.sleep(faults.delay_s)
            if faults.deaf if request else faults.silent:
                continue
            if request:
                passing.fault = self._due(piece)
            piece, is_last = _broken(piece, passing.fault, request=request)
            left = faults.cut_after_request if request else faults.cut_after_answer
            if left is not None:
                self._count(request, left - len(piece))
                is_last = is_last or left < len(piece) or left == 0
                piece = piece[:left]
            sink.write(piece)
            if is_last:
                with contextlib.suppress(OSError):
                    await sink.drain()
                raise _Cut
            await sink.drain()
        raise _Cut

    def _due(self, piece: bytes) -> Fault | None:
        """Return what happens to a request, as armed."""
        if self._armed is None or self._armed[1] not in piece:
            return None
        self._countdown -= 1
        if self._countdown:
            return None
        (fault, _), self._armed = self._armed, None
        self.broken += 1
        return fault

    def _count(self, request: bool, left: int) -> None:
        """Remember what may still pass; the fault is over once it has struck."""
        remaining = None if left < 0 else left
        if request:
            self.faults.cut_after_request = remaining
        else:
            self.faults.cut_after_answer = remaining


@dataclass(slots=True)
class _Passing:
    """One connection on its way through."""

    fault: Fault | None = None
    """What happens to its latest request."""


class _Cut(Exception):
    """The connection ends here."""


def _broken(piece: bytes, fault: Fault | None, *, request: bool) -> tuple[bytes, bool]:
    """Return what is left of a piece, and whether the connection ends behind it."""
    if request:
        return (b"" if fault == "lose request" else piece), fault in ("lose request", "cut client")
    if fault == "lose answer":
        return b"", True
    if fault == "truncate answer":
        return piece[: len(piece) // 2], True
    return piece, False


async def _connect(upstream: Upstream) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if isinstance(upstream, Path):
        return await asyncio.open_unix_connection(str(upstream))
    return await asyncio.open_connection(*upstream)


@contextlib.asynccontextmanager
async def fault_proxy(
    upstream: Upstream, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[FaultProxy]:
    """Run a proxy in front of a server; it passes everything on until it is told otherwise. With `tls` its own side is TLS."""
    proxy = FaultProxy(upstream)
    async with listening(proxy.serve, tls=tls) as port:
        proxy.port = port
        try:
            yield proxy
        finally:
            proxy.close()


@contextlib.asynccontextmanager
async def listening(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    *,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Serve connections on a free port, which is what comes out; those that are open at the end are cancelled."""
    running: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            await serve(reader, writer)
        finally:
            running.discard(task)

    listener = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        for task in list(running):
            task.cancel()
        if running:
            await asyncio.wait(set(running))
