"""Who is let in: bearer tokens, session cookies, or anybody on this machine; and what keeps other sites out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request

from crux_workspace.errors import ErrorCode
from crux_workspace.server.principals import Principal
from crux_workspace.server.problems import Refusal
from crux_workspace.server.sessions import COOKIE, check_same_origin

if TYPE_CHECKING:
    from crux_workspace.server.dispatching import Service

__all__ = ["let_in"]

_SAFE_METHODS = ("GET", "HEAD")


def let_in(
    service: Service, request: Request, *, writes: bool = False, approves: bool = False
) -> Principal:
    """Return who sent a request, when it may do what it asks for.

    Raises:
        Refusal: It sent no credentials that are known (401), or may not do that (403).
    """
    principal = _recognised(service, request)
    if writes and not principal.writes:
        raise Refusal(
            403,
            "Nothing can be changed: the service, or the token, is read-only.",
            code=ErrorCode.PERMISSION_DENIED,
        )
    if approves and not principal.approves:
        raise Refusal(403, "The token may not see approvals.", code=ErrorCode.PERMISSION_DENIED)
    return principal


def _recognised(service: Service, request: Request) -> Principal:
    header = request.headers.get("authorization")
    changes = request.method not in _SAFE_METHODS
    if header is not None and not service.principals.open:
        scheme, _, secret = header.partition(" ")
        found = service.principals.find(secret.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            raise _unknown("The bearer token is not known.")
        return found
    if service.principals.open:
        anybody = service.principals.find(None)
        assert anybody is not None
        if changes:
            check_same_origin(request, needs_header=False)
        return anybody
    cookie = request.cookies.get(COOKIE)
    found = None if cookie is None else service.sessions.find(cookie)
    if found is None:
        raise _unknown("A bearer token is needed.")
    if changes:
        check_same_origin(request, needs_header=True)
    return found


def _unknown(detail: str) -> Refusal:
    return Refusal(
        401,
        detail,
        code=ErrorCode.PERMISSION_DENIED,
        hint="Send the header Authorization: Bearer <token>.",
        headers={"www-authenticate": "Bearer"},
    )
