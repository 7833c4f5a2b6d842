"""Approvals over HTTP: what waits, as a list and as events, and the strict resume."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from crux_workspace.agent.permissions.decisions import Decision, Interrupt
from crux_workspace.agent.permissions.envelope import bad_envelope
from crux_workspace.agent.permissions.gate import PermissionGate
from crux_workspace.errors import ErrorCode, InvalidInputError, UnsupportedError, WorkspaceError
from crux_workspace.model.failures import where_it_failed

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = [
    "Authorize",
    "Runner",
    "approval_app",
    "event_lines",
    "guarded",
    "json_errors",
    "server_sent",
]

Authorize: TypeAlias = Callable[[Mapping[str, str], str], "bool | Awaitable[bool | None] | None"]
"""Says whether the sender of a request may see and answer a thread: (headers, thread id); None when there is no such thread."""

Runner: TypeAlias = Callable[[str, list[Decision]], AsyncIterator[Any]]
"""Lets a thread go on after its interrupts were answered; yields its events."""

Endpoint: TypeAlias = "Callable[[Request], Awaitable[Response]]"

_MOST_BYTES = 1 << 20
_POLL_S = 0.25
_END = object()
_log = logging.getLogger("crux_workspace.agent.server")
_STATUS = {
    ErrorCode.INVALID_RESUME_PAYLOAD: 400,
    ErrorCode.INVALID_ARGUMENT: 400,
    ErrorCode.RESUME_REQUIRED: 409,
    ErrorCode.STALE_INTERRUPT: 409,
    ErrorCode.INTERRUPT_SET_MISMATCH: 409,
    ErrorCode.RESUME_IN_PROGRESS: 409,
    ErrorCode.MALFORMED_CHECKPOINT: 409,
}


def approval_app(
    gate: PermissionGate, *, authorize: Authorize, runner: Runner | None = None
) -> Starlette:
    """Return an ASGI application to mount beside an agent's own routes.

    ``GET /threads/{id}/pending_interrupts`` lists what waits, ``GET /threads/{id}/interrupts`` sends it as server-sent ``interrupt``
    events, ``POST /threads/{id}/resume`` answers all of it.

    Args:
        gate: Holds what waits.
        authorize: Says who may see and answer a thread; False is 401 without credentials, else 403; None is 404: no such thread.
        runner: Lets the thread go on; its events are the resume's answer. Without one the decisions are.

    Returns:
        The application.

    Raises:
        UnsupportedError: Starlette is not installed (``CAPABILITY_MISSING``).
    """
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route
    except ImportError:
        raise UnsupportedError(
            "approval_app needs Starlette, which is not installed.",
            code=ErrorCode.CAPABILITY_MISSING,
            hint="Install crux-workspace[server].",
        ) from None
    handlers = _Handlers(gate, authorize, runner)
    return Starlette(
        routes=[
            Route("/threads/{thread_id}/resume", guarded(handlers.resume), methods=["POST"]),
            Route(
                "/threads/{thread_id}/pending_interrupts",
                guarded(handlers.pending),
                methods=["GET"],
            ),
            Route("/threads/{thread_id}/interrupts", guarded(handlers.events), methods=["GET"]),
        ],
        exception_handlers=json_errors(),
    )


def guarded(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint whose failures are answers in the one form, without details; the log has them."""

    async def answered(request: Request) -> Response:
        from starlette.exceptions import HTTPException

        try:
            return await endpoint(request)
        except WorkspaceError as error:
            return _error(error)
        except HTTPException:
            raise
        except Exception as error:
            _log.error("a request failed: %s", where_it_failed(error))
            return _told(500, "internal", "The request failed.")

    return answered


def json_errors() -> dict[Any, Any]:
    """Return the handlers that tell a missing route and a wrong method in the one form."""
    from starlette.exceptions import HTTPException

    async def told(request: Request, error: Exception) -> Response:
        del request
        assert isinstance(error, HTTPException)
        code = str(error.detail).lower().replace(" ", "_")
        answer = _told(error.status_code, code, f"{error.detail}.")
        answer.headers.update(error.headers or {})
        return answer

    return {HTTPException: told}


class _Handlers:
    def __init__(self, gate: PermissionGate, authorize: Authorize, runner: Runner | None) -> None:
        self._gate = gate
        self._authorize = authorize
        self._runner = runner
        self._running: set[asyncio.Future[None]] = set()

    async def pending(self, request: Request) -> Response:
        thread = request.path_params["thread_id"]
        refused = await self._refused(request, thread)
        if refused is not None:
            return refused
        waiting = await self._gate.pending(thread)
        return _json({"interrupts": [_listed(interrupt) for interrupt in waiting]})

    async def events(self, request: Request) -> Response:
        thread = request.path_params["thread_id"]
        refused = await self._refused(request, thread)
        return refused if refused is not None else server_sent(self._interrupts(request, thread))

    async def _interrupts(self, request: Request, thread: str) -> AsyncIterator[Any]:
        told: set[str] = set()
        while not await request.is_disconnected():
            for interrupt in await self._gate.pending(thread):
                if interrupt.interrupt_id not in told:
                    told.add(interrupt.interrupt_id)
                    yield interrupt
            await asyncio.sleep(_POLL_S)

    async def resume(self, request: Request) -> Response:
        thread = request.path_params["thread_id"]
        refused = await self._refused(request, thread)
        if refused is not None:
            return refused
        envelope = await _envelope(request)
        if self._runner is None:
            decisions = await self._gate.resume(thread, envelope)
            return _json({"decisions": [decision.to_dict() for decision in decisions]})
        return await self._going_on(thread, envelope, self._runner)

    async def _going_on(self, thread: str, envelope: Any, runner: Runner) -> Response:  # noqa: ANN401
        """Resume, and stream how the thread goes on; until it ends, no other resume is let in.

        It goes on also when the client leaves.
        """
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        events: asyncio.Queue[Any] = asyncio.Queue()

        async def go_on() -> None:
            try:
                async with self._gate.resuming(thread):
                    decisions = await self._gate.resume_held(thread, envelope)
                    begun.set_result(None)
                    async for event in runner(thread, decisions):
                        events.put_nowait(event)
            except Exception as error:
                if begun.done():
                    events.put_nowait(error)
                else:
                    begun.set_exception(error)
            finally:
                events.put_nowait(_END)

        task = asyncio.ensure_future(go_on())
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        await asyncio.shield(begun)
        return server_sent(_drained(events))

    async def _refused(self, request: Request, thread: str) -> Response | None:
        headers = dict(request.headers)
        allowed = self._authorize(headers, thread)
        if inspect.isawaitable(allowed):
            allowed = await allowed
        if allowed is True:
            return None
        if allowed is None:
            return _told(404, "thread_not_found", "There is no such thread.")
        if "authorization" in headers or "cookie" in headers:
            return _told(403, "forbidden", "This thread is not yours.")
        return _told(401, "unauthorized", "Credentials are needed.")


async def _drained(events: asyncio.Queue[Any]) -> AsyncIterator[Any]:
    while (event := await events.get()) is not _END:
        if isinstance(event, Exception):
            raise event
        yield event


def _listed(interrupt: Interrupt) -> dict[str, Any]:
    return {
        "interruptId": interrupt.interrupt_id,
        "resumeKey": interrupt.digest[:32],
        "value": interrupt.to_dict(),
    }


async def _envelope(request: Request) -> Any:  # noqa: ANN401 - checked by the gate
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise bad_envelope("The body must be application/json.")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise bad_envelope("The body is too large.")
    try:
        found = json.loads(body, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise bad_envelope("The body is no JSON, or names something twice.") from None
    if not isinstance(found, dict):
        raise bad_envelope("The body must be an object.")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name twice")
    return found


def _no_constant(name: str) -> Any:  # noqa: ANN401 - never returns
    raise ValueError(name)


def _json(data: Any, status: int = 200) -> Response:  # noqa: ANN401 - JSON
    from starlette.responses import JSONResponse

    return JSONResponse(data, status_code=status, headers={"cache-control": "no-store"})


def _error(error: WorkspaceError) -> Response:
    status = _STATUS.get(error.code, 500 if not isinstance(error, InvalidInputError) else 400)
    return _told(status, error.code.value.lower(), error.message)


def _told(status: int, code: str, message: str) -> Response:
    return _json({"error": {"code": code, "message": message}}, status)


def server_sent(events: AsyncIterator[Any]) -> Response:
    """Return a response that streams events; a failure is a last event ``error`` without details."""
    from starlette.responses import StreamingResponse

    async def lines() -> AsyncIterator[str]:
        try:
            async for event in events:
                yield event_lines(event)
        except WorkspaceError as error:
            yield event_lines(
                ("error", {"code": error.code.value.lower(), "message": error.message})
            )
        except Exception as error:
            _log.error("a run failed: %s", where_it_failed(error))
            yield event_lines(("error", {"code": "internal", "message": "The run failed."}))

    return StreamingResponse(
        lines(), media_type="text/event-stream", headers={"cache-control": "no-store"}
    )


def event_lines(event: Any) -> str:  # noqa: ANN401 - what a runner yields
    """Return one server-sent event: an `Interrupt`, a pair (name, data), or data alone."""
    if isinstance(event, Interrupt):
        event = ("interrupt", event.to_dict())
    name, data = event if isinstance(event, tuple) else (None, event)
    head = f"event: {name}\n" if name is not None else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n"
