"""The service as an ASGI application: lets requests in within its limits, dispatches them, and answers every failure the same way."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from crux_workspace.engine.gathering import gathering
from crux_workspace.errors import ErrorCode, WorkspaceError
from crux_workspace.model.failures import where_it_failed
from crux_workspace.server.access import let_in
from crux_workspace.server.addressing import is_a_thread, is_plain
from crux_workspace.server.calls import Call
from crux_workspace.server.exchange import Received, Sent
from crux_workspace.server.held_open import Transactions
from crux_workspace.server.labels import Labels
from crux_workspace.server.limits import ServiceLimits
from crux_workspace.server.masking import masked_error
from crux_workspace.server.problems import Refusal, busy, failed_precondition, problem, too_slow
from crux_workspace.server.route import Route
from crux_workspace.server.routes import ROUTES
from crux_workspace.server.sessions import Sessions
from crux_workspace.server.traces import TraceBook
from crux_workspace.telemetry.requests import RequestRecorder

if TYPE_CHECKING:
    from crux_workspace.agent.permissions.gate import PermissionGate
    from crux_workspace.api.facade import Workspace
    from crux_workspace.server.principals import Principals

__all__ = ["Service"]

_log = logging.getLogger("crux_workspace.server")
_SWEEP_S = 1.0
_METHODS: dict[str, dict[str, Route]] = {}
for _route in ROUTES:
    _METHODS.setdefault(_route.path, {})[_route.method] = _route
    if _route.method == "GET":
        _METHODS[_route.path]["HEAD"] = _route

_LIMITS = (408, 413, 414, 429, 431, 503, 504)
Plain = Callable[[Request], Awaitable[Response]]

_SERVED = "x-workspace-service"
"""Header of every answer of a route: a client takes nothing for data that has it not."""


class Service:
    """What `service_app` makes; one for each process and event loop."""

    def __init__(
        self,
        workspace: Workspace,
        principals: Principals,
        limits: ServiceLimits,
        *,
        gate: PermissionGate | None,
        approvals: ASGIApp | None,
        inspector: ASGIApp | None,
        plain: dict[str, Plain],
        hosts: frozenset[str] | None,
        recorder: RequestRecorder,
    ) -> None:
        self.workspace = workspace
        self.principals = principals
        self.limits = limits
        self.gate = gate
        self.hosts = hosts
        """The only ``Host`` headers that are answered; None answers all."""
        self.transactions = Transactions(limits)
        self.sessions = Sessions()
        self.traces = TraceBook()
        self.labels = Labels()
        self.stopping = asyncio.Event()
        self._recorder = recorder
        self._approvals = approvals
        self._inspector = inspector
        self._plain = plain
        self._requests = 0
        self._held = 0
        self._streams = 0
        self._sweeper: asyncio.Task[None] | None = None

    # -- life

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the application."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._sweeper = asyncio.ensure_future(self._sweep())
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            try:
                await self.transactions.sweep()
            except Exception as error:
                _log.error("open transactions were not swept: %s", type(error).__name__)

    def shut_down(self) -> None:
        """End the event streams, and let `serve` return once the requests in flight are answered; idempotent."""
        self.stopping.set()

    async def ends_within(self, seconds: float) -> bool:
        """Wait until it is shut down, but no longer than this."""
        try:
            async with asyncio.timeout(seconds):
                await self.stopping.wait()
        except TimeoutError:
            return False
        return True

    async def aclose(self) -> None:
        """End streams and open transactions; the workspace stays open."""
        self.shut_down()
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeper
        await self.transactions.aclose()
        await self.principals.aclose()

    # -- one request

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        received = Received(scope, receive)
        request = Request(scope, received)
        sent = Sent(send, self.limits)
        span = self._recorder.start(_known_method(scope["method"]), request.headers)
        try:
            await self._served(request, scope, received, sent)
        finally:
            if span is not None:
                span.end(_known_route(scope["path"]), sent.status, refused=sent.status in _LIMITS)

    async def _served(self, request: Request, scope: Scope, receive: Received, sent: Sent) -> None:
        try:
            await self._serve(request, scope, receive, sent)
        except ClientDisconnect:
            return
        except Exception as error:
            if sent.status:
                _log.warning("an answer broke off (%s)", type(error).__name__)
                raise
            answer = self._failed(error)
            await receive.take_rest()
            if receive.whole:
                await answer(scope, receive, sent)
            else:
                await sent.answer_early(answer, receive)

    def _failed(self, error: Exception) -> Response:
        if isinstance(error, Refusal | WorkspaceError):
            return problem(error)
        if isinstance(error, TimeoutError):
            return problem(too_slow())
        _log.error("a request failed: %s", where_it_failed(error))
        return problem(
            Refusal(500, "The service failed; its log says why.", code=ErrorCode.INTERNAL)
        )

    async def _serve(self, request: Request, scope: Scope, receive: Receive, send: Send) -> None:
        self._check(request)
        path, method = scope["path"], scope["method"]
        methods = _METHODS.get(path)
        if methods is not None and is_plain(scope):
            route = methods.get(method)
            if route is None:
                raise Refusal(
                    405,
                    f"{path} does not take {method}.",
                    headers={"allow": ", ".join(sorted(methods))},
                )
            await self._answer(route, request, scope, receive, send)
        elif path in self._plain and is_plain(scope):
            if method not in ("GET", "HEAD"):
                raise Refusal(
                    405, f"{path} does not take {method}.", headers={"allow": "GET, HEAD"}
                )
            answer = await self._plain[path](request)
            await answer(scope, receive, send)
        elif self._approvals is not None and is_a_thread(scope):
            let_in(self, request, approves=True, writes=method == "POST")
            await self._approvals(scope, receive, send)
        elif self._inspector is not None and (path == "/" or path.startswith("/inspector")):
            await self._inspector(scope, receive, send)
        else:
            raise Refusal(404, "There is no such address here.", hint="See /openapi.json.")

    async def _answer(
        self, route: Route, request: Request, scope: Scope, receive: Receive, send: Send
    ) -> None:
        principal = let_in(self, request, writes=route.writes, approves=route.approves)
        call = Call(self, route, request, principal)
        try:
            with self._working(), gathering(call.gather):
                await call.read()
                if call.transaction is not None and not route.in_transaction:
                    raise Refusal(400, "This cannot be done in an open transaction.")
                if route.writes and call.expects and not route.takes_conditions:
                    raise Refusal(
                        400,
                        "If-Match and If-None-Match do not say here which file they are about.",
                        hint="Name the version in the body, with if_version.",
                    )
                if route.streams:
                    answer = await route.handler(call)
                else:
                    async with asyncio.timeout(self.limits.request_seconds):
                        answer = await route.handler(call)
                answer.headers[_SERVED] = "1"
                if request.method == "HEAD":
                    answer = _head_of(answer)
                if route.answer != "events" or request.method == "HEAD":
                    await answer(scope, receive, send)
                    return
        except WorkspaceError as error:
            told = await masked_error(call, error)
            if call.conditional and told.code == ErrorCode.VERSION_CONFLICT:
                raise failed_precondition(str(told.details.get("path")), told.details) from error
            raise told from error
        finally:
            call.release()
        await answer(scope, receive, send)

    def _check(self, request: Request) -> None:
        """Refuse what is too much, and hosts that are not ours."""
        scope = request.scope
        if len(scope["query_string"]) > self.limits.max_query_bytes:
            raise Refusal(
                414, f"The query string has more than {self.limits.max_query_bytes} bytes."
            )
        if sum(len(name) + len(value) for name, value in scope["headers"]) > (
            self.limits.max_header_bytes
        ):
            raise Refusal(431, f"The headers have more than {self.limits.max_header_bytes} bytes.")
        hosts = request.headers.getlist("host")
        if len(hosts) > 1:
            raise Refusal(400, "A request names one host.")
        if self.hosts is not None:
            host = "".join(hosts).lower()
            if host.rpartition(":")[0] not in self.hosts and host not in self.hosts:
                raise Refusal(421, "This service does not answer to that host name.")

    @contextmanager
    def _working(self) -> Iterator[None]:
        if self._requests >= self.limits.max_requests:
            raise busy("requests")
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1

    def hold(self, size: int) -> None:
        """Count bytes of bodies that are kept in memory; negative lets go of them.

        Raises:
            Refusal: There are too many (503).
        """
        if size > 0 and self._held + size > self.limits.max_held_bytes:
            raise busy("large bodies")
        self._held += size

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Count an event stream while it is open.

        Raises:
            Refusal: There are too many (503).
        """
        if self._streams >= self.limits.max_streams:
            raise busy("event streams")
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1


def _known_method(method: str) -> str:
    return method if method in ("GET", "HEAD", "PUT", "POST", "DELETE") else "_OTHER"


def _known_route(path: str) -> str:
    """Return an address for metrics: nothing that a client makes up."""
    if path in _METHODS or path in ("/healthz", "/readyz", "/metrics", "/openapi.json"):
        return path
    return "/threads/" if path.startswith("/threads/") else "other"


def _head_of(answer: Response) -> Response:
    head = Response(None, answer.status_code, dict(answer.headers))
    if "content-length" not in answer.headers:
        del head.headers["content-length"]
    return head
