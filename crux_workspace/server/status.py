"""What the caller is told about the service itself: the workspace, its own rights, its session, waiting approvals."""

from __future__ import annotations

from starlette.responses import Response

from crux_workspace.errors import ErrorCode
from crux_workspace.server.calls import Call
from crux_workspace.server.problems import Refusal
from crux_workspace.server.sessions import COOKIE
from crux_workspace.server.wire import json_answer

__all__ = ["approvals", "describe", "session", "sign_in", "sign_out"]


async def describe(call: Call) -> Response:
    """Answer what the workspace is, as far as the caller sees it."""
    return json_answer(call.principal.workspace.describe())


async def session(call: Call) -> Response:
    """Answer what the caller may see and do."""
    rights = call.principal.rights()
    rights["approvals"] = call.principal.approves and call.service.gate is not None
    return json_answer(rights)


async def sign_in(call: Call) -> Response:
    """Give the browser a cookie in exchange for its token."""
    answer = Response(status_code=204, headers={"cache-control": "no-store"})
    answer.set_cookie(
        COOKIE,
        call.service.sessions.begin(call.principal),
        path="/",
        httponly=True,
        samesite="strict",
        secure=_is_encrypted(call),
    )
    return answer


def _is_encrypted(call: Call) -> bool:
    """Tell whether the browser speaks TLS, to a proxy in front it may be: it says so in its origin."""
    origin = call.request.headers.get("origin", "")
    return call.request.url.scheme == "https" or origin.startswith("https://")


async def sign_out(call: Call) -> Response:
    """Forget the browser's session."""
    call.service.sessions.end(call.request.cookies.get(COOKIE, ""))
    answer = Response(status_code=204, headers={"cache-control": "no-store"})
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer


async def approvals(call: Call) -> Response:
    """List the threads that wait for a person."""
    gate = call.service.gate
    if gate is None:
        raise Refusal(
            501,
            "The service has no permission gate.",
            code=ErrorCode.CAPABILITY_MISSING,
            hint="Give service_app a gate.",
        )
    return json_answer({"threads": await gate.waiting_threads()})
