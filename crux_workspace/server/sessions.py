"""A browser's session: a cookie that stands for a token, and what keeps other sites from using it."""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from starlette.requests import Request

from crux_workspace.errors import ErrorCode
from crux_workspace.server.problems import Refusal

if TYPE_CHECKING:
    from crux_workspace.server.principals import Principal

__all__ = ["COOKIE", "REQUEST_HEADER", "Sessions", "check_same_origin"]

COOKIE = "crux_workspace_session"
REQUEST_HEADER = "x-workspace-request"
_LIFETIME_S = 12 * 3_600
_MOST = 1_000


class Sessions:
    """Cookies that were given out; kept in memory, by their hash."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._open: OrderedDict[str, tuple[float, Principal]] = OrderedDict()

    def begin(self, principal: Principal) -> str:
        """Return the value of a new cookie."""
        secret = secrets.token_urlsafe(32)
        self._open[_hashed(secret)] = (self._clock() + _LIFETIME_S, principal)
        while len(self._open) > _MOST:
            self._open.popitem(last=False)
        return secret

    def find(self, secret: str) -> Principal | None:
        """Return whose session it is."""
        due, principal = self._open.get(_hashed(secret), (0.0, None))
        return principal if due > self._clock() else None

    def end(self, secret: str) -> None:
        """Forget a session."""
        self._open.pop(_hashed(secret), None)


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def check_same_origin(request: Request, *, needs_header: bool) -> None:
    """Refuse a change that another site may have made a browser send: no credentials of its own came with it.

    Args:
        request: The change.
        needs_header: It came with a cookie, so it has to carry the header that only the site's own scripts can send.

    Raises:
        Refusal: That header is missing, or the browser names another site.
    """
    headers = request.headers
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    host = headers.get("host", "").lower()
    own = origin is None or origin.partition("://")[2].lower() == host
    marked = not needs_header or headers.get(REQUEST_HEADER) is not None
    if marked and own and site in (None, "none", "same-origin"):
        return
    raise Refusal(
        403,
        "The request may have been made by another site.",
        code=ErrorCode.PERMISSION_DENIED,
        hint=f"Send a bearer token, or from the same origin the header {REQUEST_HEADER}: 1.",
    )
