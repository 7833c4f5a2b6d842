"""Sending requests: repeated where that is safe, bounded in size, and never a raw exception."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crux_workspace.errors import (
    ErrorCode,
    InvalidInputError,
    LimitExceededError,
    StorageError,
    WorkspaceError,
)
from crux_workspace.http.address import Address
from crux_workspace.http.logs import hide_queries
from crux_workspace.http.problems import (
    MAX_PROBLEM_BYTES,
    corrupt,
    error_of_answer,
    parsed,
    unexpected,
)
from crux_workspace.model.pausing import jitter_s
from crux_workspace.model.streams import at_most

if TYPE_CHECKING:
    import httpx
    from tenacity import RetryCallState

__all__ = ["Answer", "Broken", "Connection", "Request", "whole"]

MAX_ANSWER_BYTES = 1 << 28
"""Longest JSON answer that is read into memory."""
_MAX_PAUSE_S = 5.0
_MAX_JITTER_S = 2.0
_SERVED = "x-workspace-service"
"""Header of what the service answers: what has it not comes from something in between."""
_PUT_OFF = (408, 429, 502, 503, 504)
"""What a service says that is busy, restarting or out of reach behind a proxy."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request, made so that it can be sent again."""

    method: str
    route: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = field(default=None, repr=False)
    stream: Callable[[], AsyncIterator[bytes]] | None = field(default=None, repr=False)
    """Makes the body's chunks anew for each time that it is sent."""
    repeats: bool = True
    """Sent twice it does no more than sent once; False sends again only what cannot have arrived."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The head of an answer, and its body, to be read once."""

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes] = field(repr=False)


class Broken(Exception):
    """A request that failed on the way, or was put off."""

    def __init__(self, error: WorkspaceError, *, arrived: bool, after_s: float = 0.0) -> None:
        super().__init__(str(error))
        self.error = error
        self.arrived = arrived
        """It may have arrived."""
        self.after_s = after_s
        """How long the service asked to wait."""


class Connection:
    """The one HTTP client of a workspace and its views."""

    def __init__(
        self,
        address: Address,
        *,
        client: httpx.AsyncClient | None,
        timeout_ms: int,
        max_attempts: int,
    ) -> None:
        import httpx

        hide_queries(address.base)
        self._address = address
        self._client = client
        self._owns_client = client is None
        self._timeout = httpx.Timeout(timeout_ms / 1000, connect=min(timeout_ms, 10_000) / 1000)
        self.max_attempts = max_attempts
        """How often a request is sent at most."""

    def __repr__(self) -> str:
        return f"Connection({self._address.base})"

    @property
    def base(self) -> str:
        """Address of the service."""
        return self._address.base

    async def json(self, request: Request) -> Any:  # noqa: ANN401 - JSON
        """Send a request and return the JSON of its answer.

        Raises:
            WorkspaceError: What the service answered, or why it could not be asked.
        """

        async def take(answer: Answer) -> Any:  # noqa: ANN401 - JSON
            kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
            if answer.status not in (200, 201) or kind != "application/json":
                raise unexpected(answer.status, answer.headers, "JSON")
            return parsed(await whole(answer.body, MAX_ANSWER_BYTES))

        return await self.send(request, take)

    async def done(self, request: Request) -> None:
        """Send a request whose answer only says that it was carried out.

        Raises:
            WorkspaceError: What the service answered, or why it could not be asked.
        """

        async def take(answer: Answer) -> None:
            if answer.status != 204:
                raise unexpected(answer.status, answer.headers, "an empty answer (204)")

        await self.send(request, take)

    async def send(self, request: Request, take: Callable[[Answer], Any]) -> Any:  # noqa: ANN401
        """Send a request, again where that is safe, and return what `take` makes of a good answer."""
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

        attempts = AsyncRetrying(
            retry=retry_if_exception(lambda error: _may_repeat(error, request)),
            stop=stop_after_attempt(self.max_attempts),
            wait=_pause,
            reraise=True,
        )

        async def once() -> Any:  # noqa: ANN401
            async with self.opened(request) as answer:
                return await take(answer)

        try:
            return await attempts(once)
        except Broken as broken:
            raise broken.error from broken.__cause__
        except _SourceFailed as failed:
            raise failed.error from None

    async def pause(self, failures: int, broken: Broken) -> None:
        """Wait before a stream is taken up again; longer after each failure in a row."""
        await asyncio.sleep(_pause_s(failures, broken.after_s))

    @asynccontextmanager
    async def opened(
        self, request: Request, *, idle_s: float | None = None
    ) -> AsyncGenerator[Answer, None]:
        """Send a request once and give its answer, the body still to be read.

        Raises:
            Broken: It failed on the way, or the service put it off.
            WorkspaceError: The service refused it.
        """
        with _translating(self._timeout):
            client = self._ready()
            sent = client.build_request(
                request.method,
                self._address.url(request.route, request.query),
                headers={**request.headers, **self._address.headers()},
                content=request.body if request.stream is None else _guarded(request.stream()),
                timeout=self._patience(idle_s),
            )
            response = await client.send(sent, stream=True, follow_redirects=False)
            try:
                if response.status_code >= 300:
                    raise await _refused(response)
                if _SERVED not in response.headers:
                    raise unexpected(response.status_code, response.headers, "an answer of its own")
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise corrupt("it is compressed, though that was not asked for")
                yield Answer(response.status_code, response.headers, _raw(response))
            finally:
                await response.aclose()

    def _patience(self, idle_s: float | None) -> httpx.Timeout:
        import httpx

        if idle_s is None:
            return self._timeout
        return httpx.Timeout(self._timeout.write, connect=self._timeout.connect, read=idle_s)

    def _ready(self) -> httpx.AsyncClient:
        import httpx

        if self._client is None:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
            self._client = httpx.AsyncClient(limits=limits, timeout=self._timeout)
        return self._client

    async def aclose(self) -> None:
        """Close the client, unless it was given."""
        if self._owns_client and self._client is not None:
            await self._client.aclose()


class _SourceFailed(Exception):
    """The stream that a caller handed over raised."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


async def _guarded(source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Keep what the caller's stream raises apart from what the HTTP library does."""
    try:
        async for chunk in source:
            yield chunk
    except Exception as error:
        raise _SourceFailed(error) from error


class _translating:  # noqa: N801 - used as a statement
    """Turn what the HTTP library raises into a `Broken` with the error that users know."""

    def __init__(self, timeout: httpx.Timeout) -> None:
        self._timeout = timeout

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        import httpx

        if isinstance(error, httpx.ConnectTimeout | httpx.ConnectError | httpx.PoolTimeout):
            raise Broken(_unreachable(error), arrived=False) from error
        if isinstance(error, httpx.TimeoutException):
            raise Broken(_too_slow(self._timeout.read), arrived=True) from error
        if isinstance(error, httpx.TransportError):
            raise Broken(_unreachable(error), arrived=True) from error
        if isinstance(error, httpx.InvalidURL):
            raise InvalidInputError("The arguments are too long for a request.") from error
        if isinstance(error, httpx.HTTPError | httpx.StreamError):
            raise corrupt(f"the HTTP library gave it up ({type(error).__name__})") from error


async def _raw(response: httpx.Response) -> AsyncIterator[bytes]:
    """Iterate over a body as it was sent; a client of the caller's may have read it already."""
    if response.is_stream_consumed:
        yield response.content
        return
    async for chunk in response.aiter_raw():
        yield chunk


async def whole(body: AsyncIterator[bytes], most: int = sys.maxsize) -> bytes:
    """Return a body whole, if it has no more than `most` bytes.

    Raises:
        LimitExceededError: It has more (``FILE_TOO_LARGE``).
    """
    found = await at_most(body, most)
    if found is None:
        raise LimitExceededError(
            f"The HTTP service answered with more than {most:,} bytes.",
            code=ErrorCode.FILE_TOO_LARGE,
            details={"limit": most},
            hint="Ask for less at once: give a limit, or stream the file.",
        )
    return found


async def _refused(response: httpx.Response) -> Exception:
    status = response.status_code
    body = await at_most(_raw(response), MAX_PROBLEM_BYTES)
    error = error_of_answer(status, body or b"")
    if error.retryable and status in _PUT_OFF:
        after_s = _seconds(response.headers.get("retry-after"))
        return Broken(error, arrived=True, after_s=after_s)
    return error


def _seconds(header: str | None) -> float:
    """Return how long a ``Retry-After`` asks to wait; its date form counts as nothing."""
    if header is None or not header.isascii() or not header.isdigit() or len(header) > 6:
        return 0.0
    return min(float(header), _MAX_PAUSE_S)


def _may_repeat(error: BaseException, request: Request) -> bool:
    return isinstance(error, Broken) and (request.repeats or not error.arrived)


def _pause(state: RetryCallState) -> float:
    broken = None if state.outcome is None else state.outcome.exception()
    return _pause_s(state.attempt_number, broken.after_s if isinstance(broken, Broken) else 0.0)


def _pause_s(failures: int, after_s: float) -> float:
    """Return how long to wait before the next attempt: random, growing, and no less than the service asked for."""
    return max(after_s, jitter_s(failures, first_s=0.1, most_s=_MAX_JITTER_S))


def _unreachable(error: Exception) -> StorageError:
    return StorageError(
        f"The HTTP service could not be reached, or broke off ({type(error).__name__}); try again when it is back.",
        code=ErrorCode.STORE_UNAVAILABLE,
    )


def _too_slow(seconds: float | None) -> StorageError:
    return StorageError(
        f"The HTTP service did not answer within {seconds} s; whether it carried the call out is not known.",
        code=ErrorCode.STORE_TIMEOUT,
    )
