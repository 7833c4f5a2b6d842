"""An HTTP proxy that breaks chosen requests: it answers in the server's place, loses answers, waits, damages bytes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

__all__ = ["Action", "HttpFaults", "Request", "busy", "http_faults", "times"]


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    """By lower-case name."""

    @property
    def reads(self) -> bool:
        """Whether an object's bytes are asked for."""
        return self.method == "GET" and "list-type" not in self.query


@dataclass(frozen=True, slots=True)
class Action:
    """What becomes of a request instead of being passed on."""

    answer: bytes | None = None
    """Answer with this, and pass nothing on."""
    lose: bool = False
    """Pass it on, and cut the connection instead of answering."""
    wait_s: float = 0.0
    """Wait before it is passed on."""
    damage_answer: bool = False
    """Change the last byte of the answer."""
    damage_request: bool = False
    """Change the last byte of the request."""
    headers: tuple[tuple[str, str], ...] = ()
    """Pass it on with these, by lower-case name, in the place of its own."""


def busy(status: str = "503 Service Unavailable", code: str = "SlowDown") -> Action:
    """Return an answer of S3's own kind that refuses."""
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n"
    return Action(answer=head.encode() + b"Connection: close\r\n\r\n" + body)


def times(
    count: int | None, action: Action, which: Callable[[Request], bool] = lambda _: True
) -> Callable[[Request], Action | None]:
    """Return a rule that breaks the first so many requests of a kind; None means all."""
    left = count

    def rule(request: Request) -> Action | None:
        nonlocal left
        if not which(request) or left == 0:
            return None
        left = None if left is None else left - 1
        return action

    return rule


@dataclass
class HttpFaults:
    """A listening proxy; `rule` may be changed at any time, and says what to do with a request."""

    upstream: tuple[str, int]
    rule: Callable[[Request], Action | None] = lambda _: None
    url: str = ""
    seen: list[Request] = field(default_factory=list)
    broken: int = 0
    """How many requests were broken."""
    struck: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the first."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one request."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._carry(reader, writer)
            writer.close()
        except asyncio.CancelledError:  # the proxy ends
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        pairs = [line.split(": ", 1) for line in lines]
        headers = {name.lower(): value for name, value in pairs}
        if headers.get("expect") == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, target, _ = first.split(" ")
        parts = urlsplit(target)
        request = Request(method, parts.path, parts.query, headers)
        self.seen.append(request)
        action = self.rule(request)
        if action is not None:
            self.broken += 1
            self.struck.set()
        action = action or Action()
        await asyncio.sleep(action.wait_s)
        if action.answer is not None:
            writer.write(action.answer)
            await writer.drain()
            return
        given = [("connection", "close"), *action.headers]
        left_out = {"expect", *(name for name, _ in given)}
        kept = [pair for pair in pairs if pair[0].lower() not in left_out]
        passed = [first, *(": ".join(pair) for pair in (*kept, *given)), "", ""]
        if action.damage_request:
            body = _damaged(body)
        await self._pass_on("\r\n".join(passed).encode("latin-1") + body, writer, action)

    async def _pass_on(self, raw: bytes, writer: asyncio.StreamWriter, action: Action) -> None:
        answers, there = await asyncio.open_connection(*self.upstream)
        try:
            there.write(raw)
            await there.drain()
            if action.lose or action.damage_answer:
                answer = await answers.read(-1)
                if action.damage_answer:
                    writer.write(_damaged(answer))
                    await writer.drain()
                else:
                    writer.transport.abort()
                return
            while piece := await answers.read(1 << 16):
                writer.write(piece)
                await writer.drain()
        finally:
            there.transport.abort()


def _damaged(raw: bytes) -> bytes:
    return raw[:-1] + bytes([raw[-1] ^ 1]) if raw else raw


@contextlib.asynccontextmanager
async def http_faults(endpoint: str) -> AsyncIterator[HttpFaults]:
    """Run a proxy in front of a server; it passes everything on until it has a rule."""
    parts = urlsplit(endpoint)
    assert parts.hostname is not None
    assert parts.port is not None
    proxy = HttpFaults((parts.hostname, parts.port))
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=1 << 20)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        for task in list(proxy._tasks):
            task.cancel()
        await asyncio.gather(*proxy._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports close with the loop's next turn
